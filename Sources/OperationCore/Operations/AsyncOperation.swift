// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An operation whose work may continue after its `main()` method returns.
///
/// Create a subclass, and finish the operation when the work is done.
///
/// The result and the error have specific types, so the code that uses the operation does not need casts or `NSError`:
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
/// Each path through the work must end with a call to `finish(withResult:)` or `finish(withError:)`. A second call does
/// not change the outcome. If you cancel a running operation, the operation ends immediately, even if its work
/// continues, unless ``windsDownAfterCancellation`` is `true`. To stop the work, override ``didCancel(because:)``.
///
/// Guide: `Docs/Guides/Operations.md`
open class AsyncOperation<ResultType: Sendable, ErrorType: Error>: TypedOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: it adds no state to its superclass.

    /// Creates an operation that has not started.
    public override init() {
        super.init()
    }

    /// Starts the work of the operation.
    ///
    /// OperationKit calls this method only if the operation has no outcome when its body begins.
    ///
    /// Override this method without calling `super.main()`. The default implementation stops the program with a fatal
    /// error, because a subclass must override the method.
    open override func main() {
        fatalError("\(type(of: self)) must override main(), and must not call super.main().")
    }

    /// Stops the work of an operation that was canceled while it ran.
    ///
    /// If the operation is canceled after its body began, OperationKit calls this method once, on the thread that
    /// cancels the operation. OperationKit holds no lock during the call. The default implementation does nothing.
    ///
    /// The method may be called while `main()` still runs. If another thread cancels the operation while the operation
    /// begins, the method may even be called just before `main()`. Therefore, `main()` should first store the object
    /// that can stop the work, then check `isCancelled`, and not start the work if the value is `true`.
    ///
    /// OperationKit does not call this method if the body never begins. For example, the body does not begin if the
    /// operation was canceled before it started, or if a ``MissingInputRule`` canceled it.
    ///
    /// - Parameter cause: The cause of the cancellation.
    open func didCancel(because cause: CancellationCause) {}

    /// A Boolean value that indicates whether a canceled operation ends only when its work has ended.
    ///
    /// The default implementation returns `false`. Return `true` if dependents or the next operation in the queue must
    /// not begin before the work has stopped. In this case, the body must also call `finish` after a cancellation, when
    /// the work has stopped. The call ends the operation, but the outcome is still the cancellation. OperationKit
    /// enqueues the cancellation handler and resumes waiting tasks immediately after the cancellation.
    open var windsDownAfterCancellation: Bool { false }

    /// Pauses the work when the operation is suspended.
    ///
    /// The operation calls this method and ``didResume()`` alternately and never at the same time. The operation holds
    /// no lock during the calls. The default implementation does nothing.
    ///
    /// If the suspension ends before the call begins, the operation skips the call. You may suspend or resume the
    /// operation during the call, in this method or on another thread. If the operation is no longer suspended when
    /// this method returns, the thread that called the method then calls ``didResume()``.
    open func didSuspend() {}

    /// Resumes the work when the suspended operation is resumed.
    ///
    /// The operation calls this method under the same conditions as ``didSuspend()``. The default implementation does
    /// nothing.
    open func didResume() {}

    /// Suspends the operation if it is executing.
    ///
    /// A suspended operation still counts toward the width of its queue, and its timeout is paused. The operation calls
    /// ``didSuspend()``. The work continues unless the operation's class pauses it, for example in an override of
    /// ``didSuspend()``.
    ///
    /// - Returns: `true` if the operation was executing. Otherwise, the method has no effect and returns `false`.
    @discardableResult
    public final func suspend() -> Bool { suspendExecution() }

    /// Resumes the operation if it is suspended.
    ///
    /// - Returns: `true` if the operation was suspended. Otherwise, the method has no effect and returns `false`.
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

    /// A Boolean value that is always `true`, because the work may continue after `main()` returns.
    public final override var isAsynchronous: Bool { true }

    package final override var endStyle: LifecycleMachine.Style {
        windsDownAfterCancellation && canWindDown ? .afterWindDown : .atOnce
    }

    package final override var canBeSuspended: Bool { true }

    package override func stopBody(because cause: CancellationCause) { didCancel(because: cause) }

    package override func setBodySuspended(_ isSuspended: Bool) {
        suspensionDidChange(isSuspended)
        isSuspended ? didSuspend() : didResume()
    }

    package override func releaseBody() { outcomeWasTold() }

    // Hooks for classes in other modules of the package. Subclasses of those classes may override the public hooks
    // above without a call to `super`.

    /// Pauses or resumes the work when the operation is suspended or resumed.
    ///
    /// The operation calls this method just before ``didSuspend()`` or ``didResume()``, under the same conditions.
    ///
    /// - Parameter isSuspended: A Boolean value that indicates whether the operation is suspended.
    @_spi(Subclassing) open func suspensionDidChange(_ isSuspended: Bool) {}

    /// A Boolean value that indicates whether the operation may end later than its cancellation.
    ///
    /// If the value is `false`, overrides of ``windsDownAfterCancellation`` have no effect.
    @_spi(Subclassing) open var canWindDown: Bool { true }

    /// Notifies the subclass that the outcome of the operation is decided.
    ///
    /// The operation calls this method without holding a lock. If the operation also calls ``didCancel(because:)``, it
    /// calls this method first. If the handlers of the operation are not enqueued until later, the operation calls this
    /// method a second time when they are enqueued.
    @_spi(Subclassing) open func outcomeWasTold() {}
}
