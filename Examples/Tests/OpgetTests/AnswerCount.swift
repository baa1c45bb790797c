// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Synchronization

/// Counts what a server was asked for.
final class AnswerCount: Sendable {
    private let count = Mutex(0)

    /// How many there were before this one.
    func next() -> Int {
        count.withLock { count in
            count += 1
            return count - 1
        }
    }

    func isPast(_ limit: Int) -> Bool { count.withLock { $0 > limit } }
}
