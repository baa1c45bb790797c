// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An operation whose work is done when its `main()` method returns.
///
/// Create a subclass, and finish the operation within `main()`.
///
/// ```swift
/// final class LineCount: SyncOperation<Int, any Error>, @unchecked Sendable {
///     let text: String
///     init(text: String) { self.text = text }
///
///     override func main() {
///         let lines = text.split(
///             separator: "\n", omittingEmptySubsequences: false)
///         finish(withResult: lines.count)
///     }
/// }
/// ```
///
/// The first call to `finish` decides the outcome, unless the operation was canceled earlier. The handlers are enqueued
/// when `main()` has returned. If `main()` returns without a call to `finish`, the operation is canceled with the cause
/// `noResult`, and OperationKit reports a notice.
///
/// If you cancel the operation while it runs, the cancellation handler is enqueued immediately, and tasks and threads
/// that wait for the outcome resume. The operation itself ends when `main()` returns, so a long body should check
/// `isCancelled`.
///
/// Guide: `Docs/Guides/Operations.md`
open class SyncOperation<ResultType: Sendable, ErrorType: Error>: TypedOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: it adds no state to its superclass.

    /// Creates an operation that has not started.
    public override init() {
        super.init()
    }

    /// Performs the work of the operation.
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
    /// If the operation is canceled while `main()` runs, OperationKit calls this method once, on the thread that
    /// cancels the operation. OperationKit holds no lock during the call. The default implementation does nothing.
    ///
    /// If another thread cancels the operation while the operation begins, the method may be called just before
    /// `main()`. OperationKit does not call this method if the body never begins. For example, the body does not begin
    /// if the operation was canceled before it started, or if a ``MissingInputRule`` canceled it.
    ///
    /// - Parameter cause: The cause of the cancellation.
    open func didCancel(because cause: CancellationCause) {}

    package final override var endStyle: LifecycleMachine.Style { .whenBodyReturns }

    package final override var runsInPlace: Bool { true }

    package override func runBody() {
        BodyWait.within(self) { main() }
        bodyDidReturn()
    }

    package override func stopBody(because cause: CancellationCause) { didCancel(because: cause) }

    package override func releaseBody() { outcomeWasTold() }

    /// Notifies the subclass that the outcome of the operation is decided.
    ///
    /// The operation calls this method without holding a lock. If the operation also calls ``didCancel(because:)``, it
    /// calls this method first. If the handlers of the operation are not enqueued until later, the operation calls this
    /// method a second time when they are enqueued. Only classes in other modules of the package override this method.
    @_spi(Subclassing) open func outcomeWasTold() {}
}
