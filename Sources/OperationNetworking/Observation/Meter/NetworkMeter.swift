// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Counts what network operations do, and how long they take, for Prometheus and for whoever reads its format.
///
/// ```swift
/// func measure(_ shop: inout NetworkBase, _ queue: QueueManager) -> NetworkMeter {
///     let meter = NetworkMeter()
///     shop.observers.append(meter)
///     meter.watch(queue)
///     return meter  // its `text` is what a server answers to GET /metrics, as `NetworkMeter.contentType`
/// }
/// ```
///
/// Its memory is bounded: labels are methods, hosts, classes of statuses, names of this package, and those of the queues
/// that you have it watch. No path and no query is among them. Hosts and queues' names beyond the limits, codes of errors that
/// come after the first hundred, and methods that are not usual are counted as `other`.
public final class NetworkMeter: NetworkObserver {
    /// How much a meter tells apart.
    public struct Options: Sendable {
        /// What the names of all metrics begin with.
        ///
        /// What may not stand in a name becomes an underscore.
        public var prefix = "operationkit"
        /// How many hosts are told apart: the first that come.
        public var hostLimit = 50
        /// How many names of queues are told apart: the first that come.
        public var queueLimit = 100
        /// The upper bounds of the histograms' buckets, in seconds; what is no number above zero is left out.
        public var buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

        /// Makes the stated options.
        public init() {}
    }

    /// One line of what was counted.
    public struct Sample: Sendable, Hashable {
        /// The name of the metric.
        public let name: String
        /// Its labels, in their order.
        public let labels: [Label]
        /// The value.
        public let value: Double

        /// The value of the label of that name.
        public subscript(label: String) -> String? { labels.first { $0.name == label }?.value }
    }

    /// A name and a value that tell a line from others of its metric.
    public struct Label: Sendable, Hashable {
        /// The name.
        public let name: String
        /// The value, as it is.
        public let value: String
    }

    private struct State {
        var book: MeterBook
        var queues: [WatchedQueue] = []
        var queueBook: QueueBook
    }

    /// The type of ``text``.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private let options: Options
    private let state: Locked<State>

    /// Makes a meter that stands at zero.
    public init(_ options: Options = Options()) {
        self.options = options
        state = Locked(
            State(
                book: MeterBook(hostLimit: options.hostLimit, buckets: options.buckets),
                queueBook: QueueBook(limit: options.queueLimit)))
    }

    /// Counts an event.
    public func observe(_ event: NetworkEvent) { state.withLock { $0.book.note(event) } }

    /// Counts what happens to a credential: to be called in `AuthenticationOptions.eventHandler`.
    public func note(_ event: AuthenticationEvent) { state.withLock { $0.book.note(event) } }

    /// Has the depth of a queue among the metrics, as long as there is that queue; queues of the same name are added up.
    ///
    /// What it counted stays when it is gone, so that no counter goes down.
    public func watch(_ queue: QueueManager) {
        forgetQueues()
        state.withLock { state in
            guard !state.queues.contains(where: { $0.engine === queue.engine }) else { return }
            state.queues.append(WatchedQueue(queue, as: state.queueBook.add(queue.name)))
        }
    }

    /// Lets go of queues that are gone, and keeps what they counted.
    private func forgetQueues() {
        let gone = state.withLock { $0.queues }.compactMap { queue in queue.lastCounts.map { (queue, $0) } }
        guard !gone.isEmpty else { return }
        // An engine goes outside of the lock, with the list in which it is.
        state.withLock { state in
            for (queue, counts) in gone {
                // Another thread may have been faster.
                guard let index = state.queues.firstIndex(where: { $0 === queue }) else { continue }
                state.queues.remove(at: index)
                state.queueBook.remove(queue.label, QueueBook.Ends(counts))
            }
        }
    }

    /// All that was counted, by metric.
    public var samples: [Sample] { families.flatMap(\.samples) }

    /// All that was counted, in the text format of Prometheus (0.0.4).
    public var text: String { MeterText.text(of: families) }

    private var families: [MeterFamily] {
        forgetQueues()
        let (book, queues, queueBook) = state.withLock { ($0.book, $0.queues, $0.queueBook) }
        let counts = queues.map { ($0.label, $0.engine.counts) }
        return book.families(prefix: options.prefix)
            + MeterBook.families(of: counts, queueBook.ended, prefix: options.prefix)
    }
}

/// A queue that a meter does not keep.
private final class WatchedQueue: Sendable {
    /// What the queue is made of; its operations run in it also when nobody has the queue any more.
    let engine: QueueEngine
    /// The name under which it is counted.
    let label: String
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var queue: QueueManager?

    init(_ queue: QueueManager, as label: String) {
        (engine, self.label, self.queue) = (queue.engine, label, queue)
    }

    /// What it counted, once it is gone and all that was in it ended; nil before.
    var lastCounts: QueueCounts? {
        guard queue == nil else { return nil }
        let counts = engine.counts
        return counts.unended == 0 ? counts : nil
    }
}
