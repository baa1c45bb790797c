// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// An error that a queue throws, for example when it cannot add an operation.
public struct QueueError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The code that identifies the error.
    public let code: Code
    /// A message that describes the error, its cause and a possible solution.
    public let message: String
    /// The name of the queue that threw the error.
    public let queue: String

    /// The message and the code, for a log line.
    public var description: String { "\(message) [\(code)]" }

    init(_ code: Code, queue: String, _ message: String) {
        self.code = code
        self.queue = queue
        self.message = message
    }

    /// A code that identifies a queue error.
    ///
    /// Future versions may add codes, so always handle unknown codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code, which is suitable as a metric label.
        public let description: String

        private init(_ name: String) { description = name }

        /// The operation is already in a queue or a group.
        public static let alreadyAdded = Code("alreadyAdded")
        /// The operation was already started.
        public static let alreadyStarted = Code("alreadyStarted")
        /// The operation has already ended.
        public static let alreadyFinished = Code("alreadyFinished")
        /// The queue has reached its capacity.
        public static let full = Code("full")
        /// The task that waited for space in the queue was canceled.
        public static let cancelled = Code("cancelled")
        /// The queue was shut down.
        public static let closed = Code("closed")
        /// A setting, such as the width, has a value that is not valid.
        public static let badSetting = Code("badSetting")
        /// A body called a method that waits for the queue that runs the body, so the wait would never end.
        public static let waitsForItself = Code("waitsForItself")
        /// No queue with the given name is defined, or a queue with this name is already defined.
        public static let name = Code("name")
        /// The queue has no closure that can create the failed operation again.
        public static let notRemakable = Code("notRemakable")
        /// The failure is not in the queue's list of failures.
        public static let notListed = Code("notListed")
        /// The operation and another operation would wait for each other.
        public static let cycle = Code("cycle")
        /// An operation that you passed to `addChain` cannot depend on the operation before it.
        public static let chain = Code("chain")
    }
}

extension QueueError {
    static func full(queue: String, capacity: Int, more: Int) -> QueueError {
        let advice = more > capacity ? "Add fewer at a time" : "Await `addWhenThereIsRoom`"
        return QueueError(
            .full, queue: queue,
            "Queue \(queue) has no room for \(more) more entries: its capacity is \(capacity). \(advice), or raise "
                + "`capacity`.")
    }

    static func cancelled(_ what: String, queue: String) -> QueueError {
        QueueError(
            .cancelled, queue: queue,
            "\(what) was not added to queue \(queue): the task that waited for room was canceled.")
    }

    static func waitsForItself(_ queue: String) -> QueueError {
        QueueError(
            .waitsForItself, queue: queue,
            "A body that queue \(queue) runs cannot wait until the queue is empty, because it would wait for itself. "
                + "Wait for individual operations instead.")
    }

    static func badWidth(_ width: Int, queue: String) -> QueueError {
        QueueError(
            .badSetting, queue: queue,
            "The width of queue \(queue) cannot be \(width). Use a width of at least 1, or nil for no limit.")
    }

    static func closed(queue: String) -> QueueError {
        QueueError(
            .closed, queue: queue,
            "Queue \(queue) was shut down and accepts no more operations. Create another queue.")
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
            "\(operation) was not added to queue \(queue): it is in \(other). An operation runs only once, so create "
                + "another one."
        )
    }

    static func alreadyStarted(_ operation: String, queue: String) -> QueueError {
        QueueError(
            .alreadyStarted, queue: queue,
            "\(operation) was not added to queue \(queue): it was started directly. Either start an operation "
                + "yourself, or add it to a queue.")
    }

    static func alreadyFinished(_ operation: String, queue: String) -> QueueError {
        QueueError(
            .alreadyFinished, queue: queue,
            "\(operation) was not added to queue \(queue): it has ended. An operation runs only once, so create "
                + "another one.")
    }
}
