// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The states that one consumer has not read yet.
///
/// Guarded by the lock of its own; the operation adds to it under its lock, so that the order is that of the changes.
final class StateFeed: Sendable {
    private struct State {
        var unread: [OperationState]
        var isEnded = false
        var reader: CheckedContinuation<OperationState?, Never>?
    }

    private let state: Locked<State>
    /// Whether the feed is that of a mapped operation, whose last state may differ from that of its original.
    private let isOfMap: Bool

    init(first: OperationState, isOfMap: Bool = false) {
        self.isOfMap = isOfMap
        state = Locked(State(unread: [first], isEnded: first.isFinishedOrCancelled))
    }

    /// Adds a state; returns what wakes the reader, to be called when no lock is held any more.
    func add(_ new: OperationState) -> (() -> Void)? {
        isOfMap && new.isFinishedOrCancelled ? nil : conclude(new)
    }

    /// Adds a state, which may be the last one.
    func conclude(_ new: OperationState) -> (() -> Void)? {
        state.withLock { state in
            guard !state.isEnded else { return nil }
            state.isEnded = new.isFinishedOrCancelled
            guard let reader = state.reader else {
                state.unread.append(new)
                return nil
            }
            state.reader = nil
            return { reader.resume(returning: new) }
        }
    }

    /// No state will follow.
    func end() {
        state.withLock { state in
            state.isEnded = true
            return exchange(&state.reader, with: nil)
        }?.resume(returning: nil)
    }

    func next() async -> OperationState? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready: OperationState?? = state.withLock { state in
                    if !state.unread.isEmpty { return .some(state.unread.removeFirst()) }
                    if state.isEnded || Task.isCancelled { return .some(nil) }
                    state.reader = continuation
                    return .none
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            end()
        }
    }
}
