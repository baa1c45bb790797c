// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// What failed, and running it again.
extension QueueManager {
    /// Makes an operation and adds it, and keeps the closure to make another one like it if that fails.
    ///
    /// What the operation needs (handlers, dependencies, a timeout) is set in the closure. It is called once now and once
    /// for each time that it is run again, and must give a new operation each time.
    ///
    /// ```swift
    /// let queue = QueueManager("uploads")
    /// try queue.add(remaking: { ClosureOperation { try Data(contentsOf: URL(fileURLWithPath: "/tmp/it")) } })
    /// await queue.drained()
    /// try queue.runAllFailuresAgain()
    /// ```
    ///
    /// - Returns: The operation that was added.
    /// - Throws: If it is in a queue, was started, or ended; if the queue is full or was shut down.
    @discardableResult
    public func add<Made: ManagedOperation>(
        remaking make: @escaping @Sendable () -> Made
    ) throws(QueueError) -> Made {
        let operation = make()
        try engine.add(operation, details: EntryDetails(remake: make))
        return operation
    }

    /// The operations that failed and were not run again, the oldest first; the last ``failureLimit`` of them.
    ///
    /// The list holds strong references to the operations. An operation that references the queue, for instance in a
    /// property, keeps the queue in memory as long as the operation is in the list.
    public var failures: [QueueFailure] {
        engine.state.withLock { $0.failures.all }.compactMap { item in
            guard let error = item.operation.anyError else { return nil }
            return QueueFailure(
                id: item.number, operation: item.operation, error: error, date: item.date,
                canRunAgain: item.details?.remake != nil)
        }
    }

    /// How many failures are kept: 1,000 unless you set another number; with 0, none is.
    public var failureLimit: Int {
        get { engine.state.withLock { $0.failures.limit } }
        set {
            let removed = engine.state.withLock { $0.failures.setLimit(newValue) }
            withExtendedLifetime(removed) {}
        }
    }

    /// How many failures are not in the list because there were more than may be kept.
    public var forgottenFailureCount: Int { engine.state.withLock { $0.failures.forgottenCount } }

    /// Removes all failures from the list.
    public func removeAllFailures() {
        let removed = engine.state.withLock { $0.failures.removeAll() }
        withExtendedLifetime(removed) {}
    }

    /// Makes an operation that failed anew, adds it, and removes the failure from the list.
    ///
    /// - Returns: The new operation.
    /// - Throws: If there is no way to make another one, if it is not in the list, or if the queue does not take it; the
    ///   failure stays in the list then.
    @discardableResult
    public func runAgain(_ failure: QueueFailure) throws(QueueError) -> ManagedOperation {
        let (name, operationName) = (engine.name, failure.operation.displayName)
        let item = try engine.state.withLock { state throws(QueueError) in
            try state.failures.take(failure, named: operationName, queue: name)
        }
        do throws(QueueError) {
            guard let operation = item.details?.remake?() else {
                throw QueueError.notRemakable(operationName, queue: name)
            }
            try engine.add(operation, details: item.details)
            return operation
        } catch {
            let removed = engine.state.withLock { $0.failures.putBack(item) }
            withExtendedLifetime(removed) {}
            throw error
        }
    }

    /// Makes all operations anew that failed and can be, adds them in their order, and removes their failures.
    ///
    /// Those that were added without a way to make another one stay in the list.
    ///
    /// - Returns: The new operations.
    /// - Throws: If the queue does not take one of them; it and those after it stay in the list then.
    @discardableResult
    public func runAllFailuresAgain() throws(QueueError) -> [ManagedOperation] {
        var made: [ManagedOperation] = []
        for failure in failures where failure.canRunAgain {
            do throws(QueueError) {
                made.append(try runAgain(failure))
            } catch {
                // Somebody else ran it again meanwhile.
                if error.code != .notListed { throw error }
            }
        }
        return made
    }
}
