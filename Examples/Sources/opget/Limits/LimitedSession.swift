// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking
import Synchronization

/// A session whose responses come no faster than a rate, all together: a brake beneath all that is done with them.
///
/// It is put between what moves the bytes and what follows redirects. A task that got more than its share is held, so the
/// server is slowed down by its connection, and nothing is kept in memory.
final class LimitedSession: NetworkSession {
    private let session: any NetworkSession
    private let clock: any OperationClock
    private let line: Mutex<RateLine>

    init(over session: any NetworkSession, bytesPerSecond: Int, clock: any OperationClock = .system) {
        self.session = session
        self.clock = clock
        line = Mutex(RateLine(bytesPerSecond: bytesPerSecond))
    }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        let task = LimitedTask(receiver, self)
        task.use(session.makeTask(with: request, receiver: task))
        return task
    }

    /// Bytes came: how long until more may; nil if they may at once.
    fileprivate func pause(for count: Int) -> Duration? {
        let now = clock.now
        return line.withLock { $0.take(count, at: now) }
    }

    fileprivate func schedule(after pause: Duration, _ goOn: @escaping @Sendable () -> Void) {
        // What comes of it too late finds a task that has ended, and does nothing.
        _ = clock.schedule(after: pause, goOn)
    }
}

/// A task with two who may hold it: its receiver, and the limit.
///
/// Bytes come in when neither does.
private final class LimitedTask: NetworkTask, NetworkReceiver {
    private struct State {
        var task: (any NetworkTask)?
        var isHeldByReceiver = false
        /// How many pauses of the limit have not ended.
        var pauses = 0
        /// What the task was told last.
        var isHeld = false
        /// Whether somebody is telling it.
        var isSettling = false
    }

    private let receiver: any NetworkReceiver
    private let session: LimitedSession
    private let state = Mutex(State())

    init(_ receiver: any NetworkReceiver, _ session: LimitedSession) {
        self.receiver = receiver
        self.session = session
    }

    /// Both hold each other until the end, which comes for each task that was resumed or cancelled.
    func use(_ task: any NetworkTask) { state.withLock { $0.task = task } }

    private var task: (any NetworkTask)? { state.withLock { $0.task } }

    func resume() { task?.resume() }
    func suspend() { task?.suspend() }
    func cancel() { task?.cancel() }

    func hold() {
        brake { $0.isHeldByReceiver = true }
    }

    func proceed() {
        state.withLock { $0.isHeldByReceiver = false }
        settle()
    }

    /// Holds the task on this thread: called from within the receiver, nothing comes after it.
    private func brake(_ reason: (inout State) -> Void) {
        let task = state.withLock { state in
            reason(&state)
            state.isHeld = true
            return state.task
        }
        task?.hold()
    }

    /// Brings the task to what is wanted; one thread at a time does, and looks again when it is done, so that no step which
    /// is late undoes a newer one.
    private func settle() {
        while let (task, holds) = nextStep() {
            if holds { task.hold() } else { task.proceed() }
            state.withLock { state in
                state.isSettling = false
                // Whoever pulled the brake meanwhile may have been overtaken: it is pulled again.
                if !holds { state.isHeld = false }
            }
        }
    }

    private func nextStep() -> (any NetworkTask, Bool)? {
        state.withLock { state in
            let wanted = state.isHeldByReceiver || state.pauses > 0
            guard !state.isSettling, let task = state.task, state.isHeld != wanted else { return nil }
            state.isHeld = wanted
            state.isSettling = true
            return (task, wanted)
        }
    }

    // As a receiver.

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) { receiver.task(self, didReceive: head) }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        receiver.task(self, didReceive: bytes)
        guard let pause = session.pause(for: bytes.count) else { return }
        // The brake comes first, or the clock might loose it before it was set.
        brake { $0.pauses += 1 }
        session.schedule(after: pause) { [self] in
            state.withLock { $0.pauses -= 1 }
            settle()
        }
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        let task = state.withLock { state in
            defer { state.task = nil }
            return state.task
        }
        receiver.task(self, didEndWith: error)
        withExtendedLifetime(task) {}
    }

    func task(_ task: any NetworkTask, didReceiveInformational head: ResponseHead) {
        receiver.task(self, didReceiveInformational: head)
    }

    func task(_ task: any NetworkTask, didReceiveTrailers fields: HeaderFields) {
        receiver.task(self, didReceiveTrailers: fields)
    }

    func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) {
        receiver.task(self, didSend: count, of: total)
    }

    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        receiver.task(self, didCollect: metrics)
    }

    func taskMayLeave(_ task: any NetworkTask) -> Bool { receiver.taskMayLeave(self) }
}
