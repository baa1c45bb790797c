// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit

/// Counts events on many threads.
final class Tally: Sendable {
    private struct State {
        var count = 0
        var waiting: [(count: Int, gate: Gate)] = []
    }

    private let state = Locked(State())

    var count: Int { state.withLock { $0.count } }

    /// Adds one, and returns the count before.
    @discardableResult
    func add() -> Int {
        let (before, reached) = state.withLock { state in
            state.count += 1
            guard state.waiting.contains(where: { $0.count <= state.count }) else { return (state.count - 1, [Gate]()) }
            let reached = state.waiting.filter { $0.count <= state.count }.map(\.gate)
            state.waiting.removeAll { $0.count <= state.count }
            return (state.count - 1, reached)
        }
        for gate in reached { gate.open() }
        return before
    }

    /// Returns a gate that opens at this count.
    func gate(at count: Int) -> Gate {
        let gate = Gate()
        let isReached = state.withLock { state in
            if state.count < count { state.waiting.append((count, gate)) }
            return state.count >= count
        }
        if isReached { gate.open() }
        return gate
    }
}
