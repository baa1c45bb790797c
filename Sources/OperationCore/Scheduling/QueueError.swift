// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Why a queue did not take an operation.
public struct QueueError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of the error.
    public let code: Code
    /// What was refused, why, and what to do, as a sentence.
    public let message: String
    /// The name of the queue.
    public let queue: String

    /// The sentence and the kind, for a log line.
    public var description: String { "\(message) [\(code)]" }

    init(_ code: Code, queue: String, _ message: String) {
        self.code = code
        self.queue = queue
        self.message = message
    }

    /// The kind of an error.
    ///
    /// New kinds may be added; compare, and keep a way for those you do not know.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind, fit for a metric's label.
        public let description: String

        private init(_ name: String) { description = name }

        /// The operation is in a queue.
        public static let alreadyAdded = Code("alreadyAdded")
        /// The operation was started by hand.
        public static let alreadyStarted = Code("alreadyStarted")
        /// The operation has ended.
        public static let alreadyFinished = Code("alreadyFinished")
        /// The queue has as many entries as it may have.
        public static let full = Code("full")
        /// The task was cancelled that waited for room.
        public static let cancelled = Code("cancelled")
        /// The queue was shut down.
        public static let closed = Code("closed")
        /// The setting is none that a queue can have.
        public static let badSetting = Code("badSetting")
        /// A body waits for the queue that runs it.
        public static let waitsForItself = Code("waitsForItself")
        /// No queue of that name was defined, or one was already.
        public static let name = Code("name")
        /// There is no way to make the operation that failed anew.
        public static let notRemakable = Code("notRemakable")
        /// The failure is not in the list of the queue, or no more.
        public static let notListed = Code("notListed")
        /// The operation would wait for one that waits for it.
        public static let cycle = Code("cycle")
        /// The operations of a chain cannot wait for each other.
        public static let chain = Code("chain")
    }
}

extension QueueError {
    static func full(queue: String, capacity: Int, more: Int) -> QueueError {
        let advice = more > capacity ? "Add fewer at once" : "Await `addWhenThereIsRoom`"
        return QueueError(
            .full, queue: queue,
            "Queue \(queue) has no room for \(more) more: it may have \(capacity) entries that have not ended. "
                + "\(advice), or make `capacity` larger.")
    }

    static func cancelled(_ what: String, queue: String) -> QueueError {
        QueueError(
            .cancelled, queue: queue,
            "\(what) was not added to queue \(queue): the task that waited for room was cancelled.")
    }

    static func waitsForItself(_ queue: String) -> QueueError {
        QueueError(
            .waitsForItself, queue: queue,
            "A body that queue \(queue) runs cannot wait for the queue to run empty: it would wait for itself. Wait for the "
                + "operations that you mean.")
    }

    static func badWidth(_ width: Int, queue: String) -> QueueError {
        QueueError(
            .badSetting, queue: queue,
            "Queue \(queue) cannot run \(width) operations at once. Use a width of one or more, or nil for no limit.")
    }

    static func closed(queue: String) -> QueueError {
        QueueError(.closed, queue: queue, "Queue \(queue) was shut down and takes nothing more. Make another queue.")
    }

    static func cycle(_ operation: String, queue: String, behind other: String, _ error: DependencyError) -> QueueError
    {
        QueueError(
            .cycle, queue: queue,
            "\(operation) was not added to queue \(queue) behind \(other), which has the same key: \(error.message)")
    }

    static func alreadyAdded(_ operation: String, queue: String, other: String) -> QueueError {
        QueueError(
            .alreadyAdded, queue: queue,
            "\(operation) was not added to queue \(queue): it is in \(other). An operation runs once; make another."
        )
    }

    static func alreadyStarted(_ operation: String, queue: String) -> QueueError {
        QueueError(
            .alreadyStarted, queue: queue,
            "\(operation) was not added to queue \(queue): it was started by hand. Do one or the other.")
    }

    static func alreadyFinished(_ operation: String, queue: String) -> QueueError {
        QueueError(
            .alreadyFinished, queue: queue,
            "\(operation) was not added to queue \(queue): it has ended. An operation runs once; make another.")
    }
}
