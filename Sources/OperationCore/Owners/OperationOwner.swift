// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An object or a name to which operations belong, so that you can cancel these operations together.
///
/// When a user closes a screen, signs out or deletes a document, the results of some running operations are no longer
/// needed. If you keep your own list of running operations, you must update the list whenever an operation ends, which
/// can happen on any thread. Set an owner instead:
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
/// The owner does not keep the object alive. If the object is freed before an operation begins, the operation is
/// canceled with the cause `ownerGone`. Operations that have begun continue, unless the `deinit` of the object or its
/// ``OperationOwnerToken`` cancels them.
public struct OperationOwner: Sendable {
    enum Kind {
        case object(OwnerReference)
        case name(String)
    }

    let kind: Kind

    private init(_ kind: Kind) { self.kind = kind }

    init(_ reference: OwnerReference) { self.init(.object(reference)) }

    /// Returns an owner that references an object weakly and compares it by identity.
    ///
    /// Do not call this method in the `deinit` of the object, because the program cannot form a weak reference to the
    /// object there. To cancel the object's operations, pass the object itself to `cancelOperations(ownedBy:)`.
    ///
    /// - Parameter object: The object to which the operations belong.
    public static func object(_ object: AnyObject) -> OperationOwner {
        OperationOwner(.object(OwnerReference(object)))
    }

    /// Returns an owner that is identified by a name.
    ///
    /// - Parameter name: The name of the owner.
    public static func named(_ name: String) -> OperationOwner {
        OperationOwner(.name(name))
    }

    /// A Boolean value that indicates whether the owner is an object that was freed or is being freed.
    package var isGone: Bool {
        if case .object(let reference) = kind { reference.object == nil } else { false }
    }

    /// The key under which the operations of the owner are found.
    var key: OwnerKey {
        switch kind {
        case .object(let reference): .object(reference.identity)
        case .name(let name): .name(name)
        }
    }

    /// The owner if it is an object that is alive, or `nil`.
    var liveObject: AnyObject? {
        if case .object(let reference) = kind { reference.object } else { nil }
    }
}

extension OperationOwner: Hashable {
    /// Returns a Boolean value that indicates whether two owners are the same object or have equal names.
    public static func == (left: OperationOwner, right: OperationOwner) -> Bool {
        // A new object may have the address of an owner that is gone. Only one of the two is gone then.
        left.key == right.key && left.isGone == right.isGone
    }

    /// Hashes the identity of the object, or the name.
    public func hash(into hasher: inout Hasher) { hasher.combine(key) }
}

extension OperationOwner: ExpressibleByStringLiteral, CustomStringConvertible {
    /// Creates an owner that is identified by a name.
    public init(stringLiteral name: String) { self = .named(name) }

    /// A description with the name in quotation marks, or with the type of the object.
    public var description: String {
        switch kind {
        case .object(let reference): "\(reference.type)"
        case .name(let name): "\"\(name)\""
        }
    }
}

extension OperationOwner {
    /// Cancels all operations that belong to an object, regardless of where they run.
    ///
    /// The object may call this method in its `deinit`. The duration of the call depends only on the number of
    /// operations that belong to the object. Operations that get this owner during the call might not be canceled.
    ///
    /// - Parameters:
    ///   - object: The owner, which is compared by identity.
    ///   - cause: The cause of the cancellations. The default is `nil`, which uses a cause with the code
    ///     `ownerCancelled`.
    /// - Returns: The number of operations that were canceled, excluding operations that already had an outcome.
    @discardableResult
    public static func cancelOperations(ownedBy object: AnyObject, because cause: CancellationCause? = nil) -> Int {
        OwnedOperations(of: object).cancel(because: cause)
    }

    /// Cancels all operations that belong to an owner, regardless of where they run.
    ///
    /// - Parameters:
    ///   - owner: The owner, for example a string literal, `.named(_:)` or the `owner` of an operation.
    ///   - cause: The cause of the cancellations. The default is `nil`, which uses a cause with the code
    ///     `ownerCancelled`, or `ownerGone` if the owner is an object that was freed.
    /// - Returns: The number of operations that were canceled, excluding operations that already had an outcome.
    @discardableResult
    public static func cancelOperations(ownedBy owner: OperationOwner, because cause: CancellationCause? = nil) -> Int {
        OwnedOperations(of: owner).cancel(because: cause)
    }

    /// Sets the owner of an operation, which may be a plain `Foundation.Operation`.
    ///
    /// For an operation from this package, this method has the same effect as setting its `owner`. This method does not
    /// keep a plain `Foundation.Operation` alive. Some time after the plain operation has finished, OperationKit
    /// removes the owner of the operation. If a plain operation is not in a ``QueueManager``, OperationKit does not
    /// check whether its owner was freed.
    ///
    /// - Parameters:
    ///   - operation: The operation whose owner to set.
    ///   - owner: The owner, or `nil` to remove the operation from its owner.
    public static func mark(_ operation: Operation, as owner: OperationOwner?) {
        if let own = operation as? ManagedOperation { return own.assignedOwner = owner }
        OwnerRegistry.shared.setOwner(owner, ofPlain: operation)
    }

    /// Returns the owner of an operation of any kind, or `nil` if the operation has no owner.
    package static func owner(of operation: Operation) -> OperationOwner? {
        if let own = operation as? ManagedOperation { return own.assignedOwner }
        return OwnerRegistry.shared.owner(ofPlain: operation)
    }
}

