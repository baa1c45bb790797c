// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An operation that runs an async closure in a task.
///
/// The value that the closure returns is the result of the operation. If the closure throws a `CancellationError`, the
/// operation is canceled. Any other error that the closure throws is the error of the operation.
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
/// If you cancel the operation, the task that runs the closure is also canceled.
///
/// The closure inherits the task-local values and the priority of the task that calls ``TypedOperation/run()`` or
/// ``GroupScope/run(_:weight:)``. If a task calls `start()` and the operation begins during this call, the closure
/// inherits the values and the priority of this task. If a queue starts the operation and no task calls one of these
/// methods, the closure inherits no task-local values. In this case, capture the values that the closure needs.
public final class TaskOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: all of its state is protected by its lock.

    private enum Work {
        case waiting(@Sendable () async throws(ErrorType) -> ResultType)
        case beginning
        case running(Task<Void, Never>)
        case over
    }

    private let work: Locked<Work>
    private let waitsForBody: Bool

    /// Creates an operation that runs an async closure in a new task.
    ///
    /// - Parameters:
    ///   - windsDownAfterCancellation: A Boolean value that indicates whether a canceled operation ends only when
    ///     `body` has returned. The default is `false`, so a canceled operation ends immediately, even if `body` is
    ///     still running. In this case, a group that contains the operation does not wait for `body` either. Pass
    ///     `true` if dependents or later operations require that `body` has returned.
    ///   - body: The closure that performs the work. The closure should respect the cancellation of its task.
    public init(
        windsDownAfterCancellation: Bool = false,
        _ body: @escaping @Sendable () async throws(ErrorType) -> ResultType
    ) {
        waitsForBody = windsDownAfterCancellation
        work = Locked(.waiting(body))
        super.init()
    }

    deinit {
        // The closure may hold another operation, which may hold another one. The loop frees them without recursion.
        var unused: Work? = work.withLock { exchange(&$0, with: .over) }
        if case .waiting = unused { ThreadWorklist.release(exchange(&unused, with: nil)) }
    }

    /// A Boolean value that indicates whether a canceled operation ends only when its closure has returned.
    public override var windsDownAfterCancellation: Bool { waitsForBody }

    /// Starts the task that runs the closure.
    public override func main() {
        let taken = work.withLock { work -> Work? in
            guard case .waiting = work else { return nil }
            return exchange(&work, with: .beginning)
        }
        guard case .waiting(let body) = taken else {
            // The operation was canceled before its body began. An operation that winds down waits for a body that will
            // not run.
            if waitsForBody { bodyDidReturn() }
            return
        }
        let task = Task { [self] in
            let number = BodyTasks.begin(self)
            defer { BodyTasks.end(number, of: self) }
            do throws(ErrorType) {
                let result = try await body()
                if isAwaited { finish(withResult: result) }
            } catch {
                if isCancelled {
                    if isAwaited { finish(withError: error) }
                } else {
                    finish(orCancelWith: error)
                    // This error or another caller canceled the operation, which waits for the end of this body.
                    if waitsForBody, isCancelled { finish(withError: error) }
                }
            }
        }
        let isOver = work.withLock { work in
            guard case .beginning = work else { return true }
            work = .running(task)
            return false
        }
        // The operation was canceled between the start and this point, and the hook found no task to cancel.
        if isOver { task.cancel() }
    }

    /// Whether the end of the body has an effect, which is not the case if the operation ended when it was canceled.
    private var isAwaited: Bool { waitsForBody || !isCancelled }

    /// Cancels the task that runs the closure.
    public override func didCancel(because cause: CancellationCause) {
        if case .running(let task) = work.withLock({ exchange(&$0, with: .over) }) { task.cancel() }
    }

    package override func releaseBody() {
        // A running task is left for `didCancel`, which comes after this.
        work.release { work -> Work? in
            guard case .waiting = work else { return nil }
            return exchange(&work, with: .over)
        }
    }
}

/// The task-local values and the priority of the task that creates the context, for a body that begins on another
/// thread.
///
/// Swift copies both into an unstructured task, and only when that task is created. So a context creates an
/// unstructured task, keeps its only job until the body begins, and then runs the job on the thread of the body.
final class TaskContext: Sendable {
    private let stage = Stage()

    /// Keeps the values and the priority of the calling task.
    init() {
        let stage = stage
        Task(executorPreference: stage) { stage.takeBody()?() }
    }

    // A job that never ran would keep its task and its values in memory.
    deinit { stage.perform(nil) }

    /// Runs the body on the calling thread.
    func perform(_ body: @escaping @Sendable () -> Void) { stage.perform(body) }

    /// Keeps the job of the task instead of running it.
    private final class Stage: TaskExecutor {
        private struct State {
            var job: UnownedJob?
            var body: (@Sendable () -> Void)?
            var isOver = false
        }

        private let state = Locked(State())

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            let isLate = state.withLock { state in
                if !state.isOver { state.job = job }
                return state.isOver
            }
            if isLate { job.runSynchronously(on: asUnownedTaskExecutor()) }
        }

        func takeBody() -> (@Sendable () -> Void)? { state.withLock { exchange(&$0.body, with: nil) } }

        func perform(_ body: (@Sendable () -> Void)?) {
            let job = state.withLock { state in
                state.isOver = true
                state.body = body
                return exchange(&state.job, with: nil)
            }
            job?.runSynchronously(on: asUnownedTaskExecutor())
            // The job is always there by now, because `Task.init` gives it to its executor before it returns. If a
            // runtime gives the job later, the body begins here without the context, and the job has no effect when it
            // runs.
            takeBody()?()
        }
    }
}

extension ManagedOperation {
    /// Keeps the context of the calling task for the body, unless the body has begun or another task came before.
    ///
    /// This method has no effect if the caller is not in a task.
    final func keepTaskContext() {
        guard core.withLock({ $0.needsTaskContext }), withUnsafeCurrentTask(body: { $0 != nil }) else { return }
        let context = TaskContext()
        core.withLock { core in
            if core.needsTaskContext { core.need().taskContext = context }
        }
    }
}

// For tests.
extension ManagedOperation {
    /// Whether a context is kept for the body.
    package final var hasTaskContext: Bool { core.withLock { $0.extras?.taskContext != nil } }
}

extension ManagedOperation.Core {
    fileprivate var needsTaskContext: Bool {
        !machine.isStarted && machine.ending == nil && extras?.taskContext == nil
    }
}
