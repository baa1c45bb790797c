// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// An object that owns operations, held weakly, and what can be said of it once it is gone.
final class OwnerReference: Sendable {
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var reference: AnyObject?
    let identity: ObjectIdentifier
    let type: AnyObject.Type

    init(_ object: AnyObject) {
        reference = object
        identity = ObjectIdentifier(object)
        type = Swift.type(of: object)
    }

    /// The object; nil from the moment in which its `deinit` begins.
    ///
    /// Not to be asked for under a lock, unless the caller holds the object: what is returned may be the last reference.
    var object: AnyObject? { reference }

    /// Whether `object` is being freed, so that it may be one whose weak references are nil.
    static func isBeingFreed(_ object: AnyObject) -> Bool {
        #if canImport(ObjectiveC)
            // There an object of Objective-C that is being freed must not be referred to weakly, not even to find out.
            return true
        #else
            return OwnerReference(object).object == nil
        #endif
    }
}

/// Where the operations of an owner are found.
enum OwnerKey: Hashable {
    /// The address of an object, which another one may have after it was freed.
    case object(ObjectIdentifier)
    case name(String)
}
