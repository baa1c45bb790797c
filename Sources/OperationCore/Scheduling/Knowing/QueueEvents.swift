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
