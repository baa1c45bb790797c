// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The shell of ``OwnerIndex``, with one instance and one lock for the process.
package final class OwnerRegistry: Sendable {
    private struct State {
        var book = OwnerIndex()
        /// The memberships of plain operations, which have no property for them.
        var plain: [ObjectIdentifier: OwnerMembership] = [:]
        /// The number of these memberships above which those of ended operations are removed.
        var sweepThreshold = OwnerRegistry.leastThreshold

        /// Returns the membership of a plain operation, and not that of a freed operation that had the same address.
        ///
        /// The caller holds `operation`.
        func membership(ofPlain operation: Operation) -> OwnerMembership? {
            guard let membership = plain[ObjectIdentifier(operation)] else { return nil }
            return membership.operation === operation ? membership : nil
        }
    }

    package static let shared = OwnerRegistry()

    private static let leastThreshold = 64
    private let state = Locked(State())

    /// Enters a membership, unless it was withdrawn before.
    func enter(_ membership: OwnerMembership) {
        let owner = membership.owner.liveObject
        state.withLock { $0.book.enter(membership, owner: owner) }
        extendLifetime(owner)
    }

    /// Withdraws a membership, because its operation ended or has another owner.
    func withdraw(_ membership: OwnerMembership) {
        state.withLock { $0.book.withdraw(membership) }
    }

    /// Returns the operations of an owner that still exist, each once, in the order in which the owner got them.
    ///
    /// An operation with an enqueued handler is entered once more, behind others that may depend on it. So its first
    /// position counts.
    func operations(_ key: OwnerKey, of object: AnyObject? = nil, mayBeInDeinit: Bool = false) -> [Operation] {
        let answer = state.withLock { $0.book.answer(key, of: object, mayBeInDeinit: mayBeInDeinit) }
        let operations = answer.members.compactMap(\.operation)
        var seen = Set<ObjectIdentifier>(minimumCapacity: operations.count)
        return operations.filter { seen.insert(ObjectIdentifier($0)).inserted }
    }

    /// Returns the number of entries of an owner.
    ///
    /// Tests use it to find entries that were left behind.
    package func entryCount(_ key: OwnerKey, of object: AnyObject? = nil) -> Int {
        state.withLock { $0.book.answer(key, of: object) }.members.count
    }

    /// The number of plain operations that are entered.
    ///
    /// Tests use it to find entries that were left behind.
    package var plainCount: Int { state.withLock { $0.plain.count } }
}

// Plain operations do not report their end. So whenever their number has doubled, the entries of those that ended are
// removed. The removal costs little for each operation, and the entries keep no operation alive.
extension OwnerRegistry {
    /// Returns the owner of a plain operation.
    func owner(ofPlain operation: Operation) -> OperationOwner? {
        state.withLock { $0.membership(ofPlain: operation) }?.owner
    }

    /// Sets the owner of a plain operation.
    func setOwner(_ owner: OperationOwner?, ofPlain operation: Operation) {
        let isEnded = operation.isFinished
        let membership = isEnded ? nil : owner.map { OwnerMembership(of: operation, to: $0) }
        let object = owner?.liveObject
        let needsSweep = state.withLock { state in
            if let old = state.plain.removeValue(forKey: ObjectIdentifier(operation)) { state.book.withdraw(old) }
            guard let membership else { return false }
            state.book.enter(membership, owner: object)
            state.plain[ObjectIdentifier(operation)] = membership
            return state.plain.count > state.sweepThreshold
        }
        extendLifetime(object)
        if needsSweep { sweep() }
    }

    private func sweep() {
        let all = state.withLock { $0.plain }
        // Outside the lock, because `isFinished` may be user code.
        let ended = all.filter { $0.value.operation?.isFinished ?? true }
        state.withLock { state in
            for (identity, membership) in ended where state.plain[identity] === membership {
                state.plain[identity] = nil
                state.book.withdraw(membership)
            }
            state.sweepThreshold = max(2 * state.plain.count, Self.leastThreshold)
        }
    }
}

/// The operations of all owners, as a value in which entering and leaving take constant time.
///
/// The index knows no locks, but it is made for use under one. A weak reference is only loaded if the caller holds the
/// object or the object is returned. So no user object is freed under the lock.
package struct OwnerIndex {
    private var groups: [OwnerKey: OwnerGroup] = [:]
    /// The number of memberships that queries have returned.
    package private(set) var visits = 0

    package init() {}

    package var groupCount: Int { groups.count }

    /// Enters a membership, unless it was withdrawn before.
    ///
    /// - Parameter owner: The owner, if it is an object. If the object is gone, the membership is not entered, because
    ///   the operation will be canceled when it is started.
    package mutating func enter(_ membership: OwnerMembership, owner: AnyObject?) {
        guard case .outside = membership.place else { return }
        let key = membership.owner.key
        if case .object = key, owner == nil { return membership.place = .withdrawn }
        let group = self.group(at: key, of: owner) ?? OwnerGroup(membership.owner)
        groups[key] = group
        group.append(membership)
    }

    /// Withdraws a membership.
    package mutating func withdraw(_ membership: OwnerMembership) {
        guard case .member(let group, let position) = membership.place else {
            return membership.place = .withdrawn
        }
        membership.place = .withdrawn
        group.remove(at: position)
        guard group.isEmpty else { return }
        // If the object is gone, a new object at its address may have a group in place of this one.
        let key = membership.owner.key
        if groups[key] === group { groups[key] = nil }
    }

    /// Returns the memberships of an owner, in the order in which they arrived.
    ///
    /// The result is a copy, because it is read after the lock was released. Shared storage would have to be copied by
    /// the next change. The result may also contain an object that now has the address of a freed owner. Release this
    /// object without holding a lock.
    ///
    /// - Parameters:
    ///   - object: The owner, if it is an object that was not freed.
    ///   - mayBeInDeinit: Whether the object may be in its `deinit`, where its weak references are `nil`.
    package mutating func answer(
        _ key: OwnerKey, of object: AnyObject? = nil, mayBeInDeinit: Bool = false
    ) -> (members: [OwnerMembership], liveObject: AnyObject?) {
        guard let group = groups[key] else { return ([], nil) }
        let liveObject = group.owner.liveObject
        guard liveObject === object || mayBeInDeinit && liveObject == nil else { return ([], liveObject) }
        let members = group.members
        visits += members.count
        return (members, liveObject)
    }

    /// Returns the group of a name or of exactly this object, and not of another object that has or had its address.
    private func group(at key: OwnerKey, of owner: AnyObject?) -> OwnerGroup? {
        guard let group = groups[key], group.owner.liveObject === owner else { return nil }
        return group
    }
}

