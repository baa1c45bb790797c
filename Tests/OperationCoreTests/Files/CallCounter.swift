// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Counts calls, on whatever thread they come.
final class CallCounter: Sendable {
    private let calls = Locked(0)

    /// How many there were.
    var count: Int { calls.withLock { $0 } }

    /// Counts one more and returns how many there were with it.
    @discardableResult
    func next() -> Int {
        calls.withLock { calls in
            calls += 1
            return calls
        }
    }
}
