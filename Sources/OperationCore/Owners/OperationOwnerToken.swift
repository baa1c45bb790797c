// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What an object holds so that its operations are cancelled when it goes.
///
/// An object that is freed does not take its operations along: those that run go on. A `deinit` that cancels them is
/// easily forgotten; a property is not:
///
/// ```swift
/// final class Feed {
///     private let operations = OperationOwnerToken()
///
///     func refresh() {
///         let operation = ClosureOperation { (1...100).reduce(0, +) }
///         operation.owner = operations.owner
///         operation.startAndKeepAlive()
///     }
/// }
/// ```
///
/// When the last reference to the token goes, and with the object that is the token's, the operations that have no
/// outcome are cancelled with the cause `ownerGone`.
public final class OperationOwnerToken: Sendable {
    private let reference: OwnerReference?

    /// Makes a token that is itself the owner of the operations.
    public init() { reference = nil }

    /// Makes a token for the operations of an object, which is the one to hold it.
    ///
    /// Do not let others hold it beyond the object's life: it cancels when the last of them lets go of it.
    public init(for object: AnyObject) { reference = OwnerReference(object) }

    deinit {
        guard let reference else {
            OwnedOperations(of: self).cancel(because: .ownerGone("\(Self.self)"))
            return
        }
        // The object, in whose deinit this is called as a rule, or only its address if so.
        OwnedOperations(of: OperationOwner(reference)).cancel(because: .ownerGone("\(reference.type)"))
    }

    /// The owner to give operations to.
    public var owner: OperationOwner { reference.map { OperationOwner($0) } ?? .object(self) }

    /// Cancels the operations that it was given so far; it can go on to be used.
    ///
    /// - Returns: How many were cancelled: those that had no outcome yet.
    @discardableResult
    public func cancelOperations(because cause: CancellationCause? = nil) -> Int {
        OperationOwner.cancelOperations(ownedBy: owner, because: cause)
    }
}
