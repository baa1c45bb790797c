// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A closure as an operation: its value is the result, what it throws is the error.
///
/// ```swift
/// let sum = ClosureOperation { (1...100).reduce(0, +) }
/// sum.successHandler = { print($0) }
/// OperationQueue().addOperation(sum)
/// ```
///
/// The closure is let go of once it ran, or once it is certain that it never will.
public final class ClosureOperation<ResultType: Sendable, ErrorType: Error>: SyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: the closure is behind its lock.

    private let body: Locked<(@Sendable () throws(ErrorType) -> ResultType)?>

    /// Makes an operation that runs `body` on the thread on which it is started.
    public init(_ body: @escaping @Sendable () throws(ErrorType) -> ResultType) {
        self.body = Locked(body)
        super.init()
    }

    deinit {
        // It may hold another operation, and that one another: freed in a loop, not in a recursion.
        var body = body.withLock { exchange(&$0, with: nil) }
        if body != nil { ThreadWorklist.letGo(exchange(&body, with: nil)) }
    }

    /// Runs the closure.
    public override func main() {
        guard let body = body.withLock({ exchange(&$0, with: nil) }) else { return }
        do throws(ErrorType) {
            let result = try body()
            if !isCancelled { finish(withResult: result) }
        } catch {
            if !isCancelled { finish(orCancelWith: error) }
        }
    }

    package override func releaseBody() {
        _ = body.withLock { exchange(&$0, with: nil) }
    }
}

extension TypedOperation {
    /// Ends with what a closure threw: a `CancellationError` is a cancellation, anything else the error.
    ///
    /// A `CancellationError` changes nothing if the operation has its outcome: the handler of that outcome is still called.
    package final func finish(orCancelWith error: ErrorType) {
        if error is CancellationError {
            cancelIfUndecided(because: .bodyCancelled)
        } else {
            finish(withError: error)
        }
    }
}
