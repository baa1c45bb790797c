// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A failure of an operation in a queue, with the operation and its error.
public struct QueueFailure: Sendable, Identifiable, CustomStringConvertible {
    /// The number of the failure, which increases with each failure in the queue.
    public let id: UInt64
    /// The operation that failed in the queue.
    public let operation: ManagedOperation
    /// The error with which the operation failed.
    public let error: any Error
    /// The time at which the operation failed.
    public let date: Date
    /// A Boolean value that indicates whether the queue has a closure that creates the operation again.
    public let canRunAgain: Bool

    /// A description with the name of the operation and the error in one line.
    public var description: String { "\(operation.displayName) failed: \(error)" }
}

/// A list of the last failures of a queue, which removes the oldest failures beyond a limit.
struct FailureList {
    struct Item: Sendable {
        let number: UInt64
        let operation: ManagedOperation
        let details: EntryDetails?
        let date: Date
    }

    private var items: [UInt64: Item] = [:]
    private var lastNumber: UInt64 = 0
    /// The number of the oldest failure that may still be in the list.
    private var oldest: UInt64 = 1
    private(set) var forgottenCount = 0
    private(set) var limit = 1000

    /// The failures in their order.
    var all: [Item] { items.values.sorted { $0.number < $1.number } }

    // The caller must release the results of these methods without holding the lock.

    mutating func add(_ entry: QueueMachine.Entry) -> [Item] {
        guard case .operation(let operation) = entry.work else { return [] }
        lastNumber += 1
        items[lastNumber] = Item(number: lastNumber, operation: operation, details: entry.details, date: Date())
        return trim()
    }

    mutating func setLimit(_ new: Int) -> [Item] {
        limit = max(new, 0)
        return trim()
    }

    /// Removes and returns a failure whose operation can be created again.
    ///
    /// - Parameters:
    ///   - failure: The failure to remove.
    ///   - name: The name of the operation. The name is read before the call, because a subclass may override it.
    ///   - queue: The name of the queue.
    /// - Throws: An ``OperationSetupError`` if the failure is not in the list, or if its operation cannot be created
    ///   again.
    mutating func take(_ failure: QueueFailure, named name: String, queue: String) throws(OperationSetupError) -> Item {
        guard let item = items[failure.id], item.operation === failure.operation else {
            throw .notListed(name, queue: queue)
        }
        guard item.details?.remake != nil else { throw .notRemakable(name, queue: queue) }
        items[failure.id] = nil
        return item
    }

    mutating func putBack(_ item: Item) -> [Item] {
        items[item.number] = item
        oldest = min(oldest, item.number)
        return trim()
    }

    mutating func removeAll() -> [Item] {
        oldest = lastNumber + 1
        return Array(exchange(&items, with: [:]).values)
    }

    private mutating func trim() -> [Item] {
        var removed: [Item] = []
        while items.count > limit {
            if let item = items.removeValue(forKey: oldest) {
                removed.append(item)
                forgottenCount += 1
            }
            oldest += 1
        }
        return removed
    }
}

extension OperationSetupError {
    static func notListed(_ operation: String, queue: String) -> OperationSetupError {
        OperationSetupError(
            .notListed,
            "\(operation) was not run again: its failure is not in the list of queue \(queue). The operation was "
                + "already run again, the failure was removed, or the operation belongs to another queue.")
    }

    static func notRemakable(_ operation: String, queue: String) -> OperationSetupError {
        OperationSetupError(
            .notRemakable,
            "\(operation) was not run again: an operation runs only once, and queue \(queue) has no closure that "
                + "creates another one. Add the operation with `add(remaking:)`.")
    }
}

