// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The changes of a queue as they come, its present state first.
///
/// ```swift
/// func follow(_ queue: QueueManager) async {
///     for await update in queue.events {
///         switch update {
///         case .snapshot(let state): print("begins with \(state)")
///         case .event(let event): print(event)
///         case .missed(let count, let state): print("\(count) events were dropped; goes on with \(state)")
///         }
///     }
/// }
/// ```
///
/// Events come in the order of the changes, numbered without gaps, and agree with each snapshot
/// (``QueueSnapshot/apply(_:)``). What was not read yet is kept up to a number; a reader that is slower than that is told
/// how many it missed, and goes on from a fresh snapshot. Neither the sequence nor an iterator keeps the queue alive: the
/// loop ends when the queue is gone and all that was in it ended, or when its task is cancelled.
public struct QueueEvents: AsyncSequence, Sendable {
    let engine: WeakEngine
    let capacity: Int

    /// Begins with the state of this moment.
    public func makeAsyncIterator() -> Iterator { Iterator(subscription: QueueSubscription(engine, capacity)) }

    /// Reads the updates one after another.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let subscription: QueueSubscription

        /// Waits for the next update; nil after the last, or when the task is cancelled.
        public mutating func next() async -> QueueUpdate? { await subscription.next() }
    }
}

/// A weak reference to an engine.
final class WeakEngine: Sendable {
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var reference: QueueEngine?

    var engine: QueueEngine? { reference }

    init(_ engine: QueueEngine) { reference = engine }
}

/// Takes its feed out of the queue when the iterator goes.
private final class QueueSubscription: Sendable {
    private let feed: QueueFeed
    /// The number under which the queue stores the feed; nil if the queue was gone.
    private let id: UInt64?
    private let engine: WeakEngine

    init(_ engine: WeakEngine, _ capacity: Int) {
        self.engine = engine
        feed = QueueFeed(capacity: capacity)
        id = engine.engine?.subscribe(feed)
        if id == nil { feed.end(with: nil) }
    }

    deinit {
        if let id { engine.engine?.unsubscribe(id) }
    }

    func next() async -> QueueUpdate? {
        await feed.next {
            guard let engine = engine.engine else { return false }
            engine.refresh(feed)
            return true
        }
    }
}

/// One change of a queue.
public struct QueueEvent: Sendable, CustomStringConvertible {
    /// What changed.
    ///
    /// More cases may be added.
    public enum Change: Sendable {
        /// An entry came in, and stands there.
        case added(QueueEntry, QueueEntry.State)
        /// An entry that does not run stands somewhere else now: `ready` for one whose dependencies ended.
        case moved(QueueEntry, QueueEntry.State)
        /// An entry began.
        case started(QueueEntry)
        /// An entry that runs waits for that from now on, and takes no place meanwhile: for a network, or before another
        /// attempt. It may be told again with another reason.
        case rested(QueueEntry, WaitReason)
        /// An entry that rested has a place again, and goes on.
        case wentOn(QueueEntry)
        /// An entry ended and is gone.
        case ended(QueueEntry, QueueEntry.Ending)
        /// Nothing begins any more.
        case suspended
        /// Entries may begin again.
        case resumed
        /// So many may run at once from now on; nil for any number.
        case widthChanged(Int?)
        /// The queue was shut down and takes nothing more.
        case closed
    }

    /// Counts up by one from event to event of a queue.
    public let number: UInt64
    /// What changed.
    public let change: Change

    /// The entry that it is about; nil if it is about the queue.
    public var entry: QueueEntry? {
        switch change {
        case .added(let entry, _), .moved(let entry, _), .started(let entry), .rested(let entry, _), .wentOn(let entry),
            .ended(let entry, _):
            entry
        case .suspended, .resumed, .widthChanged, .closed: nil
        }
    }

    /// The number and the change in one line.
    public var description: String {
        switch change {
        case .added(let entry, let state): "\(number) added \(entry), \(state)"
        case .moved(let entry, let state): "\(number) \(state) \(entry)"
        case .started(let entry): "\(number) started \(entry)"
        case .rested(let entry, let reason): "\(number) rests \(entry), \(reason)"
        case .wentOn(let entry): "\(number) goes on \(entry)"
        case .ended(let entry, let ending): "\(number) ended \(entry), \(ending)"
        case .suspended: "\(number) suspended"
        case .resumed: "\(number) resumed"
        case .widthChanged(let width): "\(number) width \(width.map { "\($0)" } ?? "unlimited")"
        case .closed: "\(number) closed"
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

/// The events of a queue that one reader has not read yet, up to a number.
///
/// The queue adds to it under its lock, so that the order is that of the changes. Where there is no room, all of them are
/// dropped and none is added until the reader comes and takes the state of that moment: so the reader has either each
/// event since a snapshot, or is told how many it missed.
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
        /// The number up to which the reader knows everything.
        var lastRead: UInt64?
        var reader: CheckedContinuation<Step, Never>?

        var mustBeginAnew: Bool { phase == .overflowed && snapshot == nil }

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

    /// Under the queue's lock: the reader begins, or begins anew, with a state.
    func begin(with snapshot: QueueSnapshot) {
        state.withLock { state in
            guard state.phase != .ended else { return }
            state.phase = .following
            state.show(snapshot)
        }
    }

    /// Under the queue's lock: returns what is to be done after it.
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
            // Their operations may go with them, which must not happen here.
            let dropped = exchange(&state.unread, with: Fifo())
            return { withExtendedLifetime(dropped) {} }
        }
    }

    /// No event follows; a reader that missed some is given the last state.
    func end(with last: QueueSnapshot?) {
        let (reader, update) = state.withLock { state in
            if state.mustBeginAnew, let last { state.show(last) }
            state.phase = .ended
            let reader = exchange(&state.reader, with: nil)
            return (reader, reader == nil ? nil : state.takeNext())
        }
        reader?.resume(returning: .update(update))
    }

    /// The next update; nil after the last, and when the task is cancelled.
    ///
    /// - Parameter refresh: Has the queue call `begin`; false if the queue is being freed.
    func next(refresh: () -> Bool) async -> QueueUpdate? {
        while true {
            let isStuck = state.withLock { $0.mustBeginAnew } && !refresh()
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
                    // It overflowed since the look at it; a queue that is being freed will end it.
                    if state.mustBeginAnew, !isStuck { return .again }
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

/// What a reader of a queue's events is given.
///
/// No case will be added.
public enum QueueUpdate: Sendable {
    /// The state of the queue to begin with; events go on from it.
    case snapshot(QueueSnapshot)
    /// One change, which follows what came before without a gap.
    case event(QueueEvent)
    /// The reader was too slow, and so many events were dropped: the state of the queue with which to begin anew.
    case missed(UInt64, QueueSnapshot)

    /// The state, unless it is an event.
    public var snapshot: QueueSnapshot? {
        switch self {
        case .snapshot(let snapshot), .missed(_, let snapshot): snapshot
        case .event: nil
        }
    }

    /// The event, if it is one.
    public var event: QueueEvent? {
        if case .event(let event) = self { event } else { nil }
    }
}
