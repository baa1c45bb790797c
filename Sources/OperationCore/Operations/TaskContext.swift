// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The task-local values and the priority of the task that creates it, for a body that begins on another thread.
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

    // A job that never ran would keep its task and the values in memory.
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
            // The job is always there by now, because `Task.init` gives it to its executor before it returns. Should a
            // runtime give it later, the body begins here without the context, and the job does nothing when it comes.
            takeBody()?()
        }
    }
}

extension ManagedOperation {
    /// Keeps the context of the calling task for the body, unless the body has begun or another task came before.
    ///
    /// It does nothing if the caller is not in a task.
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
