// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// An async closure as an operation: its value is the result, what it throws is the error.
///
/// ```swift
/// let answer = TaskOperation {
///     try await Task.sleep(for: .milliseconds(10))
///     return 42
/// }
/// answer.successHandler = { print($0) }
/// answer.start()
/// ```
///
/// Cancelling the operation cancels the closure's task. A `CancellationError` that the closure throws cancels the
/// operation.
///
/// The closure has the task-local values and the priority of the task that calls ``TypedOperation/run()``,
/// ``GroupScope/run(_:weight:)`` or `start()`. If a queue begins the closure and no task called one of these methods,
/// the closure has none of the values: capture what it needs.
public final class TaskOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: all its state is behind its lock.

    private enum Work {
        case waiting(@Sendable () async throws(ErrorType) -> ResultType)
        case beginning
        case running(Task<Void, Never>)
        case over
    }

    private let work: Locked<Work>
    private let waitsForBody: Bool

    /// Makes an operation that runs `body` in a task of its own.
    ///
    /// - Parameters:
    ///   - windsDownAfterCancellation: Whether a canceled operation ends only when `body` has returned. The default is
    ///     `false`: a canceled operation ends immediately, and so does a canceled group that waits for nothing else,
    ///     although `body` may still run. Pass `true` if the code that follows the operation needs `body` to be over.
    ///   - body: The work. It should heed the cancellation of its task.
    public init(
        windsDownAfterCancellation: Bool = false,
        _ body: @escaping @Sendable () async throws(ErrorType) -> ResultType
    ) {
        waitsForBody = windsDownAfterCancellation
        work = Locked(.waiting(body))
        super.init()
    }

    deinit {
        // The closure may hold another operation, and that one another: freed in a loop, not in a recursion.
        var unused: Work? = work.withLock { exchange(&$0, with: .over) }
        if case .waiting = unused { ThreadWorklist.letGo(exchange(&unused, with: nil)) }
    }

    /// Whether a cancelled operation ends only when its closure returned.
    public override var windsDownAfterCancellation: Bool { waitsForBody }

    /// Begins the task.
    public override func main() {
        let taken = work.withLock { work -> Work? in
            guard case .waiting = work else { return nil }
            return exchange(&work, with: .beginning)
        }
        guard case .waiting(let body) = taken else {
            // Cancelled on the way here. Who winds down waits for a body that will not run.
            if waitsForBody { bodyDidReturn() }
            return
        }
        let task = Task { [self] in
            let number = BodyTasks.begin(self)
            defer { BodyTasks.end(number) }
            do throws(ErrorType) {
                let result = try await body()
                if isAwaited { finish(withResult: result) }
            } catch {
                if isCancelled {
                    if isAwaited { finish(withError: error) }
                } else {
                    finish(orCancelWith: error)
                    // It was cancelled, by that or by somebody else meanwhile, and waits for the end of this body.
                    if waitsForBody, isCancelled { finish(withError: error) }
                }
            }
        }
        let isOver = work.withLock { work in
            guard case .beginning = work else { return true }
            work = .running(task)
            return false
        }
        // Cancelled between the start and here: the hook found no task to cancel.
        if isOver { task.cancel() }
    }

    /// Whether the end of the body means anything: not to an operation that ended when it was cancelled.
    private var isAwaited: Bool { waitsForBody || !isCancelled }

    /// Cancels the task.
    public override func didCancel(because cause: CancellationCause) {
        if case .running(let task) = work.withLock({ exchange(&$0, with: .over) }) { task.cancel() }
    }

    package override func releaseBody() {
        // A running task is left for `didCancel`, which comes after this.
        let waiting = work.withLock { work -> Work? in
            guard case .waiting = work else { return nil }
            return exchange(&work, with: .over)
        }
        withExtendedLifetime(waiting) {}
    }
}
