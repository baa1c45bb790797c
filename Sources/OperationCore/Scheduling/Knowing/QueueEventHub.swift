// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Numbers the changes of a queue and hands them to those who read them.
///
/// It follows the queue as long as there is a reader, and is kept so that the numbers go on. Not Sendable on purpose: it
/// is only touched under the queue's lock.
final class QueueEventHub: QueueFollower {
    private(set) var number: UInt64 = 0
    private(set) var feeds: [QueueFeed] = []

    func note(_ change: QueueJournal.Change, _ journal: QueueJournal) {
        number += 1
        let event = QueueEvent(number: number, change: QueueEvent.Change(change))
        for feed in feeds { if let call = feed.add(event) { journal.later(call) } }
    }

    func add(_ feed: QueueFeed) { feeds.append(feed) }

    func remove(_ feed: QueueFeed) { feeds.removeAll { $0 === feed } }
}

extension QueueEngine {
    var snapshot: QueueSnapshot { applySettled { state, _ in QueueSnapshot(name, state) } }

    /// Whether somebody follows the changes; for tests.
    package var isFollowed: Bool { state.withLock { $0.machine.journal != nil } }

    package var counts: QueueCounts { applySettled { state, _ in QueueCounts(state) } }

    func subscribe(_ feed: QueueFeed) {
        applySettled { state, _ in
            let hub = state.hub ?? QueueEventHub()
            state.hub = hub
            if hub.feeds.isEmpty { state.machine.add(hub) }
            hub.add(feed)
            feed.begin(with: QueueSnapshot(name, state))
        }
    }

    func unsubscribe(_ feed: QueueFeed) {
        let calls = state.withLock { state -> [@Sendable () -> Void] in
            guard let hub = state.hub, !hub.feeds.isEmpty else { return [] }
            hub.remove(feed)
            return hub.feeds.isEmpty ? state.machine.remove(hub) : []
        }
        for call in calls { call() }
    }

    /// Gives a reader that was too slow the state of this moment, from which on it is told of events again.
    func refresh(_ feed: QueueFeed) {
        state.withLock { feed.begin(with: QueueSnapshot(name, $0)) }
    }

    /// No event will follow: the queue is being freed.
    func endReaders() {
        let (feeds, last) = state.withLock { state in
            (state.hub?.feeds ?? [], state.hub.map { _ in QueueSnapshot(name, state) })
        }
        for feed in feeds { feed.end(with: last) }
    }
}
