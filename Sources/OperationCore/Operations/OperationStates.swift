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
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var operation: ManagedOperation?

    init(to operation: ManagedOperation) {
        self.operation = operation
        feed = operation.makeStateFeed()
    }

    deinit {
        operation?.remove(feed)
    }
}

extension ManagedOperation {
    package final var states: OperationStates { OperationStates(operation: self) }

    fileprivate func makeStateFeed() -> StateFeed {
        core.withLock { core in
            let feed = StateFeed(first: core.machine.state)
            if !core.machine.isTold { core.need().feeds.append(feed) }
            return feed
        }
    }

    fileprivate func remove(_ feed: StateFeed) {
        core.withLock { core in
            core.extras?.feeds.removeAll { $0 === feed }
        }
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
            if before != after { wakeUps = extras.feeds.compactMap { $0.add(after) } }
            return result
        }
        for wake in wakeUps { wake() }
        return result
    }
}
