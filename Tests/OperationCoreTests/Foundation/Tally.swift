// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A thread-safe counter that also records its highest value.
final class Tally: Sendable {
    private let state = Locked((value: 0, peak: 0, runs: 0))

    var value: Int { state.withLock { $0.value } }
    var peak: Int { state.withLock { $0.peak } }
    /// The number of calls of `add` with a positive amount.
    var runs: Int { state.withLock { $0.runs } }

    @discardableResult
    func add(_ amount: Int = 1) -> Int {
        state.withLock { state in
            state.value += amount
            state.peak = max(state.peak, state.value)
            if amount > 0 { state.runs += 1 }
            return state.value
        }
    }

    /// Increases the value by 1 while the closure runs.
    func during<Result>(_ body: () -> Result) -> Result {
        add()
        defer { add(-1) }
        return body()
    }
}
