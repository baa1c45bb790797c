// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Where a queue gets its threads from: the process's pool, or a test that plays the threads itself.
package protocol WorkerSource: Sendable {
    /// Gives the queue a thread that calls its `work()` once; false if there is none to be had.
    func provide(for engine: QueueEngine) -> Bool
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
    }

    private let state = Locked(State())

    /// How many threads there are.
    package var count: Int { state.withLock { $0.count } }

    package func provide(for engine: QueueEngine) -> Bool {
        enum Choice { case wake(Worker), make, refuse }
        let choice: Choice = state.withLock { state in
            if let worker = state.idle.popLast() { return .wake(worker) }
            guard state.count < Self.threadLimit else { return .refuse }
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

    private func makeWorker(for engine: QueueEngine) {
        let worker = Worker()
        worker.assignment.withLock { $0 = engine }
        let thread = Thread { [self] in serve(worker) }
        thread.name = "OperationKit.Worker"
        thread.stackSize = Self.stackSize
        thread.start()
    }

    private func serve(_ worker: Worker) {
        while true {
            if let engine = worker.assignment.withLock({ exchange(&$0, with: nil) }) { engine.work() }
            state.withLock { $0.idle.append(worker) }
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
}
