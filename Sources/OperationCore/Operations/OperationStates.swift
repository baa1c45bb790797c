// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

extension RareOperationState {
    /// Adds a feed and returns the number by which it can be removed.
    fileprivate func add(_ feed: StateFeed) -> UInt64 {
        lastObserverID += 1
        feeds.append(feed, id: lastObserverID)
        return lastObserverID
    }
}

extension ManagedOperation {
    /// An asynchronous sequence of the states of the operation, beginning with the current state.
    ///
    /// The sequence keeps the operation alive, but an iterator does not.
    package final var states: Subscriptions<OperationState> {
        Subscriptions { [self] in
            // The numbers are `nil` if no change will come.
            let (feed, own, life) = makeStateFeed()
            return Subscription(
                next: { await feed.next() }, cancel: { [weak self] in self?.removeStateFeed(own, life) })
        }
    }

    fileprivate func makeStateFeed() -> (StateFeed, own: UInt64?, life: UInt64?) {
        if let original { return makeStateFeed(of: original) }
        return core.withLock { core in
            let feed = StateFeed(first: core.machine.state)
            return (feed, core.machine.isOutcomeReported ? nil : core.need().add(feed), nil)
        }
    }

    /// A mapped operation passes through the states of its original, but its last state is its own.
    private func makeStateFeed(of original: ManagedOperation) -> (StateFeed, own: UInt64?, life: UInt64?) {
        original.storage.withLock { core in
            let present = core.machine.stateBeforeConversion
            let (feed, own) = storage.withLock { own -> (StateFeed, UInt64?) in
                if own.machine.isOutcomeReported { return (StateFeed(first: own.machine.state), nil) }
                let feed = StateFeed(first: present, isOfMap: true)
                return (feed, own.need().add(feed))
            }
            return (feed, own, core.machine.isFinished ? nil : core.need().add(feed))
        }
    }

    fileprivate func removeStateFeed(_ own: UInt64?, _ life: UInt64?) {
        let ofLife = life.flatMap { id in core.withLock { $0.extras?.feeds.remove(id) } }
        let ofOwn = own.flatMap { id in storage.withLock { $0.extras?.feeds.remove(id) } }
        extendLifetime((ofLife, ofOwn))
    }
}

/// The states that one consumer has not read yet.
///
/// The feed has its own lock. The operation adds states under the operation's lock, so that they are in the order of
/// the changes.
final class StateFeed: Sendable {
    private struct State {
        var unread: [OperationState]
        var isEnded = false
        var reader: CheckedContinuation<OperationState?, Never>?
    }

    private let state: Locked<State>
    /// Whether the feed belongs to a mapped operation, whose last state may differ from that of its original.
    private let isOfMap: Bool

    init(first: OperationState, isOfMap: Bool = false) {
        self.isOfMap = isOfMap
        state = Locked(State(unread: [first], isEnded: first.isFinishedOrCancelled))
    }

    /// Adds a state, and returns a closure that wakes the reader.
    ///
    /// Call the closure when no lock is held.
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

    /// Ends the feed, so that no state follows.
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