// Failures, and running failed operations again.
extension QueueManager {
    /// Creates an operation with a closure, adds the operation, and stores the closure so that you can run a failed
    /// operation again.
    ///
    /// In the closure, set everything that the operation needs, such as handlers, dependencies and a timeout. The queue
    /// calls the closure immediately on the calling thread, and once more each time you run the operation again.
    ///
    /// ```swift
    /// let queue = QueueManager("uploads")
    /// try queue.add(remaking: {
    ///     ClosureOperation { try Data(contentsOf: URL(fileURLWithPath: "/tmp/it")) }
    /// })
    /// await queue.drained()
    /// try queue.runAllFailuresAgain()
    /// ```
    ///
    /// - Parameter make: A closure that creates a new operation each time it is called.
    /// - Returns: The operation that was added.
    /// - Throws: An ``OperationSetupError`` if the operation is already in a queue or a group, was started or has
    ///   ended. The method also throws this error if the queue is full or was shut down.
    @discardableResult
    public func add<Made: ManagedOperation>(
        remaking make: @escaping @Sendable () -> Made
    ) throws(OperationSetupError) -> Made {
        let operation = make()
        try engine.add(operation, details: EntryDetails(remake: make))
        return operation
    }

    /// The failures of operations that were not run again, in the order in which they occurred.
    ///
    /// The list contains at most the last ``failureLimit`` failures and keeps their operations alive. An operation that
    /// references the queue, for example in a property, keeps the queue alive as long as the operation is in the list.
    public var failures: [QueueFailure] {
        engine.state.withLock { $0.failures.all }.compactMap { item in
            guard let error = item.operation.anyError else { return nil }
            return QueueFailure(
                id: item.number, operation: item.operation, error: error, date: item.date,
                canRunAgain: item.details?.remake != nil)
        }
    }

    /// The maximum number of ``failures`` that the queue keeps.
    ///
    /// The default is 1,000. If the value is 0, the queue keeps no failures.
    public var failureLimit: Int {
        get { engine.state.withLock { $0.failures.limit } }
        set {
            engine.state.release { $0.failures.setLimit(newValue) }
        }
    }

    /// The number of failures that the queue removed because the list exceeded its limit.
    package var forgottenFailureCount: Int { engine.state.withLock { $0.failures.forgottenCount } }

    /// Removes all ``failures`` from the queue.
    public func removeAllFailures() {
        engine.state.release { $0.failures.removeAll() }
    }

    /// Creates a new operation to replace a failed one, adds the new operation to the queue, and removes the failure
    /// from ``failures``.
    ///
    /// - Parameter failure: The failure of the operation to run again.
    /// - Returns: The new operation.
    /// - Throws: An ``OperationSetupError`` with the code `notListed` if the failure is not in ``failures``, or with
    ///   another code if the queue has no closure that creates the operation again (see
    ///   ``QueueFailure/canRunAgain``). If the queue cannot add the new operation, the method throws the same error as
    ///   `add`, and the failure stays in the list.
    @discardableResult
    public func runAgain(_ failure: QueueFailure) throws(OperationSetupError) -> ManagedOperation {
        let (name, operationName) = (engine.name, failure.operation.displayName)
        let item = try engine.state.withLock { state throws(OperationSetupError) in
            try state.failures.take(failure, named: operationName, queue: name)
        }
        do throws(OperationSetupError) {
            guard let operation = item.details?.remake?() else {
                throw OperationSetupError.notRemakable(operationName, queue: name)
            }
            try engine.add(operation, details: item.details)
            return operation
        } catch {
            engine.state.release { $0.failures.putBack(item) }
            throw error
        }
    }

    /// Creates new operations for all ``failures`` that can run again, adds the operations in the order of the
    /// failures, and removes these failures from the list.
    ///
    /// If the queue has no closure that creates an operation again, the operation's failure stays in the list.
    ///
    /// - Returns: The new operations.
    /// - Throws: An ``OperationSetupError`` if the queue cannot add one of the operations. The failure of that
    ///   operation and the failures after it stay in the list.
    @discardableResult
    public func runAllFailuresAgain() throws(OperationSetupError) -> [ManagedOperation] {
        var made: [ManagedOperation] = []
        for failure in failures where failure.canRunAgain {
            do throws(OperationSetupError) {
                made.append(try runAgain(failure))
            } catch {
                // Another thread ran the operation again in the meantime.
                if error.code != .notListed { throw error }
            }
        }
        return made
    }
}
