// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A task that was created with a session that belongs to no operation.
///
/// The session receives the request when the first method of the task is called. Until then, an operation can adopt
/// the task and receive its response.
final class UnboundTask: NetworkTask {
    private typealias Call = @Sendable (any NetworkTask) -> Void

    private struct State {
        /// The task of the session, or nil until the session has returned it.
        var task: (any NetworkTask)?
        /// The calls that wait for the task.
        ///
        /// While the queue delivers, a thread requests the task from the session, without holding the lock.
        var calls = DeliveryQueue<Call>()

        var isOpen: Bool { task == nil && !calls.isDelivering }
    }

    private let session: any NetworkSession
    private let request: NetworkRequest
    private let state = Locked(State())

    init(_ session: any NetworkSession, _ request: NetworkRequest) {
        self.session = session
        self.request = request
        TaskCreation.current?.record(self)
    }

    /// Whether the task was neither called nor adopted.
    var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Creates the task for an operation, or returns nil if the task was called or adopted before.
    ///
    /// - Parameter wrap: A closure that returns the operation's session over the task's session, for example to save
    ///   a download.
    func adopt(
        _ receiver: any NetworkReceiver, _ wrap: (any NetworkSession) -> any NetworkSession
    ) -> (any NetworkTask)? {
        state.withLock { $0.isOpen && $0.calls.begin() } ? make(receiver, wrap(session)) : nil
    }

    func resume() { call { $0.resume() } }
    func suspend() { call { $0.suspend() } }
    func cancel() { call { $0.cancel() } }
    func hold() { call { $0.hold() } }
    func proceed() { call { $0.proceed() } }

    private func call(_ call: @escaping Call) {
        let (task, isFirst) = state.withLock { state in
            state.task.map { ($0, false) } ?? (nil, state.calls.append(call))
        }
        if let task { call(task) }
        if isFirst { make(SilentReceiver(), session) }
    }

    /// Requests the task from the session, and makes the calls that arrived in the meantime, in their order.
    @discardableResult
    private func make(_ receiver: any NetworkReceiver, _ session: any NetworkSession) -> any NetworkTask {
        // The session may be bound to an operation whose hook did not choose this receiver.
        let task = TaskCreation.$current.withValue(nil) {
            session.followingRedirects.makeTask(with: request, receiver: receiver)
        }
        while let call = nextCall(of: task) { call(task) }
        return task
    }

    /// Takes the next call.
    ///
    /// If there is none, later calls go directly to the task.
    private func nextCall(of task: any NetworkTask) -> Call? {
        state.withLock { state in
            let call = state.calls.next()
            if call == nil { state.task = task }
            return call
        }
    }
}

/// One call of the hook that creates the task of an attempt, and the tasks that are created during the call.
final class TaskCreation: Sendable {
    @TaskLocal static var current: TaskCreation?

    private struct State {
        /// Whether a task was created that reports to the operation or to the hook's own receiver.
        var hasBoundTask = false
        var unbound: [UnboundTask] = []
        var isOver = false
    }

    // The state must not keep the operation alive. A task that the hook starts has the same task-local value, and may
    // outlive the operation.
    private let state = Locked(State())

    /// Calls the hook, and returns a task that reports to the receiver or that the hook's own code handles.
    ///
    /// - Parameter wrap: A closure that returns the operation's session over the session of an adopted task.
    func run(
        _ receiver: AttemptReceiver, _ wrap: (any NetworkSession) -> any NetworkSession,
        _ hook: () throws -> any NetworkTask
    ) throws -> any NetworkTask {
        // The tasks may be the last owners of a user's sessions and bodies.
        defer { state.release { exchange(&$0, with: State(isOver: true)) } }
        let task = try Self.$current.withValue(self, operation: hook)
        if let unbound = task as? UnboundTask {
            if let adopted = unbound.adopt(receiver, wrap) { return adopted }
            unbound.cancel()
            throw NetworkError.unboundTask
        }
        // The library's own tasks wrap no other task.
        if task is any OrderedTask { return task }
        let made = state.withLock { $0 }
        guard !made.hasBoundTask, !made.unbound.isEmpty else { return task }
        // The hook wrapped a task that has not been called yet. Its response can only be for the operation.
        let open = made.unbound.filter(\.isOpen)
        if open.count == 1, open[0].adopt(receiver, wrap) != nil { return task }
        for unbound in made.unbound { unbound.cancel() }
        throw NetworkError.unboundTask
    }

    func recordBoundTask() { state.withLock { $0.hasBoundTask = true } }

    func record(_ task: UnboundTask) {
        state.withLock { if !$0.isOver { $0.unbound.append(task) } }
    }
}

extension NetworkError {
    fileprivate static let unboundTask = NetworkError(
        code: .unboundTask, phase: .awaitingResponse,
        message: "The task that createTask(with:using:) returned does not belong to the operation, so its response "
            + "cannot reach the operation. The task does not use the session that the hook received. It was also "
            + "resumed, canceled, held or returned before, or the hook created several such tasks. Create the task "
            + "with the session that the hook receives, return the task without calling it, or set the other session "
            + "for the operation.")
}

/// A `URLSessionTask` that a subclass created in the older form of the hook, and whose end its own code handles.
///
/// Foundation counts suspensions, and orders to pause or resume a task may come twice. So the task is called only when
/// something changes.
package final class FoundationTask: NetworkTask {
    private let task: any SystemTask
    private let suspension: Locked<CountedSuspension>

    convenience init(_ task: URLSessionTask) {
        // The hook may have resumed the task.
        self.init(task, isSuspended: task.state == .suspended, canPause: CountedSuspension.isPossible)
    }

    package init(_ task: any SystemTask, isSuspended: Bool, canPause: Bool) {
        self.task = task
        suspension = Locked(CountedSuspension(isSuspended: isSuspended, canSuspend: canPause))
    }

    package func resume() { suspension.withLock { $0.set(false, on: task) } }
    package func suspend() { suspension.withLock { $0.set(true, on: task) } }

    package func cancel() {
        // On Linux, canceling waits for the session's queue, which may wait for a lock of the caller.
        DispatchQueue.global().async { [task] in task.cancel() }
    }

    package func hold() {}
    package func proceed() {}
}
