// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

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
        var book: MeterCounters
        var queues: [WatchedQueue] = []
        var queueBook: QueueCounters
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
                book: MeterCounters(hostLimit: options.hostLimit, buckets: options.buckets),
                queueBook: QueueCounters(limit: options.queueLimit)))
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
                state.queueBook.remove(queue.label, QueueCounters.Ends(counts))
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
            + MeterCounters.families(of: counts, queueBook.ended, prefix: options.prefix)
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

/// What a meter counted: a pure value, told the events.
struct MeterCounters: Sendable {
    /// Which line of a metric.
    struct Key: Hashable, Sendable {
        var method = ""
        var host = ""
        var status = ""
        /// An ending, or a reason.
        var word = ""
        /// The code of an error.
        var code = ""
    }

    /// How often something took how long.
    struct Histogram: Sendable {
        /// For each bound how often it was not more than that, and more than the one before; the last is for all beyond.
        var counts: [UInt64]
        var sum = 0.0
        var total: UInt64 = 0

        mutating func add(_ seconds: Double, bounds: [Double]) {
            counts[bounds.firstIndex { seconds <= $0 } ?? bounds.count] += 1
            sum += seconds
            total += 1
        }
    }

    private static let methods: Set = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY",
    ]
    static let other = "other"
    private static let mostRealms = 1_000
    /// This package has fewer, but others may make their own.
    private static let mostCodes = 100

    let bounds: [Double]
    private let hostLimit: Int
    /// The label of each origin that came.
    private var hosts: [String: String] = [:]
    /// The codes of errors that came.
    private var codes: Set<String> = []
    private(set) var began: UInt64 = 0
    private(set) var inFlight: Int64 = 0
    private(set) var attemptsInFlight: Int64 = 0
    private(set) var ended: [Key: UInt64] = [:]
    private(set) var attempts: [Key: UInt64] = [:]
    private(set) var retries: [Key: UInt64] = [:]
    private(set) var waits: [Key: UInt64] = [:]
    /// The realms whose refresh has not ended; what comes to another was set by hand.
    private var refreshing: Set<String> = []
    private(set) var refreshes: [Key: UInt64] = [:]
    private(set) var sentBytes: [Key: UInt64] = [:]
    private(set) var receivedBytes: [Key: UInt64] = [:]
    private(set) var durations: [Key: Histogram] = [:]
    private(set) var firstBytes: [Key: Histogram] = [:]

    init(hostLimit: Int, buckets: [Double]) {
        self.hostLimit = max(hostLimit, 0)
        bounds = Set(buckets.filter { $0.isFinite && $0 > 0 }).sorted()
    }

    mutating func note(_ event: NetworkEvent) {
        switch event.kind {
        case .operationBegan:
            began += 1
            inFlight += 1
        case .attemptBegan: attemptsInFlight += 1
        case .held: waits[Key(word: event.waitReason?.kind.description ?? Self.other), default: 0] += 1
        case .responded:
            guard let time = event.sinceSending else { return }
            let (key, empty, bounds) = (key(event), histogram, bounds)
            firstBytes[key, default: empty].add(time.asSeconds, bounds: bounds)
        case .hopEnded: count(event.metrics, event)
        case .attemptEnded:
            attemptsInFlight -= 1
            // Where hops are told of, they have the bytes.
            if event.hop == 0 { count(event.metrics, event) }
            var key = key(event, event.ending)
            key.code = code(event)
            attempts[key, default: 0] += 1
        case .decided: note(event.decision)
        case .operationEnded: end(event)
        default: break
        }
    }

    mutating func note(_ event: AuthenticationEvent) {
        let outcome: String
        switch event.kind {
        case .refreshBegan:
            outcome = "began"
            if refreshing.count < Self.mostRealms { refreshing.insert(event.realm) }
        case .credentialCame: outcome = refreshing.remove(event.realm) == nil ? "set" : "success"
        case .refreshFailed:
            outcome = "failure"
            refreshing.remove(event.realm)
        default: return
        }
        refreshes[Key(word: outcome), default: 0] += 1
    }

    private mutating func note(_ decision: NetworkEvent.Decision?) {
        guard let decision else { return }
        switch decision.kind {
        case .again, .replay:
            retries[Key(word: decision.reason?.description ?? "\(decision.kind)"), default: 0] += 1
        case .putAside: waits[Key(word: decision.waitReason?.kind.description ?? Self.other), default: 0] += 1
        default: break
        }
    }

    private mutating func end(_ event: NetworkEvent) {
        guard let time = event.sinceOperationBegan else {
            ended[Key(method: "none", host: "none", status: "none", word: "unbegun"), default: 0] += 1
            return
        }
        inFlight -= 1
        let way = key(event, event.ending)
        ended[way, default: 0] += 1
        let (key, empty, bounds) = (key(event), histogram, bounds)
        durations[key, default: empty].add(time.asSeconds, bounds: bounds)
    }

    private mutating func count(_ metrics: TransferMetrics?, _ event: NetworkEvent) {
        guard let metrics else { return }
        let key = Key(host: host(event))
        sentBytes[key, default: 0] += UInt64(max(metrics.bodyBytesSent, 0))
        receivedBytes[key, default: 0] += UInt64(max(metrics.bodyBytesReceived, 0))
    }

    private var histogram: Histogram { Histogram(counts: Array(repeating: 0, count: bounds.count + 1)) }

    private mutating func key(_ event: NetworkEvent, _ ending: NetworkEvent.Ending? = nil) -> Key {
        let method = event.request?.method ?? "none"
        return Key(
            method: method == "none" || Self.methods.contains(method) ? method : Self.other, host: host(event),
            status: Self.statusClass(event.head?.status), word: ending?.description ?? "")
    }

    private mutating func code(_ event: NetworkEvent) -> String {
        guard let code = event.error?.code.description else { return "none" }
        if !codes.contains(code) {
            guard codes.count < Self.mostCodes else { return Self.other }
            codes.insert(code)
        }
        return code
    }

    private static func statusClass(_ status: Int?) -> String {
        switch status {
        case .some(100..<200): "1xx"
        case .some(200..<300): "2xx"
        case .some(300..<400): "3xx"
        case .some(400..<500): "4xx"
        case .some(500..<600): "5xx"
        case .some: other
        case nil: "none"
        }
    }

    private mutating func host(_ event: NetworkEvent) -> String {
        guard let origin = event.request?.origin.name else { return "none" }
        if let known = hosts[origin] { return known }
        guard hosts.count < hostLimit else { return Self.other }
        let label = origin.split(separator: "/").last.map(String.init) ?? origin
        hosts[origin] = label
        return label
    }
}

