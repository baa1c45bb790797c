// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A protocol with members of every operation whose names a subclass may also use for its own properties.
///
/// Unlike a member of a superclass, a member of a protocol extension does not prevent your subclass from having a
/// property of the same name. ``ManagedOperation`` is the only type that declares conformance, so all operations of
/// this package conform.
public protocol CommonOperationMembers: ManagedOperation {}

extension ManagedOperation: CommonOperationMembers {}

extension CommonOperationMembers {
    private var operation: ManagedOperation { self }

    /// The current state of the operation.
    public var state: OperationState { operation.state }

    /// A Boolean value that indicates whether the operation has ended with a result.
    public var isSuccessful: Bool { operation.hasEnded(as: .success) }

    /// A Boolean value that indicates whether the operation has ended with an error.
    ///
    /// The value is `false` for an operation that was canceled.
    public var isFailed: Bool { operation.hasEnded(as: .failure) }

    /// An asynchronous sequence of the states of the operation, beginning with the current state.
    public var states: OperationStates { operation.states }

    /// The clock that measures the delay, the timeout and the deadline.
    ///
    /// The default is the system clock. A clock that you set after the start has no effect.
    public var clock: any OperationClock {
        get { operation.clock }
        set { operation.clock = newValue }
    }

    /// The duration for which the operation waits between its start and its body.
    ///
    /// The default is no delay. In a plain `OperationQueue`, the operation occupies a slot while it waits. Canceling
    /// the operation ends the wait immediately. A delay that you set after the start has no effect.
    public var startDelay: Duration {
        get { operation.startDelay }
        set { operation.startDelay = newValue }
    }

    /// The maximum duration of the body, without the time during which the operation is suspended.
    ///
    /// The default is `nil`, which disables the timeout. An operation that takes longer is canceled with the cause
    /// `timedOut`. If the timeout is zero or negative, the operation is canceled and the body does not run. A timeout
    /// that you set after the start has no effect.
    public var timeout: Duration? {
        get { operation.timeout }
        set { operation.timeout = newValue }
    }

    /// The instant on ``clock`` by which the operation must have ended, including waits before its start.
    ///
    /// The default is `nil`, which sets no deadline. An operation that has not ended by then is canceled with the cause
    /// `deadlinePassed`, whether or not it has begun. If you replace ``clock`` before the start, the deadline is an
    /// instant of the new clock.
    public var deadline: OperationInstant? {
        get { operation.deadline }
        set { operation.deadline = newValue }
    }
}

extension CommonOperationMembers {
    /// Waits until the operation has ended, which means that `isFinished` is `true` and its dependents were released.
    ///
    /// The outcome may be available earlier. A canceled operation may still be winding down. A synchronous operation
    /// may not yet have returned from its `main()`. An operation that was canceled before its start must still be
    /// started.
    ///
    /// A body waits forever if it waits for its own operation, or for another operation that cannot end before the body
    /// does. OperationKit reports a notice in this case. The notice comes immediately, or within about a minute if the
    /// cycle forms while the body waits.
    ///
    /// The method does not start or cancel the operation. Canceling the waiting task ends only the wait. The operation
    /// continues, and its `isFinished` property indicates whether it has ended.
    public func ended() async {
        let wait = TaskWait()
        let operation: ManagedOperation = self
        let bodyWait = Task.isCancelled ? nil : BodyWait.beginInTask(for: operation, until: .end)
        defer { bodyWait?.end() }
        if let circle = bodyWait?.circle { operation.reportCircle(circle) }
        bodyWait?.lookAgain { operation.reportCircle($0) }
        let id = operation.whenEnded { wait.end() }
        await wait.passage { wait.end() }
        if let id { operation.removeEndAction(id) }
    }

    /// The error of the operation as a value of the type `any Error`.
    ///
    /// The value is `nil` before the operation has an outcome, and if the outcome is a result or a cancellation. For a
    /// cancellation, see `cancellationCause`. Use this property in code that handles operations of all types. If you
    /// know the type of the operation, read `outcome` instead.
    public var anyError: (any Error)? {
        let operation: ManagedOperation = self
        return operation.failureAsError
    }
}
