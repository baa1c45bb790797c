// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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

/// The operations of one owner that have not ended, in the order in which they came.
///
/// Not Sendable on purpose: only touched under the lock of the registry.
final class OwnerGroup {
    let owner: OperationOwner
    /// Who left leaves a gap, so that the others keep their order and their positions.
    private var places: [OwnerMembership?] = []
    private var count = 0

    init(_ owner: OperationOwner) { self.owner = owner }

    var isEmpty: Bool { count == 0 }

    /// In storage of its own: it is read after the lock was given back.
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

    /// Once most places are gaps, so that coming and going for ever takes no memory.
    private func closeGaps() {
        guard places.count > 32, places.count > 2 * count else { return }
        places.removeAll { $0 == nil }
        for (position, membership) in places.enumerated() { membership?.place = .member(self, position) }
    }
}

extension CommonOperationMembers {
    /// On whose behalf the operation runs: an object, held weakly, or a name; nil, as from the start, for nobody's.
    ///
    /// All operations of an owner can be cancelled together, until they end. One whose owner is gone is not begun: it is
    /// cancelled with the cause `ownerGone` when it is started.
    public var owner: OperationOwner? {
        get { (self as ManagedOperation).assignedOwner }
        set { (self as ManagedOperation).assignedOwner = newValue }
    }
}

extension ManagedOperation {
    final var assignedOwner: OperationOwner? {
        get { core.withLock { $0.membership }?.owner }
        set {
            let membership = newValue.map { OwnerMembership(of: life, to: $0) }
            let (old, hasEnded) = core.withLock { core in
                (exchange(&core.membership, with: membership), core.machine.isFinished)
            }
            // Another thread may exchange the new one before it is entered here: one that was withdrawn stays outside.
            if let old { OwnerRegistry.shared.withdraw(old) }
            if let membership, !hasEnded { OwnerRegistry.shared.enter(membership) }
        }
    }

    /// Cancels an operation that is about to begin if its owner is gone.
    final func cancelIfOwnerIsGone() {
        guard let owner = core.withLock({ $0.machine.ending == nil ? $0.membership : nil })?.owner, owner.isGone else {
            return
        }
        cancelIfUndecided(because: .ownerGone("\(owner)"))
    }
}

extension CancellationCause.Code {
    /// All operations of the operation's owner were cancelled.
    public static let ownerCancelled = Self("ownerCancelled")
    /// The object that owned the operation was freed.
    public static let ownerGone = Self("ownerGone")
}

extension CancellationCause {
    static func ownerCancelled(_ owner: String) -> CancellationCause {
        CancellationCause(
            code: .ownerCancelled, message: "The operation was cancelled with all others of its owner, \(owner).")
    }

    static func ownerGone(_ owner: String) -> CancellationCause {
        CancellationCause(
            code: .ownerGone,
            message: "The operation was cancelled because its owner, \(owner), was freed. "
                + "Give operations that are to outlive it another owner, or none.")
    }
}
