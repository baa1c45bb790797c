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

/// Answers of which each is given once, and the last one from then on.
final class AnswersInTurn<Answer: Sendable>: Sendable {
    private let answers: [Answer]
    private let last: Answer
    private let given = Locked(0)

    init(_ first: Answer, _ others: [Answer]) {
        answers = [first] + others
        last = others.last ?? first
    }

    func next() -> Answer {
        let number = given.withLock { given in
            defer { given += 1 }
            return given
        }
        return answers.indices.contains(number) ? answers[number] : last
    }
}

/// One who waits in a test until a count is reached.
///
/// Whoever counts keeps him until then. His task may be cancelled first: then he goes on, and takes himself out.
final class Waiter: Sendable {
    let count: Int
    private let answer = FirstAnswer<Void>()

    init(until count: Int) { self.count = count }

    func pass() { answer.give(()) }

    /// Waits for ``pass()``, or until the task is cancelled.
    func passage() async { await answer.valueUnlessCancelled(or: ()) }
}

extension [Waiter] {
    /// Takes out those who have waited for that.
    mutating func takeAll(at count: Int) -> [Waiter] {
        let passing = filter { $0.count <= count }
        if !passing.isEmpty { removeAll { $0.count <= count } }
        return passing
    }
}
