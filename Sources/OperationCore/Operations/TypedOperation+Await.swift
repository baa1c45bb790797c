// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// In the protocol and not in the class, so that a subclass may have a property of its own that is called `value`.
extension ResultOperation {
    /// The result, as soon as there is one; throws the error or the cancellation.
    ///
    /// Awaiting does not start the operation. Cancelling the task that awaits cancels the operation.
    public var value: ResultType {
        get async throws(OperationFailure<ErrorType>) { try await finalOutcome.get() }
    }
}

extension TypedOperation {
    /// The outcome, as soon as it is decided.
    ///
    /// Cancelling the task that awaits cancels the operation.
    public final var finalOutcome: OperationOutcome<ResultType, ErrorType> {
        get async {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    addObserver(isWaiter: true) { operation in
                        // The operation is this very one, and it tells its waiters only once it has an outcome.
                        let outcome = (operation as? TypedOperation)?.outcome
                        continuation.resume(returning: outcome ?? .cancelled(.requested))
                    }
                }
            } onCancel: {
                cancelIfUndecided(because: .taskCancelled)
            }
        }
    }

    /// Starts the operation on a global queue and gives its result; throws the error or the cancellation.
    ///
    /// Cancelling the task that awaits cancels the operation. An operation that was started before is only awaited. So is
    /// one in a queue, on Linux and in queues of this package; an `OperationQueue` of Apple's systems does not say what it
    /// holds, and what is in one must not be started by hand: await `value` there.
    @discardableResult
    public final func run() async throws(OperationFailure<ErrorType>) -> ResultType {
        DispatchQueue.global().async { [self] in startIfNeeded() }
        return try await finalOutcome.get()
    }

    /// Starts the operation on the calling thread, waits there until its outcome is decided, and gives its result.
    ///
    /// It returns whatever the callback queue is and does, on the main thread too, with or without a main loop: handlers
    /// are delivered afterwards. Where dependencies have not ended, it waits for them first. An operation that was
    /// started before is only waited for. So is one in a queue, on Linux and in queues of this package; an
    /// `OperationQueue` of Apple's systems does not say what it holds, and what is in one must not be started by hand.
    @available(*, noasync, message: "Use run(): this blocks the thread.")
    @discardableResult
    public final func startAndWait() throws(OperationFailure<ErrorType>) -> ResultType {
        startIfNeeded()
        let waiter = BlockingWaiter()
        addObserver(isWaiter: true) { _ in waiter.wake() }
        guard waiter.wait(for: self) else { throw .cancelled(.tooManyWaits) }
        return try (outcome ?? .cancelled(.requested)).get()
    }
}
