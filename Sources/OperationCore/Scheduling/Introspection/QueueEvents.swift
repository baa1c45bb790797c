// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A numbered change to a queue or to one of its entries, which are operations and closures.
public struct QueueEvent: Sendable, CustomStringConvertible {
    /// A change to a queue or to one of its entries.
    ///
    /// Future versions may add cases.
    public enum Change: Sendable {
        /// An entry was added to the queue.
        ///
        /// The associated values are the entry and its first state.
        case added(QueueEntry, QueueEntry.State)
        /// An entry changed to a state other than `running`, for example to `ready` after its dependencies had ended.
        case moved(QueueEntry, QueueEntry.State)
        /// The queue began to run an entry.
        case started(QueueEntry)
        /// A running entry released its slot and waits, for example for a network connection or before a retry.
        ///
        /// If the reason for the wait changes, the queue reports `rested` again with the new reason.
        case rested(QueueEntry, WaitReason)
        /// A running entry that waited has a slot again and resumes its work.
        case wentOn(QueueEntry)
        /// An entry ended and was removed.
        case ended(QueueEntry, QueueEntry.Ending)
        /// The queue was suspended, so it does not begin any entries.
        case suspended
        /// The queue was resumed, so it can begin entries again.
        case resumed
        /// The width of the queue changed.
        ///
        /// The associated value is the new width, or `nil` for no maximum.
        case widthChanged(Int?)
        /// The queue was shut down and accepts no more entries.
        case closed
    }

    /// The number of the event, which increases by one with each event in the queue.
    public let number: UInt64
    /// The change to the queue.
    public let change: Change

    /// The entry that changed, or `nil` if the change concerns the queue itself.
    public var entry: QueueEntry? {
        switch change {
        case .added(let entry, _), .moved(let entry, _), .started(let entry), .rested(let entry, _), .wentOn(let entry),
            .ended(let entry, _):
            entry
        case .suspended, .resumed, .widthChanged, .closed: nil
        }
    }

    /// A description with the number and the change.
    public var description: String {
        switch change {
        case .added(let entry, let state): "\(number) added \(entry), \(state)"
        case .moved(let entry, let state): "\(number) \(state) \(entry)"
        case .started(let entry): "\(number) started \(entry)"
        case .rested(let entry, let reason): "\(number) paused \(entry), \(reason)"
        case .wentOn(let entry): "\(number) resumed \(entry)"
        case .ended(let entry, let ending): "\(number) ended \(entry), \(ending)"
        case .suspended: "\(number) suspended the queue"
        case .resumed: "\(number) resumed the queue"
        case .widthChanged(let width): "\(number) set the width to \(width.map { "\($0)" } ?? "unlimited")"
        case .closed: "\(number) shut down the queue"
        }
    }
}

extension QueueEvent.Change {
    init(_ change: QueueJournal.Change) {
        switch change {
        case .placed(let slot, let entry, from: let old):
            let state = QueueEntry.State(entry.stage) ?? .waiting
            let entry = QueueEntry(slot, entry)
            if old == .entering {
                self = .added(entry, state)
            } else if state == .running {
                self = .started(entry)
            } else {
                self = .moved(entry, state)
            }
        case .rested(let slot, let entry, let reason): self = .rested(QueueEntry(slot, entry), reason)
        case .wentOn(let slot, let entry): self = .wentOn(QueueEntry(slot, entry))
        case .ended(let slot, let entry, let ending):
            self = .ended(QueueEntry(slot, entry), QueueEntry.Ending(ending))
        case .width(let width): self = .widthChanged(width)
        case .suspension(true): self = .suspended
        case .suspension(false): self = .resumed
        case .closing: self = .closed
        }
    }
}

/// A hub that numbers the changes of a queue and passes them to the readers.
///
/// The hub observes the queue while there is a reader, and is kept afterward so that the numbers continue. The hub is
/// deliberately not `Sendable` and is used only under the queue's lock.
final class QueueEventHub: QueueFollower {
    private(set) var number: UInt64 = 0
    private(set) var feeds = ForgettingList<QueueFeed>()
    private var lastFeed: UInt64 = 0

    func record(_ change: QueueJournal.Change, _ journal: QueueJournal) {
        number += 1
        let event = QueueEvent(number: number, change: QueueEvent.Change(change))
        for feed in feeds.elements { if let call = feed.add(event) { journal.later(call) } }
    }

    /// Adds a feed, and returns the number by which it can be removed.
    func add(_ feed: QueueFeed) -> UInt64 {
        lastFeed += 1
        feeds.append(feed, id: lastFeed)
        return lastFeed
    }

    func remove(_ id: UInt64) -> QueueFeed? { feeds.remove(id) }
}

extension QueueEngine {
    var snapshot: QueueSnapshot { applyAfterReclaiming { state, _ in QueueSnapshot(name, state) } }

    /// Whether the queue has an observer, for tests.
    package var isFollowed: Bool { state.withLock { $0.machine.journal != nil } }

