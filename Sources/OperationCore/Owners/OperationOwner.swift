// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// On whose behalf operations run: an object, which is held weakly, or a name.
///
/// A screen that is closed, a user who logs out, a document that is thrown away: each leaves operations behind whose
/// results nobody wants. Keeping a list of them means to take each off again when it ends, on whatever thread that is.
/// Instead, say whose they are:
///
/// ```swift
/// final class Gallery: Sendable {
///     func load() {
///         let operation = ClosureOperation { (1...100).reduce(0, +) }
///         operation.owner = .object(self)
///         operation.startAndKeepAlive()
///     }
///
///     func close() { OperationOwner.cancelOperations(ownedBy: self) }
///
///     deinit { OperationOwner.cancelOperations(ownedBy: self) }
/// }
/// ```
///
/// Operations of an object that is gone are not begun: they are cancelled with the cause `ownerGone` when they are
/// started. Those that were begun go on, unless the owner's `deinit` or its ``OperationOwnerToken`` cancels them.
public struct OperationOwner: Sendable {
    enum Kind {
        case object(OwnerReference)
        case name(String)
    }

    let kind: Kind

    private init(_ kind: Kind) { self.kind = kind }

    init(_ reference: OwnerReference) { self.init(.object(reference)) }

    /// An owner that is an object, matched by identity and held weakly.
    ///
    /// Not to be made in the `deinit` of that object, which can no longer be held weakly. Cancelling needs none: pass the
    /// object itself to `cancelOperations(ownedBy:)`.
    public static func object(_ object: AnyObject) -> OperationOwner {
        OperationOwner(.object(OwnerReference(object)))
    }

    /// An owner that is a name, matched by equality.
    public static func named(_ name: String) -> OperationOwner {
        OperationOwner(.name(name))
    }

    /// Whether the owner is an object that was freed, or is being freed.
    public var isGone: Bool {
        if case .object(let reference) = kind { reference.object == nil } else { false }
    }

    /// Where to find the owner's operations.
    var key: OwnerKey {
        switch kind {
        case .object(let reference): .object(reference.identity)
        case .name(let name): .name(name)
        }
    }

    /// The owner if it is an object that is alive.
    var liveObject: AnyObject? {
        if case .object(let reference) = kind { reference.object } else { nil }
    }
}

extension OperationOwner: Hashable {
    /// Owners are equal that are the same object, or have equal names.
    public static func == (left: OperationOwner, right: OperationOwner) -> Bool {
        // An object that took the place of a dead one in memory is alive, and the other is not.
        left.key == right.key && left.isGone == right.isGone
    }

    /// Adds what two equal owners have in common.
    public func hash(into hasher: inout Hasher) { hasher.combine(key) }
}

extension OperationOwner: ExpressibleByStringLiteral, CustomStringConvertible {
    /// Makes an owner that is a name.
    public init(stringLiteral name: String) { self = .named(name) }

    /// The name in quotation marks, or the type of the object.
    public var description: String {
        switch kind {
        case .object(let reference): "\(reference.type)"
        case .name(let name): "\"\(name)\""
        }
    }
}
