// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Where a queue gets its threads from: the process's pool, or a test that plays the threads itself.
package protocol WorkerSource: Sendable {
    /// Gives the queue a thread that calls its `work()` once; false if there is none to be had.
    func provide(for engine: QueueEngine) -> Bool

    /// Notes that the queue got none: it will be offered one (`offerWorker()`) when there is. False, and nothing was
    /// noted, if there is one by now.
    func remember(_ engine: QueueEngine) -> Bool

    /// One more thread waits within a body; false, and it must not, if no thread would be left.
    func beginRest() -> Bool

    func endRest()

    /// Whether threads block in real time, so that a queue that stands still should get more.
    var watchesForStalls: Bool { get }

    /// Nanoseconds by which it is known whether bodies are short.
    var now: UInt64 { get }

    /// Nanoseconds of processor time that the process used, on all cores together.
    var usedTime: UInt64 { get }
}

extension WorkerSource {
    /// None, for those that do not watch.
    package var usedTime: UInt64 { 0 }
}

/// Threads of our own for the bodies of operations, shared by all queues of the process.
///
/// Dispatch would give one more thread a second where bodies block; here a body that waits is replaced at once. Threads
/// that have nothing to do are kept for a while and then ended. There are never more than ``threadLimit``.
package final class WorkerPool: WorkerSource {
    package static let shared = WorkerPool()

    /// How many threads there may be in the process, those of bodies that wait included.
    package static let threadLimit = 512

    /// How much stack a thread has: address space, of which only what is used takes memory.
    private static let stackSize = 4 << 20

    /// How long a thread waits for something to do before it ends.
    private static let patience = DispatchTimeInterval.seconds(5)

    private final class Worker: Sendable {
        let semaphore = DispatchSemaphore(value: 0)
        let assignment = Locked<QueueEngine?>(nil)
    }

    private struct State {
        var idle: [Worker] = []
        var count = 0
        /// Threads that wait within a body.
        var resting = 0
        /// Queues that got no thread, each once.
        var starving = Fifo<QueueEngine>()
        var isStarving: Set<ObjectIdentifier> = []

        var hasThread: Bool { !idle.isEmpty || count < WorkerPool.threadLimit }
    }

    private let state = Locked(State())

    /// How many threads there are.
    package var count: Int { state.withLock { $0.count } }

    package func provide(for engine: QueueEngine) -> Bool {
        enum Choice { case wake(Worker), make, refuse }
        let choice: Choice = state.withLock { state in
            if let worker = state.idle.popLast() { return .wake(worker) }
            guard state.hasThread else { return .refuse }
            state.count += 1
            return .make
        }
        switch choice {
        case .wake(let worker):
            worker.assignment.withLock { $0 = engine }
            worker.semaphore.signal()
        case .make: makeWorker(for: engine)
        case .refuse: return false
        }
        return true
    }

    package func remember(_ engine: QueueEngine) -> Bool {
        state.withLock { state in
            guard !state.hasThread else { return false }
            if state.isStarving.insert(ObjectIdentifier(engine)).inserted { state.starving.append(engine) }
            return true
        }
    }

    private func makeWorker(for engine: QueueEngine) {
        let worker = Worker()
        worker.assignment.withLock { $0 = engine }
        let thread = Thread { [self] in serve(worker) }
        thread.name = "OperationKit"
        thread.stackSize = Self.stackSize
        thread.start()
    }

    private func serve(_ worker: Worker) {
        while true {
            if let engine = worker.assignment.withLock({ exchange(&$0, with: nil) }) { engine.work() }
            while let engine = nextStarving(orIdle: worker) {
                if engine.offerWorker() { engine.work() }
            }
            guard worker.semaphore.wait(timeout: .now() + Self.patience) == .timedOut else { continue }
            let isIdle = state.withLock { state in
                guard let index = state.idle.firstIndex(where: { $0 === worker }) else { return false }
                state.idle.remove(at: index)
                state.count -= 1
                return true
            }
            if isIdle { return }
            // Somebody took it from the list just now, and its signal is on the way.
            worker.semaphore.wait()
        }
    }

    /// A queue that got no thread before; if there is none, the worker is idle from now on.
    private func nextStarving(orIdle worker: Worker) -> QueueEngine? {
        state.withLock { state in
            if let engine = state.starving.popFirst() {
                state.isStarving.remove(ObjectIdentifier(engine))
                return engine
            }
            state.idle.append(worker)
            return nil
        }
    }

    package var watchesForStalls: Bool { true }

    package var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

    package var usedTime: UInt64 {
        var time = timespec()
        guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return 0 }
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    package func beginRest() -> Bool {
        state.withLock { state in
            guard state.resting + 1 < Self.threadLimit else { return false }
            state.resting += 1
            return true
        }
    }

    package func endRest() { state.withLock { $0.resting -= 1 } }
}
