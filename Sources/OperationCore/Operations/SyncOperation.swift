// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// An operation whose work is done when its `main()` returns: subclass it, and finish within `main()`.
///
/// ```swift
/// final class LineCount: SyncOperation<Int, any Error>, @unchecked Sendable {
///     let text: String
///     init(text: String) { self.text = text }
///
///     override func main() {
///         finish(withResult: text.split(separator: "\n", omittingEmptySubsequences: false).count)
///     }
/// }
/// ```
///
/// The outcome is decided by the first `finish`, and told when `main()` returned. A body that returns without having
/// called either `finish` ends as cancelled with the cause `noResult`, and says so in debug builds. Cancelled while it
/// runs, the operation tells its waiters at once and ends when `main()` returns: a long body looks at `isCancelled`.
open class SyncOperation<ResultType: Sendable, ErrorType: Error>: TypedOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: it adds no state to its superclass.

    /// Makes an operation that waits to be started.
    public override init() {
        super.init()
    }

    /// Does the work.
    ///
    /// It was not cancelled before it began.
    ///
    /// Override it, and do not call `super.main()`: that, like not overriding it, is a programmer's error and traps.
    open override func main() {
        fatalError("\(type(of: self)) must override main(), and must not call super.main().")
    }

    /// Stops the work of an operation that was cancelled in flight.
    ///
    /// Called once, outside every lock, on the thread that cancelled, while `main()` runs.
    ///
    /// From another thread it may come just before `main()` is entered, which is entered all the same; never where an
    /// input or the start itself cancelled, or somebody before. The one here does nothing.
    open func didCancel(because cause: CancellationCause) {}

    /// Always false.
    public final override var isAsynchronous: Bool { false }

    package final override var endStyle: LifecycleMachine.Style { .whenBodyReturns }

    package final override var runsInPlace: Bool { true }

    package override func runBody() {
        BodyWait.within(self) { main() }
        bodyDidReturn()
    }

    package override func stopBody(because cause: CancellationCause) { didCancel(because: cause) }
}
