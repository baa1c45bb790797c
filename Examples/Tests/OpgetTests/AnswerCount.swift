// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Synchronization

/// Counts the requests to a server.
final class AnswerCount: Sendable {
    private let count = Mutex(0)

    /// Returns the number of earlier requests.
    func next() -> Int {
        count.withLock { count in
            count += 1
            return count - 1
        }
    }

    func isPast(_ limit: Int) -> Bool { count.withLock { $0 > limit } }
}
