// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A value that is set by the first of several callers, and that one task awaits.
final class FirstAnswer<Answer: Sendable>: Sendable {
    private let answer = Locked<Answer?>(nil)
    private let wait = TaskWait()

    func give(_ answer: Answer) {
        self.answer.withLock { if $0 == nil { $0 = answer } }
        wait.end()
    }

    /// Returns the answer, or a substitute if the calling task is canceled.
    func valueUnlessCancelled(or substitute: Answer) async -> Answer {
        await wait.passage { give(substitute) }
        return answer.withLock { $0 } ?? substitute
    }
}

/// A test that waits until a count is reached.
///
/// The counting object retains the waiter until then. If the task of the test is canceled earlier, it continues and
/// removes its waiter.
final class Waiter: Sendable {
    let count: Int
    private let answer = FirstAnswer<Void>()

    init(until count: Int) { self.count = count }

    func pass() { answer.give(()) }

    /// Waits for ``pass()`` or for the cancellation of the task.
    func passage() async { await answer.valueUnlessCancelled(or: ()) }
}

extension [Waiter] {
    /// Removes and returns the waiters for counts that are reached.
    mutating func takeAll(at count: Int) -> [Waiter] {
        let passing = filter { $0.count <= count }
        if !passing.isEmpty { removeAll { $0.count <= count } }
        return passing
    }
}

/// A sequence of answers, each of which is returned once, except that the last one is repeated.
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
