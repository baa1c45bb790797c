// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The shell of ``OwnerIndex``: one for the process, behind one lock.
package final class OwnerRegistry: Sendable {
    private struct State {
        var book = OwnerIndex()
        /// The memberships of operations that are not of this package and have no place to keep them.
        var foreign: [ObjectIdentifier: OwnerMembership] = [:]
        /// How many of these there may be before those are looked for that ended.
        var sweepThreshold = OwnerRegistry.leastThreshold

        /// Not that of an operation that was freed and had the same address; the caller holds `operation`.
        func membership(ofForeign operation: Operation) -> OwnerMembership? {
            guard let membership = foreign[ObjectIdentifier(operation)] else { return nil }
            return membership.operation === operation ? membership : nil
        }
    }

    package static let shared = OwnerRegistry()

    private static let leastThreshold = 64
    private let state = Locked(State())

    /// Enters a membership, unless it was taken back before.
    func enter(_ membership: OwnerMembership) {
        let owner = membership.owner.liveObject
        state.withLock { $0.book.enter(membership, owner: owner) }
        withExtendedLifetime(owner) {}
    }

    /// Takes a membership back: its operation ended, or has another owner now.
    func withdraw(_ membership: OwnerMembership) {
        state.withLock { $0.book.withdraw(membership) }
    }

    /// The operations of an owner that are still there, each once, in the order in which the owner got them.
    ///
    /// An operation with an enqueued handler is entered once more, behind others that may depend on it. So its first place counts.
    func operations(_ query: OwnerIndex.Query) -> [Operation] {
        let answer = state.withLock { $0.book.answer(query) }
        let operations = answer.members.compactMap(\.operation)
        var seen = Set<ObjectIdentifier>(minimumCapacity: operations.count)
        return operations.filter { seen.insert(ObjectIdentifier($0)).inserted }
    }

    /// How many entries there are of an owner.
    ///
    /// For tests that look for entries left behind.
    package func entryCount(_ query: OwnerIndex.Query) -> Int {
        let answer = state.withLock { $0.book.answer(query) }
        return answer.members.count
    }

    /// How many operations are entered that are not of this package.
    ///
    /// For tests that look for entries left behind.
    package var foreignCount: Int { state.withLock { $0.foreign.count } }
}

// Operations that are not of this package: nobody tells of their end. So those that ended are looked for whenever there
// are twice as many as the last time, which costs each of them little and keeps none of them alive.
extension OwnerRegistry {
    /// The owner of an operation that is not of this package.
    func owner(ofForeign operation: Operation) -> OperationOwner? {
        state.withLock { $0.membership(ofForeign: operation) }?.owner
    }

    /// Sets the owner of an operation that is not of this package.
    func setOwner(_ owner: OperationOwner?, ofForeign operation: Operation) {
        let isEnded = operation.isFinished
        let membership = isEnded ? nil : owner.map { OwnerMembership(of: operation, to: $0) }
        let object = owner?.liveObject
        let isCrowded = state.withLock { state in
            if let old = state.foreign.removeValue(forKey: ObjectIdentifier(operation)) { state.book.withdraw(old) }
            guard let membership else { return false }
            state.book.enter(membership, owner: object)
            state.foreign[ObjectIdentifier(operation)] = membership
            return state.foreign.count > state.sweepThreshold
        }
        withExtendedLifetime(object) {}
        if isCrowded { sweep() }
    }

    private func sweep() {
        let all = state.withLock { $0.foreign }
        // Outside the lock: `isFinished` is whatever the user wrote.
        let ended = all.filter { $0.value.operation?.isFinished ?? true }
        state.withLock { state in
            for (identity, membership) in ended where state.foreign[identity] === membership {
                state.foreign[identity] = nil
                state.book.withdraw(membership)
            }
            state.sweepThreshold = max(2 * state.foreign.count, Self.leastThreshold)
        }
    }
}

