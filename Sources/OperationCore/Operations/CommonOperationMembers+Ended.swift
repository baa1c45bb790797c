// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension CommonOperationMembers {
    /// Waits until the operation has ended: `isFinished` is true and its dependents were released.
    ///
    /// The outcome alone is there earlier: a cancelled operation may still wind down, a synchronous one return from its
    /// `main()`, and one that was cancelled before its start has yet to be started.
    ///
    /// It neither starts the operation nor owns it. Cancelling the task that awaits only ends the waiting; the operation
    /// goes on, and its `isFinished` says whether it had ended.
    public func ended() async {
        let wait = EndWait()
        let operation: ManagedOperation = self
        let id = operation.whenEnded { wait.end() }
        await withTaskCancellationHandler {
            await wait.passage()
        } onCancel: {
            wait.end()
        }
        if let id { operation.removeEndAction(id) }
    }

    /// The operation's own error, of whatever type, if it failed; nil as long as it has no outcome, and after a result.
    ///
    /// After a cancellation it is nil, too: see `cancellationCause`. It is for code that handles operations of all types
    /// at once; whoever knows the type reads `outcome`.
    public var anyError: (any Error)? {
        let operation: ManagedOperation = self
        return operation.failureAsError
    }
}

/// One task that waits for an end.
private final class EndWait: Sendable {
    private enum State {
        case idle
        case waiting(CheckedContinuation<Void, Never>)
        case over
    }

    private let state = Locked(State.idle)

    /// Lets the task go on, or pass if it has not come yet.
    func end() {
        if case .waiting(let continuation) = state.withLock({ exchange(&$0, with: .over) }) { continuation.resume() }
    }

    func passage() async {
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
