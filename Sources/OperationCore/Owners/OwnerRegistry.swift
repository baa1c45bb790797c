// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The shell of ``OwnerBook``: one for the process, behind one lock.
package final class OwnerRegistry: Sendable {
    private struct State {
        var book = OwnerBook()
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
    func operations(_ query: OwnerBook.Query) -> [Operation] {
        let answer = state.withLock { $0.book.answer(query) }
        let operations = answer.members.compactMap(\.operation)
        var seen = Set<ObjectIdentifier>(minimumCapacity: operations.count)
        return operations.filter { seen.insert(ObjectIdentifier($0)).inserted }
    }

    /// How many entries there are of an owner.
    ///
    /// For tests that look for entries left behind.
    package func entryCount(_ query: OwnerBook.Query) -> Int {
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
