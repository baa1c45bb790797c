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
/// that you have it watch. No path and no query is among them. Hosts beyond the limit, and methods that are not usual, are
/// counted as `other`.
public final class NetworkMeter: NetworkObserver {
    /// How much a meter tells apart.
    public struct Options: Sendable {
        /// What the names of all metrics begin with.
        ///
        /// What may not stand in a name becomes an underscore.
        public var prefix = "operationkit"
        /// How many hosts are told apart: the first that come.
        public var hostLimit = 50
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
    }

    /// The type of ``text``.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private let options: Options
    private let state: Locked<State>

    /// Makes a meter that stands at zero.
    public init(_ options: Options = Options()) {
        self.options = options
        state = Locked(State(book: MeterBook(hostLimit: options.hostLimit, buckets: options.buckets)))
    }

    /// Counts an event.
    public func observe(_ event: NetworkEvent) { state.withLock { $0.book.note(event) } }

    /// Counts what happens to a credential: to be called in `AuthenticationOptions.eventHandler`.
    public func note(_ event: AuthenticationEvent) { state.withLock { $0.book.note(event) } }

    /// Has the depth of a queue among the metrics, as long as there is that queue; queues of the same name are added up.
    public func watch(_ queue: QueueManager) {
        let watched = WatchedQueue(queue)
        state.withLock { state in
            // It may be another queue that has the address now.
            state.queues.removeAll { $0.id == watched.id }
            state.queues.append(watched)
        }
        forgetQueues(state.withLock { $0.queues }.filter { $0.queue == nil })
    }

    private func forgetQueues(_ gone: [WatchedQueue]) {
        guard !gone.isEmpty else { return }
        state.withLock { state in state.queues.removeAll { queue in gone.contains { $0 === queue } } }
    }

    /// All that was counted, by metric.
    public var samples: [Sample] { families.flatMap(\.samples) }

    /// All that was counted, in the text format of Prometheus (0.0.4).
    public var text: String { MeterText.text(of: families) }

    private var families: [MeterFamily] {
        // Queues are looked at outside of the lock, for what is let go of may be the last that holds one.
        let (book, queues) = state.withLock { ($0.book, $0.queues) }
        let present = queues.map { ($0, $0.queue) }
        let counts = present.compactMap { _, queue in queue.map { ($0.name, $0.counts) } }
        forgetQueues(present.compactMap { watched, queue in queue == nil ? watched : nil })
        return book.families(prefix: options.prefix) + MeterBook.families(of: counts, prefix: options.prefix)
    }
}

/// A queue that a meter does not keep.
final class WatchedQueue: Sendable {
    let id: ObjectIdentifier
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var object: QueueManager?

    var queue: QueueManager? { object }

    init(_ queue: QueueManager) {
        id = ObjectIdentifier(queue)
        object = queue
    }
}
