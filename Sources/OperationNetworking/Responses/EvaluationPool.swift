// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// A pool of threads that create results and write small downloads, so that they do not block the threads of sessions
/// and callers.
///
/// A thread performs one evaluation after another, so that many simultaneous responses need few wake-ups. For the
/// same reason, the first thread starts only when a busy session has delivered a few responses or becomes idle. A
/// second thread starts only if the waiting evaluations would take too long, or if the current one takes long.
///
/// If an operation ends on one of these threads, the queue of the operation can borrow the thread
/// (``BorrowedThread``). A thread whose evaluation waits for an operation does not count, and another thread replaces
/// it. The awaited operation may need an evaluation too.
package final class EvaluationPool: ThreadOwner {
    static let shared = EvaluationPool()

    private static let mostThreads = 64
    /// The number of evaluations that may wait for the existing threads, unless there is a thread for each core.
    private static let shortQueue = 8
    /// The number of evaluations that may wait for the first thread while their session is busy.
    private static let fewest = 4
    /// The time in nanoseconds without a new evaluation after which another thread starts.
    ///
    /// The longer time applies if there is a thread for each core.
    private static let shortStallThreshold: UInt64 = 500_000
    private static let longStallThreshold: UInt64 = 4_000_000
    /// The interval at which the pool checks this time while no evaluations are added.
    private static let watchInterval = DispatchTimeInterval.milliseconds(10)

    private struct State {
        var waiting = Fifo<Work>()
        var threads = 0
        /// The number of threads that wait for an operation.
        var resting = 0
        /// The number of evaluations that have begun.
        var begun: UInt64 = 0
        /// The value of `begun` when it was last seen to change, and the time of that.
        var seen: (begun: UInt64, at: UInt64) = (0, 0)
        var isWatched = false

        /// The number of threads that evaluate.
        var active: Int { threads - resting }

        /// Reserves one more thread if it seems to be needed.
        mutating func takesThread(at now: UInt64, width: Int) -> Bool {
            if active > 0, active >= width || waiting.count <= EvaluationPool.shortQueue {
                guard !waiting.isEmpty, seen.begun == begun else {
                    seen = (begun, now)
                    return false
                }
                // Evaluations may block for any time.
                let threshold =
                    active < width ? EvaluationPool.shortStallThreshold : EvaluationPool.longStallThreshold
                guard active < EvaluationPool.mostThreads, now >= seen.at + threshold else { return false }
            }
            threads += 1
            seen = (begun, now)
            return true
        }
    }

    private let state = Locked(State())
    // A serial queue gets a thread immediately. A global queue waits for a second if its threads block.
    private let watching = DispatchQueue(label: "OperationKit.EvaluationPool")
    private let width = max(ProcessInfo.processInfo.activeProcessorCount, 1)

    package init() {}

    /// The number of threads that perform evaluations.
    package var threadCount: Int { state.withLock { $0.threads } }

    /// Performs an evaluation soon, on a thread of the pool.
    package func run(_ evaluation: @escaping @Sendable () -> Void) {
        let deferredWork = SessionDeferredWork.current
        let now = DispatchTime.now().uptimeNanoseconds
        let (threads, takesThread, watches) = state.withLock { state in
            state.waiting.append(Work(evaluation))
            // The first thread of a busy session's evaluations starts a little later.
            if deferredWork != nil, state.active == 0, state.waiting.count < Self.fewest { return (0, false, false) }
            let takesThread = state.takesThread(at: now, width: width)
            // Timers are expensive, so this check replaces them as long as evaluations are added.
            let watches = !takesThread && !exchange(&state.isWatched, with: true)
            return (state.threads, takesThread, watches)
        }
        if takesThread { addThread(threads) }
        if watches { watch() }
        if threads == 0 { deferredWork?.deferWork(for: self) { self.begin() } }
    }

    /// Starts a thread for deferred evaluations.
    private func begin() {
        let now = DispatchTime.now().uptimeNanoseconds
        let (threads, takesThread) = state.withLock { state in
            guard state.active == 0, !state.waiting.isEmpty else { return (0, false) }
            let takesThread = state.takesThread(at: now, width: width)
            return (state.threads, takesThread)
        }
        if takesThread { addThread(threads) }
    }

    /// The threads of the global queue may all be blocked, so the threads beyond the number of cores are separate.
    private func addThread(_ number: Int) {
        if number <= width {
            DispatchQueue.global().async { self.takeAll() }
        } else {
            Thread { self.takeAll() }.start()
        }
    }

    private func takeAll() {
        BorrowedThread.run(by: self) {
            while let evaluation = next() { autoreleasepool { evaluation.perform() } }
        }
    }

    private func next() -> Work? {
        state.withLock { state in
            if let next = state.waiting.popFirst() {
                state.begun += 1
                return next
            }
            state.threads -= 1
            return nil
        }
    }

    package func threadWillWait() -> Bool {
        guard WorkerPool.shared.beginRest() else { return false }
        let now = DispatchTime.now().uptimeNanoseconds
        let (threads, takesThread) = state.withLock { state in
            state.resting += 1
            let takesThread = !state.waiting.isEmpty && state.takesThread(at: now, width: width)
            return (state.threads, takesThread)
        }
        if takesThread { addThread(threads) }
        return true
    }

    package func threadDidWait() {
        WorkerPool.shared.endRest()
        let watches = state.withLock { state in
            state.resting -= 1
            // Evaluations that were deferred while no thread was active may find this thread busy.
            return !state.waiting.isEmpty && !exchange(&state.isWatched, with: true)
        }
        if watches { watch() }
    }

    /// Checks after a while whether the threads make progress, and repeats this until nothing waits.
    private func watch() {
        watching.asyncAfter(deadline: .now() + Self.watchInterval) { [self] in
            let now = DispatchTime.now().uptimeNanoseconds
            let (threads, takesThread, continues) = state.withLock { state in
                let takesThread = !state.waiting.isEmpty && state.takesThread(at: now, width: width)
                state.isWatched = !state.waiting.isEmpty
                return (state.threads, takesThread, state.isWatched)
            }
            if takesThread { addThread(threads) }
            if continues { watch() }
        }
    }
}
