// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// The threads on which results are made: neither the session's nor a caller's.
///
/// A thread takes one evaluation after another, so that many answers at once need few wake-ups.
final class EvaluationPool: Sendable {
    static let shared = EvaluationPool()

    private static let mostThreads = 64
    private static let patience = DispatchTimeInterval.milliseconds(4)

    private struct State {
        var waiting = Fifo<@Sendable () -> Void>()
        var threads = 0
        /// How many evaluations began.
        var begun: UInt64 = 0
        var isWatched = false
    }

    private let state = Locked(State())
    // A serial queue gets a thread at once, where global ones wait for a second if their threads block.
    private let watching = DispatchQueue(label: "OperationKit.EvaluationPool")
    private let width = max(ProcessInfo.processInfo.activeProcessorCount, 1)

    /// Runs it soon.
    func run(_ evaluation: @escaping @Sendable () -> Void) {
        let (takesThread, watches, begun) = state.withLock { state in
            state.waiting.append(evaluation)
            if state.threads < width {
                state.threads += 1
                return (true, false, state.begun)
            }
            return (false, !exchange(&state.isWatched, with: true), state.begun)
        }
        if takesThread { work() }
        if watches { watch(since: begun) }
    }

    private func work() {
        DispatchQueue.global().async { self.takeAll() }
    }

    private func takeAll() {
        while let evaluation = next() { evaluation() }
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

    /// Takes one more thread if none of those there are comes to what waits, since evaluations may block.
    private func watch(since begun: UInt64) {
        watching.asyncAfter(deadline: .now() + Self.patience) { [self] in
            let (takesThread, now) = state.withLock { state -> (Bool, UInt64?) in
                guard !state.waiting.isEmpty else {
                    state.isWatched = false
                    return (false, nil)
                }
                let isStuck = state.begun == begun && state.threads < Self.mostThreads
                if isStuck { state.threads += 1 }
                return (isStuck, state.begun)
            }
            if takesThread { Thread { self.takeAll() }.start() }
            if let now { watch(since: now) }
        }
    }
}
