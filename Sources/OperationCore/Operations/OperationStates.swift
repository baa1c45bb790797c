// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The states of an operation as they come, the present one first; it ends after `finished` or `cancelled`.
///
/// No change is left out or told twice. An iterator does not keep the operation alive, and ends when it is freed.
public struct OperationStates: AsyncSequence, Sendable {
    let operation: ManagedOperation

    /// Begins with the state of this moment.
    public func makeAsyncIterator() -> Iterator {
        Iterator(subscription: StateSubscription(to: operation))
    }

    /// Reads the states one after another.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let subscription: StateSubscription

        /// Waits for the next state; nil after the last, or when the task is cancelled.
        public mutating func next() async -> OperationState? {
            await subscription.feed.next()
        }
    }
}

/// Takes its feed out of the operation when the iterator goes.
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

/// The numbers under which a feed is stored; nil where no change will come.
private struct StateFeedPlace {
    /// The number in the operation itself.
    var own: UInt64?
    /// The number in the original of a mapped operation.
    var life: UInt64?
}

extension OperationExtras {
    /// Adds a feed; returns the number by which it can be removed.
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
            return (feed, StateFeedPlace(own: core.machine.isTold ? nil : core.need().add(feed)))
        }
    }

    /// A mapped operation goes through the states of its original, but its last state is its own.
    private func makeStateFeed(of original: ManagedOperation) -> (StateFeed, StateFeedPlace) {
        original.storage.withLock { core in
            let present = core.machine.stateBeforeConversion
            let (feed, ownPlace) = storage.withLock { own -> (StateFeed, StateFeedPlace) in
                if own.machine.isTold { return (StateFeed(first: own.machine.state), StateFeedPlace()) }
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
        withExtendedLifetime((ofLife, own)) {}
    }

    /// Applies an event under the lock and tells those who follow the states when it was given back.
    @inline(__always)
    final func move<Result>(_ event: (inout Core) -> Result) -> Result {
        var wakeUps: [() -> Void] = []
        let result = core.withLock { core in
            guard let extras = core.extras, !extras.feeds.isEmpty else { return event(&core) }
            let before = core.machine.state
            let result = event(&core)
            let after = core.machine.state
            if before != after { wakeUps = extras.feeds.elements.compactMap { $0.add(after) } }
            return result
        }
        for wake in wakeUps { wake() }
        return result
    }
}
