// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

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