extension Duration {
    /// For a histogram: never negative, never no number.
    fileprivate var asSeconds: Double { max(Double(saturatedNanoseconds) / 1e9, 0) }
}

/// What a meter knows of queues by their names: a pure value.
///
/// A counter never goes down: what the queues of a name counted that are gone stays with the name.
struct QueueCounters: Sendable {
    /// How many operations ended, and how.
    struct Ends: Sendable, Equatable {
        var finished = 0
        var failed = 0
        var cancelled = 0

        init() {}

        init(_ counts: QueueCounts) {
            (finished, failed, cancelled) = (counts.finished, counts.failed, counts.cancelled)
        }

        static func + (left: Ends, right: Ends) -> Ends {
            var sum = left
            sum.finished += right.finished
            sum.failed += right.failed
            sum.cancelled += right.cancelled
            return sum
        }
    }

    private let limit: Int
    /// How many queues of each name there are.
    private var living: [String: Int] = [:]
    /// What those counted that are gone.
    private(set) var ended: [String: Ends] = [:]

    init(limit: Int) { self.limit = max(limit, 0) }

    /// There is one more of that name; returns the name under which it is counted.
    mutating func add(_ name: String) -> String {
        let isKnown = living[name] != nil || ended[name] != nil
        let label = isKnown || Set(living.keys).union(ended.keys).count < limit ? name : MeterCounters.other
        living[label, default: 0] += 1
        return label
    }

    /// One that is counted under that name is gone, and had counted so much.
    mutating func remove(_ label: String, _ ends: Ends) {
        let left = (living[label] ?? 1) - 1
        living[label] = left > 0 ? left : nil
        // One that did nothing leaves nothing.
        if ends != Ends() { ended[label] = (ended[label] ?? Ends()) + ends }
    }
}
