// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension OperationOwner {
    /// Cancels all operations of an object, which may call this in its `deinit`, wherever they run.
    ///
    /// Costs as much as the object has operations, however many others there are. Operations that are given to the owner
    /// while this runs may be left out.
    ///
    /// - Parameters:
    ///   - object: The owner, matched by identity.
    ///   - cause: What they are told; by default a cause of the code `ownerCancelled`.
    /// - Returns: How many were cancelled: those that had no outcome yet.
    @discardableResult
    public static func cancelOperations(ownedBy object: AnyObject, because cause: CancellationCause? = nil) -> Int {
        OwnedOperations(of: object).cancel(because: cause)
    }

    /// Cancels all operations of an owner, such as a name, wherever they run.
    ///
    /// - Parameters:
    ///   - owner: The owner: a string literal, `.named(_:)`, or what an operation has as its `owner`.
    ///   - cause: What they are told; by default a cause of the code `ownerCancelled`.
    /// - Returns: How many were cancelled: those that had no outcome yet.
    @discardableResult
    public static func cancelOperations(ownedBy owner: OperationOwner, because cause: CancellationCause? = nil) -> Int {
        OwnedOperations(of: owner).cancel(because: cause)
    }

    /// Gives an operation of any kind to an owner, or with nil to nobody.
    ///
    /// For an operation of this package it does the same as setting its `owner`. One of any other kind is not kept alive
    /// by it, and nothing of it stays behind when it ends; whether its owner is still there is not looked at before it
    /// is started, unless it is in a ``QueueManager``.
    public static func mark(_ operation: Operation, as owner: OperationOwner?) {
        if let own = operation as? ManagedOperation { return own.assignedOwner = owner }
        OwnerRegistry.shared.setOwner(owner, ofForeign: operation)
    }

    /// The owner of an operation of any kind.
    public static func owner(of operation: Operation) -> OperationOwner? {
        if let own = operation as? ManagedOperation { return own.assignedOwner }
        return OwnerRegistry.shared.owner(ofForeign: operation)
    }
}

extension OperationQueue {
    /// Cancels those operations of an object that are in this queue.
    ///
    /// Foundation tells of a queue's operations only as a whole, so this costs as much as there are in the queue.
    ///
    /// - Returns: How many were cancelled: those that had no outcome yet.
    @discardableResult
    public func cancelOperations(ownedBy object: AnyObject, because cause: CancellationCause? = nil) -> Int {
        cancel(OwnedOperations(of: object), because: cause)
    }

    /// Cancels those operations of an owner, such as a name, that are in this queue.
    ///
    /// - Returns: How many were cancelled: those that had no outcome yet.
    @discardableResult
    public func cancelOperations(ownedBy owner: OperationOwner, because cause: CancellationCause? = nil) -> Int {
        cancel(OwnedOperations(of: owner), because: cause)
    }

    private func cancel(_ owned: OwnedOperations, because cause: CancellationCause?) -> Int {
        let operations = operations
        let held = Set(operations.map(ObjectIdentifier.init))
        return withExtendedLifetime(operations) {
            owned.cancel(because: cause) { held.contains(ObjectIdentifier($0)) }
        }
    }
}

extension QueueManager {
    /// Cancels those operations of an object that are in this queue.
    ///
    /// - Returns: How many were cancelled: those that had no outcome yet.
    @discardableResult
    public func cancelOperations(ownedBy object: AnyObject, because cause: CancellationCause? = nil) -> Int {
        engine.cancel(OwnedOperations(of: object), because: cause)
    }

    /// Cancels those operations of an owner, such as a name, that are in this queue.
    ///
    /// - Returns: How many were cancelled: those that had no outcome yet.
    @discardableResult
    public func cancelOperations(ownedBy owner: OperationOwner, because cause: CancellationCause? = nil) -> Int {
        engine.cancel(OwnedOperations(of: owner), because: cause)
    }
}
