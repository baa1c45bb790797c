// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// An asynchronous sequence of the states of an operation, beginning with the current state.
package struct OperationStates: AsyncSequence, Sendable {
    let operation: ManagedOperation

    /// Creates an iterator that begins with the current state of the operation.
    package func makeAsyncIterator() -> Iterator {
        Iterator(subscription: StateSubscription(to: operation))
    }

    /// An iterator that returns the states of an operation one after another.
    package struct Iterator: AsyncIteratorProtocol {
        fileprivate let subscription: StateSubscription

        /// Waits for the next state and returns it, or returns `nil` after the last state or if the task is canceled.
        package mutating func next() async -> OperationState? {
            await subscription.feed.next()
        }
    }
}

/// Removes its feed from the operation when the iterator is released.
private final class StateSubscription: Sendable {
    let feed: StateFeed
    private let place: StateFeedPlace
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var operation: ManagedOperation?

    init(to operation: ManagedOperation) {
        self.operation = operation
        (feed, place) = operation.makeStateFeed()
    }

    deinit {
        operation?.remove(place)
    }
}

/// The numbers under which a feed is stored.
///
/// A number is `nil` if no change will come.
private struct StateFeedPlace {
    /// The number in the operation itself.
    var own: UInt64?
    /// The number in the original of a mapped operation.
    var life: UInt64?
}

extension RareOperationState {
    /// Adds a feed and returns the number by which it can be removed.
    fileprivate func add(_ feed: StateFeed) -> UInt64 {
        lastObserverID += 1
        feeds.append(feed, id: lastObserverID)
        return lastObserverID
    }
}

extension ManagedOperation {
    package final var states: OperationStates { OperationStates(operation: self) }

    fileprivate func makeStateFeed() -> (StateFeed, StateFeedPlace) {
        if let original { return makeStateFeed(of: original) }
        return core.withLock { core in
            let feed = StateFeed(first: core.machine.state)
            return (feed, StateFeedPlace(own: core.machine.isOutcomeReported ? nil : core.need().add(feed)))
        }
    }

    /// A mapped operation passes through the states of its original, but its last state is its own.
    private func makeStateFeed(of original: ManagedOperation) -> (StateFeed, StateFeedPlace) {
        original.storage.withLock { core in
            let present = core.machine.stateBeforeConversion
            let (feed, ownPlace) = storage.withLock { own -> (StateFeed, StateFeedPlace) in
                if own.machine.isOutcomeReported { return (StateFeed(first: own.machine.state), StateFeedPlace()) }
                let feed = StateFeed(first: present, isOfMap: true)
                return (feed, StateFeedPlace(own: own.need().add(feed)))
            }
            var place = ownPlace
            if !core.machine.isFinished { place.life = core.need().add(feed) }
            return (feed, place)
        }
    }

    fileprivate func remove(_ place: StateFeedPlace) {
        let ofLife = place.life.flatMap { id in core.withLock { $0.extras?.feeds.remove(id) } }
        let own = place.own.flatMap { id in storage.withLock { $0.extras?.feeds.remove(id) } }
        extendLifetime((ofLife, own))
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
