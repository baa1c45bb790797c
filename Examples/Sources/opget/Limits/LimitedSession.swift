// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore
import OperationNetworking
import Synchronization

/// A session that limits the total rate at which the responses of all its tasks arrive.
///
/// The session is between the session that transfers the bytes and the session that follows redirects. If a task has
/// received more than its share, the session holds the task. The connection then slows the server down, so the session
/// does not need to buffer bytes.
final class LimitedSession: NetworkSession {
    private let session: any NetworkSession
    private let clock: any OperationClock
    private let queue: DispatchQueue
    private let line: Mutex<RateLine>

    /// Creates a session over another session.
    ///
    /// - Parameters:
    ///   - session: The session that transfers the bytes.
    ///   - bytesPerSecond: The maximum number of bytes per second, for all responses together.
    ///   - clock: The clock that measures the pauses.
    ///   - queue: The serial queue on which the session releases held tasks.
    init(
        over session: any NetworkSession, bytesPerSecond: Int, clock: any OperationClock = .system,
        queue: DispatchQueue = DispatchQueue(label: "opget.limit")
    ) {
        self.session = session
        self.clock = clock
        self.queue = queue
        line = Mutex(RateLine(bytesPerSecond: bytesPerSecond))
    }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        let task = LimitedTask(receiver, self)
        task.use(session.makeTask(with: request, receiver: task))
        return task
    }

    /// Returns how long a task must pause after it has received bytes, or nil if more bytes can arrive immediately.
    fileprivate func pause(for count: Int) -> Duration? {
        let now = clock.now
        return line.withLock { $0.take(count, at: now) }
    }

    fileprivate func schedule(after pause: Duration, _ end: @escaping @Sendable () -> Void) {
        // The session does not keep the timer, because a timer that fires after the end of the task has no effect.
        _ = clock.schedule(after: pause, end)
    }

    fileprivate func enqueue(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }
}

/// A task that both its receiver and the rate limit can hold.
///
/// Bytes arrive only when neither of them holds the task. A hold takes effect on the calling thread before the call
/// returns, because a receiver relies on this. All calls of `proceed()` happen on one serial queue. If two threads hold
/// and release the task at the same time, their calls can reach the underlying task in the wrong order. Each thread
/// therefore reads the state again after its call.
private final class LimitedTask: NetworkTask, NetworkReceiver {
    private struct State {
        var task: (any NetworkTask)?
        var isHeldByReceiver = false
        /// The number of pauses of the rate limit that have not ended.
        var pauses = 0

        var mayReceive: Bool { !isHeldByReceiver && pauses == 0 }
    }

    private let receiver: any NetworkReceiver
    private let session: LimitedSession
    private let state = Mutex(State())

    init(_ receiver: any NetworkReceiver, _ session: LimitedSession) {
        self.receiver = receiver
        self.session = session
    }

    /// Sets the task that transfers the bytes.
    ///
    /// The two tasks retain each other until the end of the task, which the session delivers for each task that was
    /// resumed or canceled.
    func use(_ task: any NetworkTask) { state.withLock { $0.task = task } }

    private var task: (any NetworkTask)? { state.withLock { $0.task } }
    private var mayReceive: Bool { state.withLock { $0.mayReceive } }

    func resume() { task?.resume() }
    func suspend() { task?.suspend() }
    func cancel() { task?.cancel() }

    func hold() {
        hold { $0.isHeldByReceiver = true }
    }

    func proceed() {
        release { $0.isHeldByReceiver = false }
    }

    /// Holds the task on this thread.
    ///
    /// After a call from within the receiver, no more bytes arrive.
    private func hold(_ change: (inout State) -> Void) {
        let task = state.withLock { state in
            change(&state)
            return state.task
        }
        task?.hold()
        // Another thread released the task before this hold took effect.
        if mayReceive { session.enqueue { [self] in proceedIfFree() } }
    }

    private func release(_ change: (inout State) -> Void) {
        state.withLock { change(&$0) }
        session.enqueue { [self] in proceedIfFree() }
    }

    /// Lets the task proceed if nothing holds it.
    ///
    /// Call this method on the session's queue.
    private func proceedIfFree() {
        guard mayReceive, let task else { return }
        task.proceed()
        // Another thread held the task before `proceed()` took effect, so this thread holds the task again. The queue
        // later runs the block that releases that hold, so the task does not stay held by mistake.
        if !mayReceive { task.hold() }
    }

    // Calls from the underlying task.

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) { receiver.task(self, didReceive: head) }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        receiver.task(self, didReceive: bytes)
        guard let pause = session.pause(for: bytes.count) else { return }
        // The hold comes before the timer, because the hold must take effect before its release.
        hold { $0.pauses += 1 }
        session.schedule(after: pause) { [self] in release { $0.pauses -= 1 } }
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

    func taskMaySend(_ task: any NetworkTask) -> Bool { receiver.taskMaySend(self) }
}
