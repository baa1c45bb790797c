// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Synchronization

/// The number of requests that have not begun, and the number of requests that have not ended.
package final class Countdown: Sendable {
    private struct State {
        var toBegin: Int
        var toEnd: Int
        var failed = 0
    }

    private let state: Mutex<State>
    private let isOver = DispatchSemaphore(value: 0)

    package init(_ count: Int) {
        state = Mutex(State(toBegin: count, toEnd: count))
    }

    /// Takes a request that has not begun, and returns false if all requests have begun.
    package func takeOne() -> Bool {
        state.withLock { state in
            guard state.toBegin > 0 else { return false }
            state.toBegin -= 1
            return true
        }
    }

    package func end(isGood: Bool) {
        let isLast = state.withLock { state in
            state.toEnd -= 1
            if !isGood { state.failed += 1 }
            return state.toEnd == 0
        }
        if isLast { isOver.signal() }
    }

    /// Waits until all requests have ended, and returns the number of failures.
    package func wait() -> Int {
        isOver.wait()
        return state.withLock { $0.failed }
    }
}