    package var counts: QueueCounts { applyAfterReclaiming { state, _ in QueueCounts(state) } }

    /// Adds a feed, and returns the number by which it can be removed.
    func subscribe(_ feed: QueueFeed) -> UInt64 {
        applyAfterReclaiming { state, _ in
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
        extendLifetime(removed)
        for call in calls { call() }
    }

    /// Passes the current state to a reader that was too slow, which then gets events again.
    func refresh(_ feed: QueueFeed) {
        state.withLock { feed.begin(with: QueueSnapshot(name, $0)) }
    }

    /// Ends the readers of a queue that is being freed, because no event will follow.
    func endReaders() {
        let (feeds, last) = state.withLock { state in
            (state.hub?.feeds.elements ?? [], state.hub.map { _ in QueueSnapshot(name, state) })
        }
        for feed in feeds { feed.end(with: last) }
    }
}

/// The events of a queue that one reader has not read yet, up to a maximum number.
///
/// The queue adds events under its lock, so they are in the order of the changes. If there is no room, all stored
/// events are dropped. No event is then added until the reader has taken the current state. So the reader gets either
/// each event since a snapshot, or the number of events that it missed.
final class QueueFeed: Sendable {
    private enum Phase {
        case following
        /// Events were dropped.
        case overflowed
        case ended
    }

    private enum Step: Sendable {
        case update(QueueUpdate?)
        case again
    }

    private struct State {
        var phase = Phase.following
        var snapshot: QueueUpdate?
        var unread = Fifo<QueueEvent>()
        /// The number of the last event that the reader knows.
        var lastRead: UInt64?
        var reader: CheckedContinuation<Step, Never>?

        var mustStartOver: Bool { phase == .overflowed && snapshot == nil }

        mutating func show(_ new: QueueSnapshot) {
            snapshot = lastRead.map { .missed(new.number - $0, new) } ?? .snapshot(new)
            lastRead = new.number
        }

        mutating func takeNext() -> QueueUpdate? {
            if let update = exchange(&snapshot, with: nil) { return update }
            guard let event = unread.popFirst() else { return nil }
            lastRead = event.number
            return .event(event)
        }
    }

    private let state = Locked(State())
    private let capacity: Int

    init(capacity: Int) { self.capacity = max(capacity, 1) }

    /// Sets the state with which the reader begins, under the queue's lock.
    func begin(with snapshot: QueueSnapshot) {
        state.withLock { state in
            guard state.phase != .ended else { return }
            state.phase = .following
            state.show(snapshot)
        }
    }

    /// Adds an event under the queue's lock, and returns a closure to call after the lock is released.
    func add(_ event: QueueEvent) -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard state.phase == .following else { return nil }
            if let reader = exchange(&state.reader, with: nil) {
                state.lastRead = event.number
                return { reader.resume(returning: .update(.event(event))) }
            }
            if state.unread.count < capacity {
                state.unread.append(event)
                return nil
            }
            state.phase = .overflowed
            // Dropping the events may free operations, which must not happen under the lock.
            let dropped = exchange(&state.unread, with: Fifo())
            return { extendLifetime(dropped) }
        }
    }

    /// Ends the feed, and passes the last state to a reader that missed events.
    func end(with last: QueueSnapshot?) {
        let (reader, update) = state.withLock { state in
            if state.mustStartOver, let last { state.show(last) }
            state.phase = .ended
            let reader = exchange(&state.reader, with: nil)
            return (reader, reader == nil ? nil : state.takeNext())
        }
        reader?.resume(returning: .update(update))
    }

    /// Returns the next update, or `nil` after the last update or when the task is canceled.
    ///
    /// - Parameter refresh: A closure that makes the queue call `begin`, or returns `false` if the queue is being
    ///   freed.
    func next(refresh: () -> Bool) async -> QueueUpdate? {
        while true {
            let isStuck = state.withLock { $0.mustStartOver } && !refresh()
            switch await wait(isStuck: isStuck) {
            case .update(let update): return update
            case .again: continue
            }
        }
    }

    private func wait(isStuck: Bool) async -> Step {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let step: Step? = state.withLock { state in
                    if Task.isCancelled || state.reader != nil { return .update(nil) }
                    if let update = state.takeNext() { return .update(update) }
                    if state.phase == .ended { return .update(nil) }
                    // The feed overflowed after the check. A queue that is being freed will end it.
                    if state.mustStartOver, !isStuck { return .again }
                    state.reader = continuation
                    return nil
                }
                if let step { continuation.resume(returning: step) }
            }
        } onCancel: {
            end(with: nil)
        }
    }
}

/// An element of the sequence ``QueueManager/events``.
///
/// Only a major version may add cases.
public enum QueueUpdate: Sendable {
    /// The state of the queue at the beginning of the sequence, before any event.
    case snapshot(QueueSnapshot)
    /// An event that follows the previous update without a gap.
    case event(QueueEvent)
    /// The reader was too slow and missed events.
    ///
    /// The associated values are the number of missed events and the current state of the queue.
    case missed(UInt64, QueueSnapshot)
}
