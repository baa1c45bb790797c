// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One task that waits for something to end, or for its own cancellation: who sees that ends the wait.
package final class TaskWait: Sendable {
    private enum State {
        case idle
        case waiting(CheckedContinuation<Void, Never>)
        case over
    }

    private let state = Locked(State.idle)

    package init() {}

    /// Lets the task go on, or pass if it has not come yet.
    package func end() {
        if case .waiting(let continuation) = state.withLock({ exchange(&$0, with: .over) }) { continuation.resume() }
    }

    /// Waits for `end()`.
    package func passage() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if case .over = state { return true }
                state = .waiting(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}