/// Whose are which operations, as a value: entering and leaving cost the same whatever the number of both.
///
/// It knows nothing of locks, but they shape it: a weak reference is only loaded where the caller holds the object, or
/// the object is handed out, so that nothing of the user's is freed under a lock.
package struct OwnerIndex {
    /// Those whose operations are asked for.
    package enum Query {
        /// An object, which may be in its `deinit`, where no weak reference leads to it any more.
        case object(AnyObject, mayBeInDeinit: Bool)
        /// An object that was freed.
        case gone(ObjectIdentifier)
        case name(String)
    }

    package struct Answer {
        package var members: [OwnerMembership] = []
        /// Met on the way, and to be let go of outside every lock.
        var stranger: AnyObject?
    }

    private var groups: [OwnerKey: OwnerGroup] = [:]
    /// How many memberships were looked at to answer queries.
    package private(set) var visits = 0

    package init() {}

    package var groupCount: Int { groups.count }

    /// Enters a membership, unless it was taken back before.
    ///
    /// - Parameter owner: The owner, where it is an object. One that is gone gets no entry: its operations are cancelled
    ///   when they are started.
    package mutating func enter(_ membership: OwnerMembership, owner: AnyObject?) {
        guard case .outside = membership.place else { return }
        let key = membership.owner.key
        if case .object = key, owner == nil { return membership.place = .withdrawn }
        let group = self.group(at: key, of: owner) ?? OwnerGroup(membership.owner)
        groups[key] = group
        group.append(membership)
    }

    /// Takes a membership back.
    package mutating func withdraw(_ membership: OwnerMembership) {
        guard case .member(let group, let position) = membership.place else {
            return membership.place = .withdrawn
        }
        membership.place = .withdrawn
        group.remove(at: position)
        guard group.isEmpty else { return }
        // The group of an object that is gone may have made room for that of another at the same address.
        let key = membership.owner.key
        if groups[key] === group { groups[key] = nil }
    }

    /// The memberships of an owner, in the order in which they came.
    ///
    /// In storage of its own: it is read after the lock was given back, and shared storage would have to be copied by the
    /// next change.
    package mutating func answer(_ query: Query) -> Answer {
        var answer = Answer()
        switch query {
        case .name(let name): answer.members = groups[.name(name)]?.members ?? []
        case .object(let object, let mayBeInDeinit):
            let key = OwnerKey.object(ObjectIdentifier(object))
            let group = group(at: key, of: object) ?? (mayBeInDeinit ? self.group(at: key, of: nil) : nil)
            answer.members = group?.members ?? []
        case .gone(let identity):
            guard let group = groups[.object(identity)] else { break }
            answer.stranger = group.owner.liveObject
            if answer.stranger == nil { answer.members = group.members }
        }
        visits += answer.members.count
        return answer
    }

    /// The group of a name or of just this object, not of another one that has or had its address.
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

    /// Those of an object, which may be in its `deinit`.
    init(of object: AnyObject) {
        let query = OwnerIndex.Query.object(object, mayBeInDeinit: OwnerReference.isBeingFreed(object))
        operations = OwnerRegistry.shared.operations(query)
        owner = "\(type(of: object))"
        isOwnerGone = false
    }

    init(of owner: OperationOwner) {
        self.owner = "\(owner)"
        switch owner.kind {
        case .name(let name):
            operations = OwnerRegistry.shared.operations(.name(name))
            isOwnerGone = false
        case .object(let reference):
            let object = reference.object
            operations = OwnerRegistry.shared.operations(
                object.map { .object($0, mayBeInDeinit: false) } ?? .gone(reference.identity))
            isOwnerGone = object == nil
        }
    }

    /// Cancels those that have no outcome; returns how many these were.
    @discardableResult
    func cancel(because cause: CancellationCause?, where isMeant: (Operation) -> Bool = { _ in true }) -> Int {
        let cause = cause ?? (isOwnerGone ? .ownerGone(owner) : .ownerCancelled(owner))
        let meant = operations.filter(isMeant)
        let engines = Self.engines(of: meant)
        for engine in engines { engine.hold() }
        var count = 0
        // The last first: outside of our queues they may wait for the others, and would begin when those are cancelled.
        for operation in meant.reversed() where operation.cancelForOwner(because: cause) { count += 1 }
        for engine in engines { engine.release() }
        return count
    }

    /// The queues of ours that hold some of them, each once.
    private static func engines(of operations: [Operation]) -> [QueueEngine] {
        var engines: [ObjectIdentifier: QueueEngine] = [:]
        for case let operation as ManagedOperation in operations {
            if let engine = operation.core.withLock({ $0.host }) { engines[ObjectIdentifier(engine)] = engine }
        }
        return Array(engines.values)
    }
}

extension Operation {
    /// Cancels the operation; returns whether it had no outcome.
    fileprivate func cancelForOwner(because cause: CancellationCause) -> Bool {
        guard let own = self as? ManagedOperation else {
            guard !isCancelled, !isFinished else { return false }
            cancel()
            return true
        }
        return own.cancelAndSilence(because: cause)
    }
}

extension QueueEngine {
    /// Cancels those of the operations that are in this queue.
    func cancel(_ owned: OwnedOperations, because cause: CancellationCause?) -> Int {
        // Only those of other kinds are looked for among all of the queue, and then once.
        var others: Set<ObjectIdentifier>?
        return owned.cancel(because: cause) { operation in
            if let own = operation as? ManagedOperation { return own.core.withLock { $0.host } === self }
            let known = others ?? foreignOperations
            others = known
            return known.contains(ObjectIdentifier(operation))
        }
    }

    private var foreignOperations: Set<ObjectIdentifier> {
        Set(operations.lazy.filter { !($0 is ManagedOperation) }.map { ObjectIdentifier($0) })
    }
}

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

/// That an operation belongs to an owner: held by the operation and, until it ends, by the owner's group.
package final class OwnerMembership: Sendable {
    enum Place {
        /// Not entered yet.
        case outside
        /// At this position of that group.
        case member(OwnerGroup, Int)
        /// Taken back, or never to be entered.
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

    /// The operation, if it is still there.
    ///
    /// Not to be asked for under a lock: what is returned may be the last reference.
    package var operation: Operation? { reference }
}