extension OperationQueue {
    /// Cancels the operations in this queue that belong to an object.
    ///
    /// Foundation provides only a list of all operations in a queue, so the duration of the call depends on the number
    /// of operations in the queue.
    ///
    /// - Parameters:
    ///   - object: The owner, which is compared by identity.
    ///   - cause: The cause of the cancellations. The default is `nil`, which uses a cause with the code
    ///     `ownerCancelled`.
    /// - Returns: The number of operations that were canceled, excluding operations that already had an outcome.
    @discardableResult
    public func cancelOperations(ownedBy object: AnyObject, because cause: CancellationCause? = nil) -> Int {
        cancel(OwnedOperations(of: object), because: cause)
    }

    /// Cancels the operations in this queue that belong to an owner.
    ///
    /// - Parameters:
    ///   - owner: The owner, for example a string literal, `.named(_:)` or the `owner` of an operation.
    ///   - cause: The cause of the cancellations. The default is `nil`, which uses a cause with the code
    ///     `ownerCancelled`, or `ownerGone` if the owner is an object that was freed.
    /// - Returns: The number of operations that were canceled, excluding operations that already had an outcome.
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

/// A token that cancels operations when it is deallocated.
///
/// When an object is deallocated, the operations that it started continue. A `deinit` that cancels these operations is
/// easy to forget. Store a token in a property instead:
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
/// When the last reference to the token is released, the token cancels its operations that have no outcome yet. The
/// cause has the code `ownerGone`. A token in a property is released together with its object.
public final class OperationOwnerToken: Sendable {
    private let reference: OwnerReference?

    /// Creates a token that is the owner of the operations that it cancels.
    public init() { reference = nil }

    /// Creates a token for the operations that belong to an object that holds the token.
    ///
    /// The token cancels the operations only when its last reference is released, so do not keep other references to
    /// the token longer than the object.
    ///
    /// - Parameter object: The owner of the operations. The token references the object weakly.
    public init(for object: AnyObject) { reference = OwnerReference(object) }

    deinit {
        guard let reference else {
            OwnedOperations(of: self).cancel(because: .ownerGone("\(Self.self)"))
            return
        }
        // As a rule, the object is being freed here, so only its address is known.
        OwnedOperations(of: OperationOwner(reference)).cancel(because: .ownerGone("\(reference.type)"))
    }

    /// The owner that you set on the operations that the token cancels.
    public var owner: OperationOwner { reference.map { OperationOwner($0) } ?? .object(self) }

    /// Cancels the operations that currently have this token's owner.
    ///
    /// You can continue to use the token.
    ///
    /// - Parameter cause: The cause of the cancellations. The default is `nil`, which uses a cause with the code
    ///   `ownerCancelled`.
    /// - Returns: The number of operations that were canceled, excluding operations that already had an outcome.
    @discardableResult
    public func cancelOperations(because cause: CancellationCause? = nil) -> Int {
        OperationOwner.cancelOperations(ownedBy: owner, because: cause)
    }
}

/// The operations of one owner that have not ended, in the order in which they arrived.
///
/// Not Sendable on purpose: only touched under the lock of the registry.
final class OwnerGroup {
    let owner: OperationOwner
    /// Each operation that left has a gap, so that the others keep their order and their positions.
    private var places: [OwnerMembership?] = []
    private var count = 0

    init(_ owner: OperationOwner) { self.owner = owner }

    var isEmpty: Bool { count == 0 }

    /// A copy of the memberships, which is read after the lock was released.
    var members: [OwnerMembership] { places.compactMap { $0 } }

    func append(_ membership: OwnerMembership) {
        membership.place = .member(self, places.count)
        places.append(membership)
        count += 1
    }

    func remove(at position: Int) {
        places[position] = nil
        count -= 1
        while case .some(.none) = places.last { places.removeLast() }
        closeGaps()
    }

    /// Removes the gaps if they are the majority, so that the memory stays bounded.
    private func closeGaps() {
        guard places.count > 32, places.count > 2 * count else { return }
        places.removeAll { $0 == nil }
        for (position, membership) in places.enumerated() { membership?.place = .member(self, position) }
    }
}

extension CommonOperationMembers {
    /// The object or name to which the operation belongs, or `nil` if the operation has no owner.
    ///
    /// The default is `nil`. If the owner is an object, the operation references the object weakly. If the object is
    /// freed before the operation begins, the operation is canceled with the cause `ownerGone`.
    public var owner: OperationOwner? {
        get { (self as ManagedOperation).assignedOwner }
        set { (self as ManagedOperation).assignedOwner = newValue }
    }
}

extension ManagedOperation {
    final var assignedOwner: OperationOwner? {
        get { (core.withLock { $0.membership } as? OwnerMembership)?.owner }
        set {
            let membership = newValue.map { OwnerMembership(of: life, to: $0) }
            let (old, hasEnded) = core.withLock { core in
                (exchange(&core.membership, with: membership), core.machine.isFinished)
            }
            // Another thread may replace the new membership before it is entered here. A withdrawn membership stays
            // outside.
            old?.withdraw()
            if let membership, !hasEnded { OwnerRegistry.shared.enter(membership) }
        }
    }
}

extension CancellationCause.Code {
    /// The program canceled the operations that belong to this operation's owner.
    public static let ownerCancelled = Self("ownerCancelled")
    /// The object to which the operation belongs was freed.
    public static let ownerGone = Self("ownerGone")
}

extension CancellationCause {
    static func ownerCancelled(_ owner: String) -> CancellationCause {
        CancellationCause(
            code: .ownerCancelled,
            message: "The operation was canceled with all other operations of its owner, \(owner).")
    }

    static func ownerGone(_ owner: String) -> CancellationCause {
        CancellationCause(
            code: .ownerGone,
            message: "The operation was canceled because its owner, \(owner), was deallocated. "
                + "If an operation should outlive this owner, give it another owner or none.")
    }
}
