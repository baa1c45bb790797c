// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// A task that was made with a session that belongs to no operation.
///
/// The session gets the request when the task is first called. Until then an operation can adopt the task, so that the
/// response goes to that operation.
final class UnboundTask: NetworkTask {
    private enum State {
        case open
        /// A thread asks the session for the task, outside the lock. Meanwhile other threads made these calls.
        case making([@Sendable (any NetworkTask) -> Void])
        case made(any NetworkTask)
    }

    private let session: any NetworkSession
    private let request: NetworkRequest
    private let state = Locked(State.open)

    init(_ session: any NetworkSession, _ request: NetworkRequest) {
        self.session = session
        self.request = request
        TaskCreation.current?.note(self)
    }

    /// Makes the task for an operation; nil if the task was called or adopted before.
    func adopt(_ receiver: any NetworkReceiver) -> (any NetworkTask)? {
        let isOpen = state.withLock { state in
            guard case .open = state else { return false }
            state = .making([])
            return true
        }
        return isOpen ? make(receiver) : nil
    }

    func resume() { call { $0.resume() } }
    func suspend() { call { $0.suspend() } }
    func cancel() { call { $0.cancel() } }
    func hold() { call { $0.hold() } }
    func proceed() { call { $0.proceed() } }

    private func call(_ step: @escaping @Sendable (any NetworkTask) -> Void) {
        let (task, isFirst) = state.withLock { state -> ((any NetworkTask)?, Bool) in
            switch state {
            case .open:
                state = .making([step])
                return (nil, true)
            case .making(let steps):
                state = .making(steps + [step])
                return (nil, false)
            case .made(let task): return (task, false)
            }
        }
        if let task { step(task) }
        if isFirst { make(SilentReceiver()) }
    }

    /// Asks the session for the task, and makes the calls that arrived meanwhile, in their order.
    @discardableResult
    private func make(_ receiver: any NetworkReceiver) -> any NetworkTask {
        let task = session.withPolicy.makeTask(with: request, receiver: receiver)
        while true {
            let steps = state.withLock { state -> [@Sendable (any NetworkTask) -> Void] in
                guard case .making(let steps) = state, !steps.isEmpty else {
                    state = .made(task)
                    return []
                }
                state = .making([])
                return steps
            }
            if steps.isEmpty { return task }
            for step in steps { step(task) }
        }
    }
}

extension UnboundTask: GivingUp {
    func giveUp() { call { $0.endForAttempt() } }
}

/// One call of the hook that makes the task of an attempt, and the tasks that are made during the call.
final class TaskCreation: Sendable {
    @TaskLocal static var current: TaskCreation?

    private struct State {
        var hasBoundTask = false
        var unbound: [UnboundTask] = []
        var isOver = false
    }

    private let state = Locked(State())

    /// Calls the hook; returns a task that reports to the receiver, or one that the hook's own code follows.
    func run(_ receiver: AttemptReceiver, _ hook: () throws -> any NetworkTask) throws -> any NetworkTask {
        defer { state.withLock { $0 = State(isOver: true) } }
        let task = try Self.$current.withValue(self, operation: hook)
        if let unbound = task as? UnboundTask {
            if let adopted = unbound.adopt(receiver) { return adopted }
            unbound.cancel()
            throw NetworkError.unboundTask
        }
        let made = state.withLock { $0 }
        // The hook wrapped a task that nothing has called yet in its own. The response can only be for the operation.
        if !made.hasBoundTask, made.unbound.count == 1 { _ = made.unbound[0].adopt(receiver) }
        return task
    }

    func noteBoundTask() { state.withLock { $0.hasBoundTask = true } }

    func note(_ task: UnboundTask) {
        state.withLock { if !$0.isOver { $0.unbound.append(task) } }
    }
}

extension NetworkError {
    fileprivate static let unboundTask = NetworkError(
        code: .unboundTask, phase: .awaitingResponse,
        message: "The task that createTask(with:using:) returned does not belong to the operation: its session is not "
            + "the one that the hook was given, and the task was resumed, canceled or returned before. Its response "
            + "would never reach the operation. Make the task with the session that the hook is given, return it "
            + "without calling it, or give the other session to the operation.")
}

/// A receiver that ignores everything.
private final class SilentReceiver: NetworkReceiver {
    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}
    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {}
}
