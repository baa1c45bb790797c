// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A protocol that provides members to every operation and lets a subclass declare properties with the same names.
///
/// Unlike a member of a superclass, a member of a protocol extension does not prevent your subclass from having a
/// property with the same name. ``ManagedOperation`` declares the conformance, so all operations from this package and
/// all of your subclasses conform.
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
    ///
    /// The sequence ends after `finished` or `cancelled`. The sequence contains each state change exactly once. An
    /// iterator does not keep the operation alive. If the operation is freed, the iteration ends.
    public var states: some AsyncSequence<OperationState, Never> & Sendable { operation.states }

    /// The clock that measures the operation's delay, timeout and deadline.
    ///
    /// The default is the system clock. Set the clock before the operation starts. Later changes have no effect. A
    /// network operation also uses this clock for the pauses and time limits of its attempts.
    public var clock: any OperationClock {
        get { operation.clock }
        set { operation.clock = newValue }
    }

    /// The duration for which the started operation waits before its body begins.
    ///
    /// The default is zero, which disables the delay. In a plain `OperationQueue`, the operation counts toward
    /// `maxConcurrentOperationCount` while it waits. Canceling the operation ends the wait immediately. Set the delay
    /// before the operation starts. Later changes have no effect.
    public var startDelay: Duration {
        get { operation.startDelay }
        set { operation.startDelay = newValue }
    }

    /// The maximum duration of the body, not counting the time during which the operation is suspended.
    ///
    /// The default is `nil`, which disables the timeout. If the body takes longer, the operation is canceled with the
    /// cause `timedOut`. If the timeout is zero or negative, the operation is canceled and the body does not run. Set
    /// the timeout before the operation starts. Later changes have no effect.
    public var timeout: Duration? {
        get { operation.timeout }
        set { operation.timeout = newValue }
    }

    /// The time on ``clock`` by which the operation must have ended.
    ///
    /// The default is `nil`, which sets no deadline. If the operation has not ended at this time, it is canceled with
    /// the cause `deadlinePassed`, whether or not it has begun. If you replace ``clock`` before the operation starts,
    /// the deadline is a time on the new clock.
    public var deadline: OperationInstant? {
        get { operation.deadline }
        set { operation.deadline = newValue }
    }
}

extension CommonOperationMembers {
    /// Waits until the operation has ended, which means that `isFinished` is `true`.
    ///
    /// The outcome may be available earlier, while the work of a canceled operation still continues or the `main()`
    /// method of a synchronous operation still runs. If you cancel an operation before you start it, the operation
    /// usually ends only after you start it. For the exceptions, see ``ManagedOperation/isFinished``.
    ///
    /// If a body waits for its own operation, or for another operation that cannot end before the body does, the wait
    /// never ends. OperationKit reports a notice of the kind `waitsForItself` when the wait begins. If this situation
    /// arises only after the body has begun to wait, for example because you add a dependency, OperationKit reports the
    /// notice within about a minute.
    ///
    /// The method neither starts nor cancels the operation. If you cancel the waiting task, the method returns and the
    /// operation continues. Read `isFinished` to find out whether the operation has ended.
    public func ended() async {
        let wait = TaskWait()
        let operation: ManagedOperation = self
        let bodyWait = Task.isCancelled ? nil : BodyWait.beginInTask(for: operation, until: .end)
        defer { bodyWait?.end() }
        if let cycle = bodyWait?.cycle { operation.reportCycle(cycle) }
        bodyWait?.lookAgain { operation.reportCycle($0) }
        let id = operation.whenEnded { wait.end() }
        await wait.passage { wait.end() }
        if let id { operation.removeEndAction(id) }
    }

    /// The error of the operation as an `any Error`, or `nil` if the operation did not fail.
    ///
    /// Use this property in code that handles operations of all types. If you know the type of the operation, read
    /// `outcome` instead. For the cause of a cancellation, read `cancellationCause`.
    public var anyError: (any Error)? {
        let operation: ManagedOperation = self
        return operation.failureAsError
    }
}
