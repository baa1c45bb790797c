// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// These members are in the protocol and not in the class, so that a subclass may have its own property named `value`.
extension ResultOperation {
    /// The result of the operation.
    ///
    /// An access waits until the outcome is decided, and throws the error or the cancellation.
    ///
    /// Awaiting the value does not start the operation. Canceling the waiting task cancels the operation.
    public var value: ResultType {
        get async throws(OperationFailure<ErrorType>) { try await finalOutcome.get() }
    }
}

extension TypedOperation {
    /// The outcome of the operation.
    ///
    /// An access waits until the outcome is decided.
    ///
    /// Canceling the waiting task cancels the operation.
    ///
    /// A body may await its own operation, a group around it, or another operation that cannot end before the body
    /// does. Such a wait would never end, so the body receives a cancellation with the cause `waitsForItself`. The
    /// cancellation comes immediately, or within about a minute if the cycle forms later. The awaited operation itself
    /// is not canceled in this case.
    public final var finalOutcome: OperationOutcome<ResultType, ErrorType> {
        get async {
            if let wait = BodyWait.beginInTask(for: self, until: .outcome) { return await outcome(during: wait) }
            return await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    addWaiter { operation in
                        // The operation is this one, and it notifies its waiters only after it has an outcome.
                        let outcome = (operation as? TypedOperation)?.outcome
                        continuation.resume(returning: outcome ?? .cancelled(.requested))
                    }
                }
            } onCancel: {
                cancelIfUndecided(because: .taskCancelled)
            }
        }
    }

    /// Returns the outcome to the body of an operation, or a cancellation if the wait is part of a cycle.
    private func outcome(during wait: BodyWait) async -> OperationOutcome<ResultType, ErrorType> {
        defer { wait.end() }
        if let refusal = wait.refusal { return .cancelled(refusal) }
        let passage = TaskWait()
        addWaiter { _ in passage.end() }
        wait.lookAgain { _ in passage.end() }
        await passage.passage { cancelIfUndecided(because: .taskCancelled) }
        return outcome ?? .cancelled(wait.refusal ?? .requested)
    }

    /// Starts the operation, and returns its result.
    ///
    /// The body begins on a global queue. A request of one of the package's own classes begins on the thread of the calling
    /// task instead, because its start does not block. If such a request decodes a response of at most 64 KiB for an
    /// endpoint, the waiting task also decodes the response.
    ///
    /// Canceling the waiting task cancels the operation. If the task is already canceled, the body never begins.
    ///
    /// The body has the task-local values and the priority of the task that calls this method. The same is true if the
    /// body begins later because the operation waits for a dependency, a condition or a queue. If several tasks call
    /// this method before the body begins, the values of the first task apply.
    ///
    /// Handlers, conditions, evaluators and retry policies do not receive these values. The values also do not reach an
    /// operation that a queue begins if no task called `run()` for that operation.
    ///
    /// If the operation was started before, the method only waits for the outcome. The same is true for an operation in
    /// a ``QueueManager`` and, on Linux, for an operation in an `OperationQueue`. On Apple platforms, an
    /// `OperationQueue` does not reveal which operations it holds. So do not call this method for an operation in an
    /// `OperationQueue`. Await `value` instead.
    ///
    /// - Throws: The error or the cancellation of the operation.
    @discardableResult
    public final func run() async throws(OperationFailure<ErrorType>) -> ResultType {
        if Task.isCancelled { cancelIfUndecided(because: .taskCancelled) }
        guard canBeginInTask else {
            keepTaskContext()
            DispatchQueue.global().async { [self] in startIfNeeded() }
            return try await finalOutcome.get()
        }
        // Waking another thread would cost more than the start.
        startIfNeeded()
        return try await outcomeWithWork.get()
    }

    /// The outcome of the operation, for a task that performs short work of the operation while it waits.
    private var outcomeWithWork: OperationOutcome<ResultType, ErrorType> {
        get async {
            if let wait = BodyWait.beginInTask(for: self, until: .outcome) { return await outcome(during: wait) }
            let wait = TaskWait()
            addWaiter { _ in wait.end() }
            core.withLock { core in
                if core.machine.ending == nil { core.need().taskWait = wait }
            }
            await wait.passage { cancelIfUndecided(because: .taskCancelled) }
            return outcome ?? .cancelled(.requested)
        }
    }

    /// Starts the operation on the calling thread, waits there until its outcome is decided, and returns its result.
    ///
    /// This method does not wait for handlers, which are called afterward. So it returns even if the callback queue is
    /// busy or suspended. If a dependency has not ended, the method waits for it first.
    ///
    /// If the operation was started before, the method only waits for the outcome. The same is true for an operation in
    /// a ``QueueManager`` and, on Linux, for an operation in an `OperationQueue`. On Apple platforms, an
    /// `OperationQueue` does not reveal which operations it holds. So do not call this method for an operation in an
    /// `OperationQueue`.
    ///
    /// You can call this method on the main thread, with or without a main run loop, if the operation does not need the
    /// main thread. The main queue and the main actor are blocked while the main thread waits. So the call never
    /// returns if the outcome depends on one of the following:
    ///
    /// - an `await` of code that is isolated to the main actor
    /// - a closure in `DispatchQueue.main`
    /// - an operation in `OperationQueue.main`
    ///
    /// A timeout or a deadline of the operation ends such a wait. Only a ``MainQueueOperation`` that is not in
    /// `OperationQueue.main` runs while the main thread waits.
    ///
    /// If the calling body must return before the operation can end, the method throws a cancellation with the cause
    /// `waitsForItself`. The error is thrown immediately, or within about a minute if another thread completes the
    /// cycle while the body waits. The operation itself is not canceled in this case.
    ///
    /// Do not call this method, or a function that calls it, in a task. The method blocks one of the few threads on
    /// which Swift runs all tasks. If all of these threads are blocked, no task can resume. The compiler rejects a call
    /// in an async function, but cannot detect a call through a synchronous function.
    ///
    /// In the synchronous body of a group, this method makes the operation a child of the group, as
    /// ``GroupScope/perform(_:weight:)`` does. The operation occupies a slot of the group's width. Canceling the group
    /// cancels the operation, and the group does not end before the operation.
    ///
    /// In the async body of a group, the method throws a cancellation with the cause `groupRefused` and does not start
    /// the operation. Call ``GroupScope/run(_:weight:)`` there. A child task of that body (`async let`) does not count
    /// as the body.
    ///
    /// In both kinds of body, the method only waits if the operation was started, or if it is in a queue or in a group.
    ///
    /// - Throws: The error or the cancellation of the operation.
    @available(*, noasync, message: "This method blocks the thread. Await run() instead.")
    @discardableResult
    public final func startAndWait() throws(OperationFailure<ErrorType>) -> ResultType {
        if let outcome = outcomeInCallingBody() { return try outcome.get() }
        startIfNeeded()
        let wait = BodyWait.begin(for: self, until: .outcome)
        defer { wait?.end() }
        if let refusal = wait?.refusal { throw .cancelled(refusal) }
        let waiter = BlockingWaiter()
        addWaiter { _ in waiter.wake() }
        wait?.lookAgain { _ in waiter.wake() }
        guard waiter.wait(for: self) else { throw .cancelled(.tooManyWaits) }
        if outcome == nil, let refusal = wait?.refusal { throw .cancelled(refusal) }
        return try (outcome ?? .cancelled(.requested)).get()
    }
}

extension ManagedOperation {
    /// Whether the calling task can start the operation, because the start runs no code of the user and does not block.
    fileprivate var canBeginInTask: Bool {
        guard original == nil, isBodyBrief else { return false }
        return core.withLock { core in
            core.extras == nil && core.node == nil && core.host == nil && core.parent == nil
        }
    }

    /// Lets the task that waits in ``TypedOperation/run()`` perform work, and returns whether it will.
    ///
    /// - Parameter work: A closure that returns quickly and does not block, because it runs on a thread of Swift's
    ///   cooperative pool.
    package final func performInWaitingTask(_ work: @escaping @Sendable () -> Void) -> Bool {
        core.withLock { $0.extras?.taskWait }?.perform(work) ?? false
    }
}
