// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The shell of ``UniqueWorkTable``, one for each queue.
package final class UniqueWork: Sendable {
    /// Ends when the operation that waits for it is the first of its line.
    private final class Turn: AsyncOperation<Void, Never>, @unchecked Sendable {
        // Sendable: it adds no state to its superclass.

        override func main() {}

        func come() {
            start()
            finish(withResult: ())
            // It may follow one that never ends, since the queue refused it. Once started, it is given no edge any more.
            for other in dependencies { removeEdges(to: other) }
        }

        /// Nobody needs it any more.
        func giveUp() {
            cancelIfUndecided(because: .requested)
            startIfNeeded()
        }

        /// Shows what it waits for, so that a cycle through it is seen; what opens it is the table.
        func follow(_ other: ManagedOperation) {
            // One that has come needs to wait for nothing.
            _ = try? DependencyGraph.connect(self, to: other, judge: nil)
        }
    }

    private typealias Table = UniqueWorkTable<ManagedOperation, Turn>

    private let table = Locked(Table())

    package init() {}

    /// How many keys are in use.
    package var count: Int { table.withLock { $0.count } }

    /// How many operations are held; for tests.
    package var storedCount: Int { table.withLock { $0.storedCount } }

    /// Adds an operation by way of `add`; returns whether it is to run.
    func add(
        _ added: ManagedOperation, _ key: UniqueWorkKey, _ policy: UniqueWorkPolicy, queue: String,
        by add: () throws(QueueError) -> Void
    ) throws(QueueError) -> Bool {
        // A mapped operation may be freed before its original has ended.
        let operation = added.life
        // One that the queue will refuse replaces nobody.
        guard operation.isUnused else {
            try add()
            return false
        }
        let decided = policy == .keep ? apply { $0.present(key) }.filter(\.hasOutcome) : []
        let turn = Turn()
        turn.name = "earlier work with the same key"
        let arrival = withExtendedLifetime(decided) {
            apply { $0.arrive(operation, key, policy, turn: turn, decided: Set(decided.map(ObjectIdentifier.init))) }
        }
        var replaced: [ManagedOperation] = []
        switch arrival {
        case .refused(let other):
            // It ends in the queue if there is room, so that it counts there; a queue that has none still says no.
            added.cancelIfUndecided(because: .alreadyPresent(other.displayName, queue: queue))
            do throws(QueueError) {
                try add()
            } catch {
                if error.code != .full { throw error }
                added.start()
            }
            return false
        case .waits(let ahead, let others):
            replaced = others
            // Those that will be cancelled wait for nothing then.
            let upstream = policy == .replace ? others.filter(\.hasOutcome) : [ahead.work]
            let turnAhead = policy == .replace ? nil : ahead.turn
            for other in upstream { follow(other, turnAhead, key, with: turn) }
            do throws(DependencyError) {
                try operation.connect(to: turn, judge: nil)
            } catch {
                // One that was started just now is refused by the queue.
                if error.code == .cycle {
                    leave(operation, key)
                    throw .cycle(operation.displayName, queue: queue, behind: ahead.work.displayName, error)
                }
            }
        case .runs: break
        }
        do {
            try add()
        } catch {
            operation.removeEdges(to: turn)
            leave(operation, key)
            throw error
        }
        operation.whenEnded { [weak self, weak operation] in
            if let operation { self?.leave(operation, key) }
        }
        let cause = CancellationCause.replaced(operation.displayName, queue: queue)
        for other in replaced { other.cancelIfUndecided(because: cause) }
        return true
    }

    private func leave(_ operation: ManagedOperation, _ key: UniqueWorkKey) {
        switch apply({ $0.leave(operation, key) }) {
        case .nothing: break
        case .opens(let turn): turn.come()
        case .closesUp(let left, let next, let ahead):
            // The new edges before the old ones go, so that a cycle is seen at every moment.
            follow(ahead.work, ahead.turn, key, with: next)
            next.removeEdges(to: operation)
            next.removeEdges(to: left)
            // Another thread may be about to let the next one follow it.
            left.giveUp()
        }
    }

    /// Lets a turn follow one of the line, and the turn of that one.
    private func follow(
        _ other: ManagedOperation, _ otherTurn: Turn?, _ key: UniqueWorkKey, with turn: Turn
    ) {
        turn.follow(other)
        if let otherTurn { turn.follow(otherTurn) }
        // Refused by the queue just before, it left when there was no edge yet to take back, and may never end.
        guard !apply({ $0.holds(other, key) }) else { return }
        turn.removeEdges(to: other)
        if let otherTurn { turn.removeEdges(to: otherTurn) }
    }

    private func apply<Action>(_ event: (inout Table) -> Action) -> Action {
        let (action, trash) = table.withLock { table in (event(&table), table.takeTrash()) }
        withExtendedLifetime(trash) {}
        return action
    }
}

extension ManagedOperation {
    /// Whether neither a queue of this package nor a start by hand has taken the operation.
    final var isUnused: Bool {
        core.withLock { $0.host == nil && !$0.isStartUnderWay && !$0.machine.isFinished }
    }

    final var hasOutcome: Bool { core.withLock { $0.machine.ending != nil } }
}
