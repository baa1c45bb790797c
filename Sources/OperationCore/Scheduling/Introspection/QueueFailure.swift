// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// An operation that failed in a queue.
public struct QueueFailure: Sendable, Identifiable, CustomStringConvertible {
    /// Counts up from failure to failure of a queue.
    public let id: UInt64
    /// The operation that failed.
    public let operation: ManagedOperation
    /// The operation's error, of whatever type.
    public let error: any Error
    /// When it failed.
    public let date: Date
    /// Whether the queue can make another operation like it.
    public let canRunAgain: Bool

    /// The name of the operation and the error in one line.
    public var description: String { "\(operation.displayName) failed: \(error)" }
}

/// The last failures of a queue, up to a number, the oldest of which give way.
struct FailureList {
    struct Item: Sendable {
        let number: UInt64
        let operation: ManagedOperation
        let details: EntryDetails?
        let date: Date
    }

    private var items: [UInt64: Item] = [:]
    private var lastNumber: UInt64 = 0
    /// All before it are gone.
    private var oldest: UInt64 = 1
    private(set) var forgottenCount = 0
    private(set) var limit = 1000

    /// In the order in which they came.
    var all: [Item] { items.values.sorted { $0.number < $1.number } }

    // What these return is to be let go of outside the lock.

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

    /// Takes out one that can be made anew; throws if it is not there, or cannot.
    ///
    /// - Parameter name: How the operation is called; asked for before, since a subclass may say it.
    mutating func take(_ failure: QueueFailure, named name: String, queue: String) throws(QueueError) -> Item {
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

extension QueueError {
    static func notListed(_ operation: String, queue: String) -> QueueError {
        QueueError(
            .notListed, queue: queue,
            "\(operation) was not run again: its failure is not in the list of queue \(queue). It was run again before, "
                + "or removed, or it is another queue's.")
    }

    static func notRemakable(_ operation: String, queue: String) -> QueueError {
        QueueError(
            .notRemakable, queue: queue,
            "\(operation) was not run again: an operation runs once, and queue \(queue) does not know how to make another "
                + "like it. Add it by `add(remaking:)`.")
    }
}

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
