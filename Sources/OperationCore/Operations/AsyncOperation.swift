// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// An operation whose work goes on after its `main()` returned: subclass it, and finish when the work is done.
///
/// The result and the error have types of their own, so whoever uses the operation needs no cast and no `NSError`:
///
/// ```swift
/// enum LookupError: Error { case unknownHost(String) }
///
/// final class Lookup: AsyncOperation<String, LookupError>, @unchecked Sendable {
///     let host: String
///     init(host: String) { self.host = host }
///
///     override func main() {
///         DispatchQueue.global().async { [self] in
///             if host == "localhost" {
///                 finish(withResult: "127.0.0.1")
///             } else {
///                 finish(withError: .unknownHost(host))
///             }
///         }
///     }
/// }
/// ```
///
/// Each path through the work must end in `finish(withResult:)` or `finish(withError:)`; a second call changes nothing.
/// Cancelled in flight, the operation ends there and then: override ``didCancel(because:)`` to stop the work.
open class AsyncOperation<ResultType: Sendable, ErrorType: Error>: TypedOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: it adds no state to its superclass.

    /// Makes an operation that waits to be started.
    public override init() {
        super.init()
    }

    /// Begins the work.
    ///
    /// It was not cancelled before it began.
    ///
    /// Override it, and do not call `super.main()`: that, like not overriding it, is a programmer's error and traps.
    open override func main() {
        fatalError("\(type(of: self)) must override main(), and must not call super.main().")
    }

    /// Stops the work of an operation that was cancelled in flight.
    ///
    /// Called once, outside every lock, on the thread that cancelled.
    ///
    /// It may come while `main()` still runs, and from another thread even just before `main()` is entered, which is
    /// entered all the same: a body that begins work keeps what stops it, and then looks at `isCancelled`. It does not
    /// come where an input or the start itself cancelled, or somebody before: the body is not entered then. The one here
    /// does nothing.
    open func didCancel(because cause: CancellationCause) {}

    /// Whether a cancelled operation ends only when its body says so, by finishing in whatever way; false here.
    ///
    /// Return true where dependents, or the next in the queue, must not begin before the work has wound down. The
    /// outcome is cancelled all the same, and is told at once.
    open var windsDownAfterCancellation: Bool { false }

    /// Puts the work on hold.
    ///
    /// Called outside every lock, in turn with ``didResume()`` and never at the same time. A suspension that was over
    /// before the body could be told of it is left out: where another thread is in one of the two hooks, or the call
    /// comes from there, only what is true when that hook returned is told, by the thread that was in it.
    ///
    /// The one here does nothing.
    open func didSuspend() {}

    /// Lets the work go on after ``didSuspend()``.
    ///
    /// Called as ``didSuspend()`` is. The one here does nothing.
    open func didResume() {}

    /// Puts an executing operation on hold; returns false, and does nothing, if it is not executing.
    ///
    /// It stays in its queue's slot, its timeout stands still, and its body is told through ``didSuspend()``; what a body
    /// that does not override that does meanwhile goes on.
    @discardableResult
    public final func suspend() -> Bool { suspendExecution() }

    /// Lets a suspended operation go on; returns false, and does nothing, if it is not suspended.
    @discardableResult
    public final func resume() -> Bool { resumeExecution() }

    /// Starts, suspends or resumes the operation, whichever comes next, and returns the state after that.
    ///
    /// It is meant for a single button that plays and pauses.
    @discardableResult
    public final func toggle() -> OperationState {
        if !resumeExecution(), !suspendExecution(), state == .notStarted { startIfNeeded() }
        return state
    }

    /// Always true.
    public final override var isAsynchronous: Bool { true }

    package final override var endStyle: LifecycleMachine.Style {
        windsDownAfterCancellation ? .afterWindDown : .atOnce
    }

    package final override var canBeSuspended: Bool { true }

    package override func stopBody(because cause: CancellationCause) { didCancel(because: cause) }

    package override func setBodySuspended(_ isSuspended: Bool) {
        suspensionDidChange(isSuspended)
        isSuspended ? didSuspend() : didResume()
    }

    package override func releaseBody() { outcomeWasTold() }

    // What a class of another module of the package overrides, whose own subclasses may override the hooks above and
    // call no `super`.

    /// The body is to be put on hold, or to go on; called as ``didSuspend()`` is, before it.
    @_spi(Subclassing) open func suspensionDidChange(_ isSuspended: Bool) {}

    /// The outcome is decided and told, whichever it is; called outside every lock, maybe twice, before
    /// ``didCancel(because:)``.
    @_spi(Subclassing) open func outcomeWasTold() {}
}
