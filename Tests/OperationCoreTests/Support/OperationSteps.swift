// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit

extension ManagedOperation {
    /// Starts the operation, and waits until it has ended.
    func startAndEnd() async {
        start()
        await ended()
    }

    /// Cancels the operation, and waits until it has ended.
    func cancelAndEnd(because cause: CancellationCause = .requested) async {
        cancel(because: cause)
        await ended()
    }

    /// Starts the operation, and waits until one of its children executes.
    func start(untilExecuting child: ManagedOperation) async {
        start()
        while child.state != .executing { await Task.yield() }
    }

    func setTimeout(_ timeout: Duration?, on clock: any OperationClock) {
        self.clock = clock
        self.timeout = timeout
    }

    /// Starts the operation with a timeout.
    func start(timeout: Duration?, on clock: any OperationClock) {
        setTimeout(timeout, on: clock)
        start()
    }
}

extension TypedOperation {
    /// Starts the operation, and finishes it on the same thread.
    func startAndFinish(withResult result: ResultType) {
        start()
        finish(withResult: result)
    }

    /// Finishes the operation, and waits until it has ended.
    func finishAndEnd(withResult result: ResultType) async {
        finish(withResult: result)
        await ended()
    }
}

extension QueueManager {
    /// Creates a queue that is suspended.
    static func suspended(_ name: String = "suspended", width: Int? = nil) -> QueueManager {
        let queue = QueueManager(name, width: width)
        queue.isSuspended = true
        return queue
    }

    /// Resumes the queue, and waits until it is empty.
    func resumeAndDrain() async {
        isSuspended = false
        await drained()
    }

    /// Adds the operations, and waits until the queue is empty.
    func addAndDrain(_ operations: [ManagedOperation]) async throws {
        try add(operations)
        await drained()
    }

    /// Adds the operation, and waits until its body has begun.
    func addAndBegin(_ operation: HandDriven) async throws {
        try add(operation)
        _ = await operation.calls.events(atLeast: 1)
    }
}
