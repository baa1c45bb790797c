// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

extension OperationSetupError {
    static func full(queue: String, capacity: Int, more: Int) -> Self {
        let advice = more > capacity ? "Add fewer at a time" : "Await `addWhenThereIsRoom`"
        return Self(
            .full,
            "Queue \(queue) has no room for \(more) more entries: its capacity is \(capacity). \(advice), or raise "
                + "`capacity`.")
    }

    static func cancelled(_ what: String, queue: String) -> Self {
        Self(.cancelled, "\(what) was not added to queue \(queue): the task that waited for room was canceled.")
    }

    static func waitsForQueue(_ queue: String) -> Self {
        Self(
            .cannotWait,
            "A body that queue \(queue) runs cannot wait until the queue is empty, because it would wait for itself. "
                + "Wait for individual operations instead.")
    }

    static func badWidth(_ width: Int, queue: String) -> Self {
        Self(
            .badSetting,
            "The width of queue \(queue) cannot be \(width). Use a width of at least 1, or nil for no limit.")
    }

    static func closed(queue: String) -> Self {
        Self(.closed, "Queue \(queue) was shut down and accepts no more operations. Create another queue.")
    }

    static func cycle(_ operation: String, queue: String, behind other: String, _ error: Self) -> Self {
        Self(
            .cycle,
            "\(operation) was not added to queue \(queue) behind \(other), which has the same key: \(error.message)",
            path: error.path)
    }

    static func alreadyAdded(_ operation: String, queue: String, other: String) -> Self {
        Self(
            .alreadyAdded,
            "\(operation) was not added to queue \(queue): it is in \(other). An operation runs only once, so create "
                + "another one."
        )
    }

    static func alreadyStarted(_ operation: String, queue: String) -> Self {
        Self(
            .alreadyStarted,
            "\(operation) was not added to queue \(queue): it was started directly. Either start an operation "
                + "yourself, or add it to a queue.")
    }

    static func alreadyFinished(_ operation: String, queue: String) -> Self {
        Self(
            .alreadyFinished,
            "\(operation) was not added to queue \(queue): it has ended. An operation runs only once, so create "
                + "another one.")
    }
}
