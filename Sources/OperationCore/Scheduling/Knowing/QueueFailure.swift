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
