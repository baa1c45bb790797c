// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

// These members are in the protocol and not in the class, so that a subclass may have its own property named `value`.
extension ResultOperation {
    /// The result of the operation, which is available after the outcome is decided.
    ///
    /// Reading this property waits until the outcome is decided, but does not start the operation. If the operation
    /// fails or is canceled, the property throws an ``OperationFailure``. If you cancel the waiting task, the operation
    /// is also canceled.
    public var value: ResultType {
        get async throws(OperationFailure<ErrorType>) { try await finalOutcome.get() }
    }
}

extension TypedOperation {
    /// The final outcome of the operation.
    ///
    /// Reading this property waits until the outcome is decided. If you cancel the waiting task, the operation is also
    /// canceled.
    ///
    /// If a body awaits its own operation, a group that contains its operation, or another operation that cannot end
    /// before the body does, the wait would never end. In this case, the property returns a cancellation with the cause
    /// `waitsForItself` instead of waiting. If this situation arises only during the wait, the property returns the
    /// cancellation within about a minute. The awaited operation itself is not canceled.
    public final var finalOutcome: OperationOutcome<ResultType, ErrorType> {
        get async { await outcome(performsWork: false) }
    }

    /// Waits for the outcome, and returns a cancellation if the wait is part of a cycle.
    ///
    /// - Parameter performsWork: Whether the waiting task may perform short work of the operation.
    private func outcome(performsWork: Bool) async -> OperationOutcome<ResultType, ErrorType> {
        let bodyWait = BodyWait.beginInTask(for: self, until: .outcome)
        defer { bodyWait?.end() }
        if let refusal = bodyWait?.refusal { return .cancelled(refusal) }
        let wait = TaskWait()
        addWaiter { _ in wait.end() }
        if let bodyWait {
            bodyWait.lookAgain { _ in wait.end() }
        } else if performsWork {
            core.withLock { core in
                if core.machine.ending == nil { core.need().taskWait = wait }
            }
        }
        await wait.passage {
            cancelIfUndecided(because: .taskCancelled)
            // A mapped operation may have no outcome yet, although its original has one and cannot be canceled.
            wait.end()
        }
        return outcome ?? .cancelled(bodyWait?.refusal ?? (Task.isCancelled ? .taskCancelled : .requested))
    }

    /// Starts the operation, waits until its outcome is decided, and returns its result.
    ///
    /// The body begins on a global queue. However, on Linux, a network operation can begin on the calling task's
    /// thread. In this case, the start calls none of your hooks, and the request has no body or a body in memory. The
    /// start encodes the query, and may call closures of the operation's policies, such as an authenticator's `apply`
    /// closure.
    ///
    /// The task that calls this method may also check and decode an endpoint's response of at most 64 KiB. Your code
    /// for this work, such as the initializers of the result type, then inherits the task-local values of the task. In
    /// this case, this method returns only after the decoding, even if the operation is canceled earlier.
    ///
    /// If you cancel the waiting task, the operation is also canceled. If the task is already canceled, the body never
    /// begins.
    ///
    /// The body inherits the task-local values and the priority of the task that calls this method, even if the
    /// operation first waits for a dependency, a condition or a queue. If several tasks call this method before the
    /// body begins, the body inherits the values of the first task.
    ///
    /// Handlers, conditions, evaluators and retry policies do not inherit these values. An operation that a queue
    /// starts does not inherit these values either, unless a task calls `run()` for the operation.
    ///
    /// If the operation has already been started, is in a ``QueueManager`` or a group, or, on Linux, is in an
    /// `OperationQueue`, the method only waits for the outcome. On Apple platforms, OperationKit cannot detect an
    /// operation in an `OperationQueue`, so await the operation's `value` instead of calling this method.
    ///
    /// - Throws: An ``OperationFailure`` with the error of the operation or the cause of its cancellation.
    @discardableResult
    @concurrent
    public final func run() async throws(OperationFailure<ErrorType>) -> ResultType {
        if Task.isCancelled { cancelIfUndecided(because: .taskCancelled) }
        guard canBeginInTask else {
            keepTaskContext()
            DispatchQueue.global().async { [self] in startIfNeeded() }
            return try await finalOutcome.get()
        }
        // Waking another thread would cost more than the start.
        startIfNeeded()
        // A dependency that was just added may have delayed the start.
        keepTaskContext()
        return try await outcome(performsWork: true).get()
    }

    /// Starts the operation on the calling thread, waits there until its outcome is decided, and returns its result.
    ///
    /// This method does not wait for handlers, so it returns even if the callback queue is busy or suspended. If a
    /// dependency has not ended, the method first waits for the dependency.
    ///
    /// If the operation has already been started, is in a ``QueueManager`` or a group, or, on Linux, is in an
    /// `OperationQueue`, the method only waits for the outcome. On Apple platforms, OperationKit cannot detect an
    /// operation in an `OperationQueue`, so call `waitUntilFinished()` and read `outcome` instead of calling this
    /// method.
    ///
    /// You can call this method on the main thread if the operation does not need the main thread. The program does not
    /// need a main run loop. While the main thread waits, the main queue and the main actor are blocked. Therefore,
    /// unless the operation has a timeout or a deadline, the call never returns if the outcome depends on one of the
    /// following:
    ///
    /// - an `await` of code that is isolated to the main actor
    /// - a closure in `DispatchQueue.main`
    /// - an operation in `OperationQueue.main`
    ///
    /// During the wait, the main thread runs no code except the closure of a ``MainQueueOperation`` that is not in
    /// `OperationQueue.main`.
    ///
    /// If a body calls this method and the operation cannot end before the body returns, the method throws a
    /// cancellation with the cause `waitsForItself`. If this situation arises only during the wait, the method throws
    /// the error within about a minute. The operation itself is not canceled.
    ///
    /// Do not call this method, or a function that calls it, in a task. The method blocks a thread of Swift's
    /// cooperative thread pool, which has few threads. If all of these threads are blocked, no task can resume. The
    /// compiler rejects a call in an async function, but cannot detect a call through a synchronous function.
    ///
    /// In the synchronous body of a group, this method makes the operation a child of the group, as
    /// ``GroupScope/perform(_:weight:)`` does. The operation counts toward the group's width. Canceling the group
    /// cancels the operation, and the group does not end before the operation.
    ///
    /// In the async body of a group, the method throws a cancellation with the cause `groupRefused` and does not start
    /// the operation. Call ``GroupScope/run(_:weight:)`` instead. A child task of that body (`async let`) does not
    /// count as the body.
    ///
    /// In both kinds of body, if the operation was started or is in a queue or in a group, the method only waits for
    /// the operation.
    ///
    /// - Throws: An ``OperationFailure`` with the error of the operation or the cause of its cancellation.
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
    /// Whether the calling task may start the operation, and may perform work for it during the wait.
    fileprivate var canBeginInTask: Bool {
        guard original == nil, beginsInTask else { return false }
        return core.withLock { core in
            core.extras == nil && core.node == nil && core.host == nil && core.parent == nil
        }
    }

    /// The wait in ``TypedOperation/run()``, if its task performs work of the operation.
    ///
    /// The work must return quickly and must not block, because it runs on a thread of Swift's cooperative pool.
    package final var workingTaskWait: TaskWait? {
        // The end of an operation with dependents or mapped operations runs code of the user.
        core.withLock { core in
            core.node == nil && core.extras?.maps == nil ? core.extras?.taskWait : nil
        }
    }
}