/// The operations of one owner at one moment.
struct OwnedOperations {
    private let operations: [Operation]
    private let owner: String
    private let isOwnerGone: Bool

    /// Creates the list for an object, which may be in its `deinit`.
    init(of object: AnyObject) {
        operations = OwnerRegistry.shared.operations(
            .object(ObjectIdentifier(object)), of: object, mayBeInDeinit: OwnerReference.isBeingFreed(object))
        owner = "\(type(of: object))"
        isOwnerGone = false
    }

    init(of owner: OperationOwner) {
        self.owner = "\(owner)"
        let object = owner.liveObject
        operations = OwnerRegistry.shared.operations(owner.key, of: object)
        isOwnerGone = if case .object = owner.kind { object == nil } else { false }
    }

    /// Cancels the operations that have no outcome, and returns their number.
    @discardableResult
    func cancel(because cause: CancellationCause?, where isIncluded: (Operation) -> Bool = { _ in true }) -> Int {
        let cause = cause ?? (isOwnerGone ? .ownerGone(owner) : .ownerCancelled(owner))
        let included = operations.filter(isIncluded)
        let engines = Self.engines(of: included)
        for engine in engines { engine.hold() }
        var count = 0
        // The last one comes first. Outside our queues, it may wait for the others, and would begin when they are
        // canceled.
        for operation in included.reversed() where operation.cancelForOwner(because: cause) { count += 1 }
        for engine in engines { engine.release() }
        return count
    }

    /// Returns the queues of this package that hold some of the operations, each once.
    private static func engines(of operations: [Operation]) -> [HostQueue] {
        var engines: [ObjectIdentifier: HostQueue] = [:]
        for case let operation as ManagedOperation in operations {
            if let engine = operation.core.withLock({ $0.host }) { engines[ObjectIdentifier(engine)] = engine }
        }
        return Array(engines.values)
    }
}

extension Operation {
    /// Cancels the operation, and returns whether it had no outcome.
    fileprivate func cancelForOwner(because cause: CancellationCause) -> Bool {
        guard let own = self as? ManagedOperation else {
            guard !isCancelled, !isFinished else { return false }
            cancel()
            return true
        }
        return own.cancelAndSilence(because: cause)
    }
}

/// A weak reference to an owner object, and the facts about the object that remain when it is gone.
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

    /// The object, or `nil` as soon as its `deinit` has begun.
    ///
    /// Do not read it under a lock unless the caller holds the object, because the returned reference may be the last
    /// one.
    var object: AnyObject? { reference }

    /// Returns whether `object` may be in its `deinit`, where its weak references are `nil`.
    static func isBeingFreed(_ object: AnyObject) -> Bool {
        #if canImport(ObjectiveC)
            // With Objective-C, a weak reference to an object that is being freed is not allowed, so the object cannot
            // be asked.
            return true
        #else
            return OwnerReference(object).object == nil
        #endif
    }
}

/// The key under which the operations of an owner are found.
package enum OwnerKey: Hashable {
    /// The address of an object, which another object may get later.
    case object(ObjectIdentifier)
    case name(String)
}

/// The membership of an operation in the group of its owner.
///
/// The operation holds it, and so does the group until the operation ends.
package final class OwnerMembership: OwnerLink, @unchecked Sendable {
    enum Place {
        /// The membership was not entered yet.
        case outside
        /// The membership is at this position of this group.
        case member(OwnerGroup, Int)
        /// The membership was withdrawn, or will never be entered.
        case withdrawn
    }

    let owner: OperationOwner
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var reference: Operation?
    // Sendable: only touched under the lock of the registry.
    nonisolated(unsafe) var place = Place.outside

    package init(of operation: Operation, to owner: OperationOwner) {
        self.owner = owner
        reference = operation
    }

    /// The operation, if it still exists.
    ///
    /// Do not read it under a lock, because the returned reference may be the last one.
    package var operation: Operation? { reference }

    override func withdraw() { OwnerRegistry.shared.withdraw(self) }

    override var causeIfOwnerIsGone: CancellationCause? { owner.isGone ? .ownerGone("\(owner)") : nil }

    override func entered(again operation: ManagedOperation) -> OwnerLink {
        let membership = OwnerMembership(of: operation, to: owner)
        OwnerRegistry.shared.enter(membership)
        return membership
    }
}
