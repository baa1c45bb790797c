// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Counts what happens on many threads.
final class Tally: Sendable {
    private let state = Locked(0)

    var count: Int { state.withLock { $0 } }

    /// Counts one more; gives how many there were before.
    @discardableResult
    func add() -> Int {
        state.withLock { count in
            defer { count += 1 }
            return count
        }
    }
}
