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
        }
    }

    private typealias Table = UniqueWorkTable<ManagedOperation, Turn>

    private let table = Locked(Table())

    package init() {}

    /// How many keys are in use.
    package var count: Int { table.withLock { $0.count } }

    /// Adds an operation by way of `add`; returns whether it is to run.
    func add(
        _ operation: ManagedOperation, _ key: UniqueWorkKey, _ policy: UniqueWorkPolicy, queue: String,
        by add: () throws(QueueError) -> Void
    ) throws(QueueError) -> Bool {
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
            operation.cancelIfUndecided(because: .alreadyPresent(other.displayName, queue: queue))
            do throws(QueueError) {
                try add()
            } catch {
                if error.code != .full { throw error }
                operation.start()
            }
            return false
        case .waits(let others):
            replaced = others
            operation.addReportedDependency(on: turn)
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
        apply { $0.leave(operation, key) }?.come()
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
