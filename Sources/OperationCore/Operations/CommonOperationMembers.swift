// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What every operation has under names that a subclass may want for itself.
///
/// A member of an extension of a protocol does not stand in the way of a property of the same name in your subclass, as
/// one of a superclass does. Only ``ManagedOperation`` conforms, and with it all operations of this package.
public protocol CommonOperationMembers: ManagedOperation {}

extension ManagedOperation: CommonOperationMembers {}

extension CommonOperationMembers {
    private var operation: ManagedOperation { self }

    /// Where the operation stands.
    public var state: OperationState { operation.state }

    /// A Boolean value that indicates whether the operation has ended with a result.
    public var isSuccessful: Bool { operation.hasEnded(as: .success) }

    /// A Boolean value that indicates whether the operation has ended with an error.
    ///
    /// It is `false` for an operation that was canceled.
    public var isFailed: Bool { operation.hasEnded(as: .failure) }

    /// The states of the operation as they come, the present one first.
    public var states: OperationStates { operation.states }

    /// The clock on which delay, timeout and deadline are counted: the system's unless you set another.
    public var clock: any OperationClock {
        get { operation.clock }
        set { operation.clock = newValue }
    }

    /// How long the operation waits between its start and its body: not at all unless you set it.
    ///
    /// In a plain `OperationQueue` it takes up its place while it waits. Cancelling it ends the wait at once.
    public var startDelay: Duration {
        get { operation.startDelay }
        set { operation.startDelay = newValue }
    }

    /// How long the body may run, time spent suspended apart; nil, as from the start, for as long as it likes.
    ///
    /// An operation that takes longer is cancelled with the cause `timedOut`. A timeout that is not above zero leaves no
    /// time at all: the body is not run.
    public var timeout: Duration? {
        get { operation.timeout }
        set { operation.timeout = newValue }
    }

    /// The moment on ``clock`` by which the operation must have ended, waits before its start included.
    ///
    /// An operation that has not ended by then is cancelled with the cause `deadlinePassed`, whether or not it began.
    /// Exchanging ``clock`` before the start makes it a moment of the new clock.
    public var deadline: OperationInstant? {
        get { operation.deadline }
        set { operation.deadline = newValue }
    }
}
