// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Numbers the changes of a queue and hands them to those who read them.
///
/// It follows the queue as long as there is a reader, and is kept so that the numbers go on. Not Sendable on purpose: it
/// is only touched under the queue's lock.
final class QueueEventHub: QueueFollower {
    private(set) var number: UInt64 = 0
    private(set) var feeds = ForgettingList<QueueFeed>()
    private var lastFeed: UInt64 = 0

    func note(_ change: QueueJournal.Change, _ journal: QueueJournal) {
        number += 1
        let event = QueueEvent(number: number, change: QueueEvent.Change(change))
        for feed in feeds.elements { if let call = feed.add(event) { journal.later(call) } }
    }

    /// Adds a feed; returns the number by which it can be removed.
    func add(_ feed: QueueFeed) -> UInt64 {
        lastFeed += 1
        feeds.append(feed, id: lastFeed)
        return lastFeed
    }

    func remove(_ id: UInt64) -> QueueFeed? { feeds.remove(id) }
}

extension QueueEngine {
    var snapshot: QueueSnapshot { applySettled { state, _ in QueueSnapshot(name, state) } }

    /// Whether somebody follows the changes; for tests.
    package var isFollowed: Bool { state.withLock { $0.machine.journal != nil } }

    package var counts: QueueCounts { applySettled { state, _ in QueueCounts(state) } }

    /// Adds a feed; returns the number by which it can be removed.
    func subscribe(_ feed: QueueFeed) -> UInt64 {
        applySettled { state, _ in
            let hub = state.hub ?? QueueEventHub()
            state.hub = hub
            if hub.feeds.isEmpty { state.machine.add(hub) }
            let id = hub.add(feed)
            feed.begin(with: QueueSnapshot(name, state))
            return id
        }
    }

    func unsubscribe(_ id: UInt64) {
        let (removed, calls) = state.withLock { state -> (QueueFeed?, [@Sendable () -> Void]) in
            guard let hub = state.hub, let removed = hub.remove(id) else { return (nil, []) }
            return (removed, hub.feeds.isEmpty ? state.machine.remove(hub) : [])
        }
        withExtendedLifetime(removed) {}
        for call in calls { call() }
    }

    /// Gives a reader that was too slow the state of this moment, from which on it is told of events again.
    func refresh(_ feed: QueueFeed) {
        state.withLock { feed.begin(with: QueueSnapshot(name, $0)) }
    }

    /// No event will follow: the queue is being freed.
    func endReaders() {
        let (feeds, last) = state.withLock { state in
            (state.hub?.feeds.elements ?? [], state.hub.map { _ in QueueSnapshot(name, state) })
        }
        for feed in feeds { feed.end(with: last) }
    }
}
