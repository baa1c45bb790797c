// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// An operation that may still be working after its `main()` method returns.
///
/// Create a subclass, and finish the operation when the work is done.
///
/// The result and the error have specific types, so the code that uses the operation needs no cast and no `NSError`:
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
/// Each path through the work must end in a call to `finish(withResult:)` or `finish(withError:)`. A second call has no
/// effect. An operation that is canceled while it runs ends immediately. Override ``didCancel(because:)`` to stop its
/// work.
open class AsyncOperation<ResultType: Sendable, ErrorType: Error>: TypedOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: it adds no state to its superclass.

    /// Creates an operation that has not started.
    public override init() {
        super.init()
    }

    /// Starts the work.
    ///
    /// This method is called only if the operation was not canceled before it began.
    ///
    /// Override this method, and do not call `super.main()`. The default implementation stops the program with a fatal
    /// error, because a subclass must override the method.
    open override func main() {
        fatalError("\(type(of: self)) must override main(), and must not call super.main().")
    }

    /// Stops the work of an operation that was canceled while it ran.
    ///
    /// OperationKit calls this method once, on the thread that canceled the operation, and holds no lock during the
    /// call. The default implementation does nothing.
    ///
    /// The method may be called while `main()` still runs. Another thread may even call it just before `main()`, and
    /// `main()` is then still called. A body that starts work should first store the object that stops the work, and
    /// then check `isCancelled`.
    ///
    /// The method is not called if an input or the start itself canceled the operation, or if the operation was
    /// canceled earlier. The body does not run in these cases.
    ///
    /// - Parameter cause: The cause of the cancellation.
    open func didCancel(because cause: CancellationCause) {}

    /// A Boolean value that indicates whether a canceled operation ends only when its body finishes the operation.
    ///
    /// The default implementation returns `false`. Return `true` if dependents or the next operation in the queue must
    /// not begin before the work has stopped. The outcome is still a cancellation, and handlers and waiting tasks are
    /// notified of the cancellation immediately.
    open var windsDownAfterCancellation: Bool { false }

    /// Pauses the work.
    ///
    /// The operation calls this method and ``didResume()`` alternately, never at the same time, and holds no lock
    /// during the calls. The default implementation does nothing.
    ///
    /// The operation skips this call if the suspension ends before the call begins. This method or another thread may
    /// suspend or resume the operation during the call. When the method returns, the same thread calls the next method
    /// if the state has changed.
    open func didSuspend() {}

    /// Resumes the work after ``didSuspend()``.
    ///
    /// This method is called in the same way as ``didSuspend()``. The default implementation does nothing.
    open func didResume() {}

    /// Suspends an executing operation.
    ///
    /// The operation keeps its slot in its queue, and its timeout is paused. The operation notifies the body with
    /// ``didSuspend()``. A body that does not override ``didSuspend()`` continues its work.
    ///
    /// - Returns: `false` if the operation is not executing. The method has no effect in this case.
    @discardableResult
    public final func suspend() -> Bool { suspendExecution() }

    /// Resumes a suspended operation.
    ///
    /// - Returns: `false` if the operation is not suspended. The method has no effect in this case.
    @discardableResult
    public final func resume() -> Bool { resumeExecution() }

    /// Starts, suspends or resumes the operation, depending on its state.
    ///
    /// Use this method for a single button that starts and pauses an operation.
    ///
    /// - Returns: The state of the operation after the call.
    @discardableResult
    public final func toggle() -> OperationState {
        if !resumeExecution(), !suspendExecution(), state == .notStarted { startIfNeeded() }
        return state
    }

    /// A Boolean value that is always `true`.
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

    // Hooks for classes in other modules of the package. Subclasses of those classes may override the public hooks
    // above without a call of `super`.

    /// Pauses or resumes the body.
    ///
    /// The operation calls this method just before ``didSuspend()`` or ``didResume()``, under the same conditions.
    @_spi(Subclassing) open func suspensionDidChange(_ isSuspended: Bool) {}

    /// Notifies the class that the outcome is decided.
    ///
    /// The operation holds no lock when it calls this method, before ``didCancel(because:)``. If the handlers are
    /// notified later than the decision, the operation calls this method again at that time.
    @_spi(Subclassing) open func outcomeWasTold() {}
}
