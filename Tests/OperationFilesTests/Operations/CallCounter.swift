// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationFiles

/// A thread-safe counter of calls.
final class CallCounter: Sendable {
    private let calls = Locked(0)

    /// The number of calls.
    var count: Int { calls.withLock { $0 } }

    /// Counts one more call, and returns the new number.
    @discardableResult
    func next() -> Int {
        calls.withLock { calls in
            calls += 1
            return calls
        }
    }
}
