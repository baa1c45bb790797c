// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Gives the first of several answers to the one who asks.
final class FirstAnswer<Answer: Sendable>: Sendable {
    private enum State {
        case open
        case asked(CheckedContinuation<Answer, Never>)
        case given(Answer)
        case over
    }

    private let state = Locked(State.open)

    func give(_ answer: Answer) {
        let asker = state.withLock { state -> CheckedContinuation<Answer, Never>? in
            switch state {
            case .open: state = .given(answer)
            case .asked(let asker):
                state = .over
                return asker
            case .given, .over: break
            }
            return nil
        }
        asker?.resume(returning: answer)
    }

    func value() async -> Answer {
        await withCheckedContinuation { continuation in
            let answer = state.withLock { state -> Answer? in
                if case .given(let answer) = state {
                    state = .over
                    return answer
                }
                state = .asked(continuation)
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
        }
    }

    /// The answer, or else this if the task that asks is cancelled.
    func valueUnlessCancelled(or substitute: Answer) async -> Answer {
        await withTaskCancellationHandler {
            await value()
        } onCancel: {
            give(substitute)
        }
    }
}
