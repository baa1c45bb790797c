// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A closure on the main actor as an operation: for what shows a result, with an operation's guarantees.
///
/// ```swift
/// let show = MainQueueOperation { print("done") }
/// OperationQueue().addOperation(show)
/// ```
///
/// Started or waited for on the main thread, it runs there and then, with or without a main loop. Started elsewhere, it
/// runs when main comes by: in its loop, or while it waits in a call of this package. Cancelled before that, it does not
/// run.
public final class MainQueueOperation<ResultType: Sendable, ErrorType: Error>:
    AsyncOperation<ResultType, ErrorType>, @unchecked Sendable
{
    // Sendable: the closure is behind its lock.

    /// Holds the operation until main comes by, so that a cancellation can let go of it before.
    private final class Holder: Sendable {
        let operation = Locked<MainQueueOperation?>(nil)

        func take() -> MainQueueOperation? { operation.withLock { exchange(&$0, with: nil) } }
    }

    private let body: Locked<(@MainActor () throws(ErrorType) -> ResultType)?>
    private let holder = Holder()

    /// Makes an operation that runs `body` on the main actor.
    public init(_ body: @escaping @MainActor () throws(ErrorType) -> ResultType) {
        self.body = Locked(body)
        super.init()
    }

    deinit {
        // It may hold another operation, and that one another: freed in a loop, not in a recursion.
        var body = body.withLock { exchange(&$0, with: nil) }
        if body != nil { ThreadWorklist.letGo(exchange(&body, with: nil)) }
    }

    /// Runs the closure on the main actor.
    public override func main() {
        let holder = holder
        holder.operation.withLock { $0 = self }
        MainThreadRelay.run { holder.take()?.runOnMain() }
        // Cancelled on the way here, it was not yet held when the cancellation let go of it.
        if isCancelled { withExtendedLifetime(holder.take()) {} }
    }

    private func runOnMain() {
        guard let body = body.withLock({ exchange(&$0, with: nil) }) else { return }
        MainActor.assumeIsolated {
            do throws(ErrorType) {
                let result = try BodyWait.within(self) { () throws(ErrorType) -> ResultType in try body() }
                if !isCancelled { finish(withResult: result) }
            } catch {
                if !isCancelled { finish(orCancelWith: error) }
            }
        }
    }

    package override func releaseBody() {
        withExtendedLifetime(holder.take()) {}
        let old = body.withLock { exchange(&$0, with: nil) }
        withExtendedLifetime(old) {}
    }
}
