// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// How far a run is, and what is wanted of its present task.
///
/// Any thread may change what is wanted, but only one at a time brings the task to it: who asks for the first step and gets
/// one does it, without a lock, and asks for the next until there is none. So no step that is late undoes a newer one.
package struct DownloadSteering {
    /// What is to be asked of a task.
    package enum Step {
        case resume(any NetworkTask)
        case suspend(any NetworkTask)
    }

    /// What a cancellation finds.
    package enum Cancelled {
        /// Nothing had begun: this is the end.
        case ended
        case task(any NetworkTask)
        /// No task is there, or none any more.
        case noTask
    }

    private enum State {
        case ready
        case preparing
        case running(any NetworkTask, isResumed: Bool)
        case ended
    }

    private var state = State.ready
    private var isSuspended = false
    private var isCancelled = false
    private var settling = RepeatFlag()

    package init() {}

    /// Lets it go on; true if it is to be begun.
    package mutating func resume() -> Bool {
        isSuspended = false
        guard case .ready = state else { return false }
        state = .preparing
        return true
    }

    package mutating func suspend() {
        isSuspended = true
    }

    package mutating func cancel() -> Cancelled {
        isCancelled = true
        switch state {
        case .ready:
            state = .ended
            return .ended
        case .running(let task, _): return .task(task)
        case .preparing, .ended: return .noTask
        }
    }

    /// Another request is about to be made, in the place of the last; false if it is not wanted any more.
    ///
    /// The last task is handed out, for whoever asks to let it go.
    package mutating func askAgain() -> (isWanted: Bool, last: (any NetworkTask)?) {
        guard !isCancelled else { return (false, nil) }
        let last = task
        state = .preparing
        return (true, last)
    }

    /// Takes the task that was made; false if it is to be cancelled at once.
    package mutating func take(_ task: any NetworkTask) -> Bool {
        state = .running(task, isResumed: false)
        return !isCancelled
    }

    /// The first step of a thread that wants to bring the task to what is wanted; nil if another one is at it.
    package mutating func firstStep() -> Step? {
        settling.request() ? nextStep() : nil
    }

    /// The step that comes after one that was done.
    package mutating func nextStep() -> Step? {
        guard !isCancelled, case .running(let task, let isResumed) = state, isResumed == isSuspended else {
            settling.stop()
            return nil
        }
        state = .running(task, isResumed: !isResumed)
        return isSuspended ? .suspend(task) : .resume(task)
    }

    /// Whether it was cancelled before this end, and the last task, for whoever asks to let it go.
    package mutating func end() -> (isCancelled: Bool, last: (any NetworkTask)?) {
        let last = task
        state = .ended
        return (isCancelled, last)
    }

    private var task: (any NetworkTask)? {
        if case .running(let task, _) = state { task } else { nil }
    }
}
