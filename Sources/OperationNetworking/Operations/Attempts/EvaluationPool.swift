// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// The threads on which results are made: neither the session's nor a caller's.
///
/// A thread takes one evaluation after another, so that many answers at once need few wake-ups. For the same reason the
/// first one begins only when a session that is busy has brought a few or has nothing else to do, and a second one only
/// where more wait than will soon be done, or where the first takes long.
///
/// The threads are lent to the queues of the operations that end on them (``LentThread``). A thread whose evaluation waits
/// for an operation does not count, and another takes its place: what it waits for may need an evaluation, too.
package final class EvaluationPool: ThreadLender {
    static let shared = EvaluationPool()

    private static let mostThreads = 64
    /// How many may wait for the threads that there are, unless there are as many as cores.
    private static let shortLine = 8
    /// How many wait at most for the first thread while their session has something else to do.
    private static let fewest = 4
    /// How long none may begin before somebody who brings one takes one more thread, and where all cores have one.
    private static let patience: UInt64 = 500_000
    private static let longPatience: UInt64 = 4_000_000
    /// How often that is looked at where nobody brings any.
    private static let watchInterval = DispatchTimeInterval.milliseconds(10)

    private struct State {
        var waiting = Fifo<@Sendable () -> Void>()
        var threads = 0
        /// Those of the threads that wait for an operation.
        var resting = 0
        /// How many evaluations began.
        var begun: UInt64 = 0
        /// How many there were when that was last seen to have changed, and the moment of that.
        var seen: (begun: UInt64, at: UInt64) = (0, 0)
        var isWatched = false

        /// How many threads evaluate.
        var active: Int { threads - resting }

        /// Takes one more thread where it seems to be needed.
        mutating func takesThread(at now: UInt64, width: Int) -> Bool {
            if active > 0, active >= width || waiting.count <= EvaluationPool.shortLine {
                guard !waiting.isEmpty, seen.begun == begun else {
                    seen = (begun, now)
                    return false
                }
                // Evaluations may block, each for as long as it likes.
                let patience = active < width ? EvaluationPool.patience : EvaluationPool.longPatience
                guard active < EvaluationPool.mostThreads, now >= seen.at + patience else { return false }
            }
            threads += 1
            seen = (begun, now)
            return true
        }
    }

    private let state = Locked(State())
    // A serial queue gets a thread at once, where global ones wait for a second if their threads block.
    private let watching = DispatchQueue(label: "OperationKit.EvaluationPool")
    private let width = max(ProcessInfo.processInfo.activeProcessorCount, 1)

    package init() {}

    /// How many threads there are that take evaluations.
    package var threadCount: Int { state.withLock { $0.threads } }

    /// Runs it soon.
    package func run(_ evaluation: @escaping @Sendable () -> Void) {
        let turn = SessionTurn.current
        if !add(evaluation, mayPutOff: turn != nil) { turn?.putOff(for: self) { self.begin() } }
    }

    /// Adds an evaluation; false if there is no thread for it, and others may come before there must be one.
    private func add(_ evaluation: @escaping @Sendable () -> Void, mayPutOff: Bool) -> Bool {
        let now = DispatchTime.now().uptimeNanoseconds
        let (threads, takesThread, watches) = state.withLock { state in
            state.waiting.append(evaluation)
            if mayPutOff, state.active == 0, state.waiting.count < Self.fewest { return (0, false, false) }
            let takesThread = state.takesThread(at: now, width: width)
            // Timers are dear: as long as evaluations come, it is looked at here.
            let watches = !takesThread && !exchange(&state.isWatched, with: true)
            return (state.threads, takesThread, watches)
        }
        if takesThread { addThread(threads) }
        if watches { watch() }
        return threads > 0
    }

    /// Sees to it that what was put off has a thread.
    private func begin() {
        let now = DispatchTime.now().uptimeNanoseconds
        let (threads, takesThread) = state.withLock { state in
            let takesThread = state.active == 0 && !state.waiting.isEmpty && state.takesThread(at: now, width: width)
            return (state.threads, takesThread)
        }
        if takesThread { addThread(threads) }
    }

    /// Those of the global queue may all be blocked, so that those beyond the cores are our own.
    private func addThread(_ number: Int) {
        if number <= width {
            DispatchQueue.global().async { self.takeAll() }
        } else {
            Thread { self.takeAll() }.start()
        }
    }

    private func takeAll() {
        LentThread.lend(by: self) {
            while let evaluation = next() { autoreleasepool { evaluation() } }
        }
    }

    private func next() -> (@Sendable () -> Void)? {
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
            // What was put off while no thread evaluated may find this one busy.
            return !state.waiting.isEmpty && !exchange(&state.isWatched, with: true)
        }
        if watches { watch() }
    }

    /// Looks after a while whether those there come to what waits, and so on until nothing waits.
    private func watch() {
        watching.asyncAfter(deadline: .now() + Self.watchInterval) { [self] in
            let now = DispatchTime.now().uptimeNanoseconds
            let (threads, takesThread, goesOn) = state.withLock { state in
                let takesThread = !state.waiting.isEmpty && state.takesThread(at: now, width: width)
                state.isWatched = !state.waiting.isEmpty
                return (state.threads, takesThread, state.isWatched)
            }
            if takesThread { addThread(threads) }
            if goesOn { watch() }
        }
    }
}

/// Sees to it that the second of two pieces of news is told after the first, though another thread may come with it before.
final class TurnTaking: Sendable {
    private enum State {
        case open
        case waiting(@Sendable () -> Void)
        case firstIsTold
    }

    private let state = Locked(State.open)

    func first(_ tell: () -> Void) {
        tell()
        if case .waiting(let tellSecond) = state.withLock({ exchange(&$0, with: .firstIsTold) }) { tellSecond() }
    }

    func second(_ tell: @escaping @Sendable () -> Void) {
        let mayTell = state.withLock { state in
            if case .firstIsTold = state { return true }
            state = .waiting(tell)
            return false
        }
        if mayTell { tell() }
    }
}
