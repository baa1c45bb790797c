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
    /// Canceling the task that awaits cancels the operation. If a body awaits its own operation or a group around it,
    /// it gets a cancellation with the cause `waitsForItself`, because the wait would never end. The operation itself
    /// is not canceled then.
    public final var finalOutcome: OperationOutcome<ResultType, ErrorType> {
        get async {
            if let circle = BodyWait.circle(ofTaskThatAwaits: self) {
                return .cancelled(.waitsForItself(circle.map(\.displayName)))
            }
            return await withTaskCancellationHandler {
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
    /// Canceling the task that awaits cancels the operation. If the task is already canceled, the body never begins.
    ///
    /// The body has the task-local values and the priority of the task that calls this method, even if the body begins
    /// later because the operation waits for a dependency, a condition or a queue. If several tasks call this method before
    /// the body begins, the first one counts. The values do not reach a handler, a condition, or an operation that
    /// `start()` or a queue begins and for which no task called `run()`.
    ///
    /// An operation that was started before is only awaited. So is an operation in a ``QueueManager`` and, on Linux,
    /// one in an `OperationQueue`. On Apple platforms an `OperationQueue` does not say what it holds, so do not call
    /// this method for an operation that is in one: await `value` instead.
    @discardableResult
    public final func run() async throws(OperationFailure<ErrorType>) -> ResultType {
        if Task.isCancelled { cancelIfUndecided(because: .taskCancelled) }
        keepTaskContext()
        DispatchQueue.global().async { [self] in startIfNeeded() }
        return try await finalOutcome.get()
    }

    /// Starts the operation on the calling thread, waits there until its outcome is decided, and gives its result.
    ///
    /// This method does not wait for handlers, which are called afterwards. So it returns even if the callback queue is busy or
    /// suspended. If a dependency has not ended, the method waits for it first. An operation that was started before is only
    /// waited for. So is an operation in a ``QueueManager`` and, on Linux, one in an `OperationQueue`. On Apple platforms an
    /// `OperationQueue` does not say what it holds, so do not call this method for an operation that is in one.
    ///
    /// You can call this method on the main thread, with or without a main loop, if the operation does not need the main
    /// thread. The main queue and the main actor do nothing while the main thread waits. So the call never returns if the
    /// outcome depends on an `await` of code that is isolated to the main actor, on a closure in `DispatchQueue.main`, or on an
    /// operation in `OperationQueue.main`. A timeout or a deadline of the operation ends such a wait. Only a
    /// ``MainQueueOperation`` that is not in `OperationQueue.main` runs while the main thread waits.
    ///
    /// If the calling body must return before the operation can end, the method throws a cancellation with the cause
    /// `waitsForItself`: immediately, or within about a minute if another thread closes the circle while the body waits.
    /// The operation itself is not canceled then.
    ///
    /// Do not call this method, or a function that calls it, in a task. It blocks one of the few threads on which Swift runs
    /// all tasks, and if every such thread is blocked, no task can resume. The compiler refuses the call in an async function,
    /// and cannot see it behind a synchronous one.
    ///
    /// In the synchronous body of a group, this method makes the operation a child of the group, as
    /// ``GroupScope/perform(_:weight:)`` does. It takes one of the places of the group's width. Canceling the group cancels the
    /// operation, and the group does not end before it.
    /// In the async body of a group, the method throws a cancellation with the cause `groupRefused` and does not start the
    /// operation: call ``GroupScope/run(_:weight:)`` there. In both, an operation that was started, or that is in a queue or in
    /// a group, is only waited for.
    @available(*, noasync, message: "Use run(): this blocks the thread.")
    @discardableResult
    public final func startAndWait() throws(OperationFailure<ErrorType>) -> ResultType {
        if let outcome = outcomeInCallingBody() { return try outcome.get() }
        startIfNeeded()
        let wait = core.withLock({ $0.machine.ending == nil }) ? BodyWait.begin(for: self) : nil
        defer { wait?.end() }
        if let refusal = wait?.refusal { throw .cancelled(refusal) }
        let waiter = BlockingWaiter()
        addObserver(isWaiter: true) { _ in waiter.wake() }
        wait?.lookAgain { _ in waiter.wake() }
        guard waiter.wait(for: self) else { throw .cancelled(.tooManyWaits) }
        if outcome == nil, let refusal = wait?.refusal { throw .cancelled(refusal) }
        return try (outcome ?? .cancelled(.requested)).get()
    }
}
