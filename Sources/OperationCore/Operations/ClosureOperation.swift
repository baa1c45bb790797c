// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An operation that runs a closure.
///
/// The value that the closure returns is the result of the operation. If the closure throws a `CancellationError`, the
/// operation is canceled. Any other error that the closure throws is the error of the operation.
///
/// ```swift
/// let sum = ClosureOperation { (1...100).reduce(0, +) }
/// sum.successHandler = { print($0) }
/// OperationQueue().addOperation(sum)
/// ```
///
/// The operation releases the closure when the closure has returned, or when the operation is canceled or finished
/// before the closure begins.
public final class ClosureOperation<ResultType: Sendable, ErrorType: Error>: SyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: the closure is protected by its lock.

    private let body: Locked<(@Sendable () throws(ErrorType) -> ResultType)?>

    /// Creates an operation that runs a closure on the thread on which the operation begins.
    ///
    /// - Parameter body: The closure, whose value or error becomes the outcome of the operation.
    public init(_ body: @escaping @Sendable () throws(ErrorType) -> ResultType) {
        self.body = Locked(body)
        super.init()
    }

    deinit {
        // The closure may hold another operation, which may hold another one. The loop frees them without recursion.
        var body = body.withLock { exchange(&$0, with: nil) }
        if body != nil { ThreadWorklist.release(exchange(&body, with: nil)) }
    }

    /// Runs the closure and finishes the operation with the closure's value or error.
    public override func main() {
        guard let body = body.withLock({ exchange(&$0, with: nil) }) else { return }
        finish(withValueOf: body)
    }

    package override func releaseBody() {
        _ = body.withLock { exchange(&$0, with: nil) }
    }
}

extension TypedOperation {
    /// Runs the closure that is the body of the operation, and finishes the operation with its value or error.
    ///
    /// After a cancellation, the value or the error has no effect, and no notice is reported.
    final func finish(withValueOf body: () throws(ErrorType) -> ResultType) {
        do throws(ErrorType) {
            let box = OutcomeBox(try body())
            if !finish(as: .success, keeping: box, isOfBody: true) { box.free(as: ResultType.self) }
        } catch {
            guard !(error is CancellationError) else { return cancelIfUndecided(because: .bodyCancelled) }
            let box = OutcomeBox(error)
            if !finish(as: .failure, keeping: box, isOfBody: true) { box.free(as: ErrorType.self) }
        }
    }

    /// Ends the operation with an error that a closure threw.
    ///
    /// A `CancellationError` cancels the operation, unless the outcome is already decided. The handler of that outcome
    /// is still called.
    package final func finish(orCancelWith error: ErrorType) {
        if error is CancellationError {
            cancelIfUndecided(because: .bodyCancelled)
        } else {
            finish(withError: error)
        }
    }
}

/// An operation that runs a closure on the main actor.
///
/// Use this class, for example, to show the results of other operations in your user interface. If the closure throws a
/// `CancellationError`, the operation is canceled.
///
/// ```swift
/// let show = MainQueueOperation { print("done") }
/// OperationQueue().addOperation(show)
/// ```
///
/// If the operation begins on the main thread, the closure runs immediately. If the operation begins on another thread,
/// the closure runs as soon as the main thread is available. The main thread is available while its run loop runs and
/// while the thread waits in a call to this package. If you cancel the operation before the closure begins, the closure
/// does not run.
public final class MainQueueOperation<ResultType: Sendable, ErrorType: Error>:
    AsyncOperation<ResultType, ErrorType>, @unchecked Sendable
{
    // Sendable: the closure is protected by its lock.

    /// Holds the operation until the main thread is available, so that a cancellation can release it before.
    private final class Holder: Sendable {
        let operation = Locked<MainQueueOperation?>(nil)

        func take() -> MainQueueOperation? { operation.withLock { exchange(&$0, with: nil) } }
    }

    private let body: Locked<(@MainActor () throws(ErrorType) -> ResultType)?>
    private let holder = Holder()

    /// Creates an operation that runs a closure on the main actor.
    ///
    /// - Parameter body: The closure, whose value or error becomes the outcome of the operation.
    public init(_ body: @escaping @MainActor () throws(ErrorType) -> ResultType) {
        self.body = Locked(body)
        super.init()
    }

    deinit {
        // The closure may hold another operation, which may hold another one. The loop frees them without recursion.
        var body = body.withLock { exchange(&$0, with: nil) }
        if body != nil { ThreadWorklist.release(exchange(&body, with: nil)) }
    }

    /// Runs the closure on the main actor.
    public override func main() {
        let holder = holder
        holder.operation.withLock { $0 = self }
        MainThreadRelay.run { holder.take()?.runOnMain() }
        // If the operation was canceled during this method, the cancellation may have come before the holder held the
        // operation.
        if isCancelled { extendLifetime(holder.take()) }
    }

    private func runOnMain() {
        guard let body = body.withLock({ exchange(&$0, with: nil) }) else { return }
        MainActor.assumeIsolated {
            finish { () throws(ErrorType) -> ResultType in
                try BodyWait.within(self) { () throws(ErrorType) -> ResultType in try body() }
            }
        }
    }

    package override func releaseBody() {
        extendLifetime(holder.take())
        body.release { exchange(&$0, with: nil) }
    }
}
