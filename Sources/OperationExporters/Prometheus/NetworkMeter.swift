// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

/// An observer that counts the events of network operations and measures durations, for Prometheus and compatible
/// systems.
///
/// ```swift
/// func measure(_ shop: inout NetworkBase, _ queue: QueueManager) -> NetworkMeter {
///     let meter = NetworkMeter()
///     shop.observers.append(meter)
///     meter.watch(queue)
///     // Respond to GET /metrics with `text` and `NetworkMeter.contentType`.
///     return meter
/// }
/// ```
///
/// The meter uses a bounded amount of memory, because the number of label values is limited. Labels contain methods,
/// hosts, status classes, error codes, other names that OperationKit defines, and the names of watched queues. Labels
/// do not contain paths or queries. The meter uses the value `other` for hosts beyond the first 50, for queue names and
/// error codes beyond the first 100, and for nonstandard HTTP methods.
public final class NetworkMeter: NetworkObserver {
    /// A set of options that determine the labels and buckets of a meter.
    public struct Options: Sendable {
        /// The prefix of all metric names.
        ///
        /// The default is `operationkit`. The meter replaces characters that are not valid in a metric name with
        /// underscores.
        public var prefix = "operationkit"
        /// The maximum number of hosts with their own label value.
        ///
        /// The default is 50. The meter assigns label values to hosts in the order of their first requests.
        package var hostLimit = 50
        /// The maximum number of queue names with their own label value.
        ///
        /// The default is 100. The meter assigns label values to queue names in the order in which you watch the
        /// queues.
        package var queueLimit = 100
        /// The upper bounds, in seconds, of the histogram buckets.
        ///
        /// The default has 13 bounds from 5 milliseconds to one minute. The meter ignores values that are not positive
        /// or not finite.
        public var buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

        /// Creates options with the default values.
        public init() {}
    }

    /// A value of a metric with the labels that identify it.
    package struct Sample: Sendable, Hashable {
        /// The name of the metric.
        package let name: String
        /// The labels of the sample, in order.
        package let labels: [Label]
        /// The value of the sample.
        package let value: Double
    }

    /// A label that distinguishes a sample from other samples of the same metric.
    package struct Label: Sendable, Hashable {
        /// The name of the label.
        package let name: String
        /// The value of the label, without escaping.
        package let value: String
    }

    private struct State {
        var book: MeterCounters
        var queues: [WatchedQueue] = []
        var queueBook: QueueCounters
    }

    /// The value of the `Content-Type` header for a response that contains ``text``.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private let options: Options
    private let state: Locked<State>

    /// Creates a meter whose counters are zero.
    ///
    /// - Parameter options: The options of the meter. The default is the default value of each option.
    public init(_ options: Options = Options()) {
        self.options = options
        state = Locked(
            State(
                book: MeterCounters(hostLimit: options.hostLimit, buckets: options.buckets),
                queueBook: QueueCounters(limit: options.queueLimit)))
    }

    /// Records an event of a network operation.
    public func observe(_ event: NetworkEvent) { state.withLock { $0.book.note(event) } }

    /// Records an authentication event, such as a credential refresh.
    ///
    /// Call this method in the closure that you set as `AuthenticationOptions.eventHandler`.
    public func note(_ event: AuthenticationEvent) { state.withLock { $0.book.note(event) } }

    /// Adds the counts of the current and ended operations of a queue to the metrics, without keeping the queue alive.
    ///
    /// If several queues have the same name, the meter adds their values. The counts of ended operations remain after
    /// the queue is deallocated, so that no counter decreases.
    public func watch(_ queue: QueueManager) {
        forgetQueues()
        state.withLock { state in
            guard !state.queues.contains(where: { $0.engine === queue.engine }) else { return }
            state.queues.append(WatchedQueue(queue, as: state.queueBook.add(queue.name)))
        }
    }

    /// Removes queues that no longer exist, and keeps their counts.
    private func forgetQueues() {
        let gone = state.withLock { $0.queues }.compactMap { queue in queue.lastCounts.map { (queue, $0) } }
        guard !gone.isEmpty else { return }
        // The engine is released outside the lock, together with the list that contains it.
        state.withLock { state in
            for (queue, counts) in gone {
                // Another thread may have removed it already.
                guard let index = state.queues.firstIndex(where: { $0 === queue }) else { continue }
                state.queues.remove(at: index)
                state.queueBook.remove(queue.label, QueueCounters.Ends(counts))
            }
        }
    }

    /// The current samples of all metrics, grouped by metric.
    package var samples: [Sample] { families.flatMap(\.samples) }

    /// The current samples of all metrics in version 0.0.4 of the Prometheus text format.
    public var text: String { MeterText.text(of: families) }

    private var families: [MeterFamily] {
        forgetQueues()
        let (book, queues, queueBook) = state.withLock { ($0.book, $0.queues, $0.queueBook) }
        let counts = queues.map { ($0.label, $0.engine.counts) }
        return book.families(prefix: options.prefix)
            + MeterCounters.families(of: counts, queueBook.ended, prefix: options.prefix)
    }
}

/// A queue that a meter watches without keeping it alive.
private final class WatchedQueue: Sendable {
    /// The engine of the queue, whose operations also run after the queue itself is freed.
    let engine: QueueEngine
    /// The label of the queue.
    let label: String
    // Sendable: written once, in init. Loading a weak reference is atomic.
    private nonisolated(unsafe) weak var queue: QueueManager?

    init(_ queue: QueueManager, as label: String) {
        (engine, self.label, self.queue) = (queue.engine, label, queue)
    }

    /// The final counts, or nil until the queue is freed and all its operations have ended.
    var lastCounts: QueueCounts? {
        guard queue == nil else { return nil }
        let counts = engine.counts
        return counts.unended == 0 ? counts : nil
    }
}

/// The counts of a meter, as a value that receives the events.
struct MeterCounters: Sendable {
    /// The labels of a sample.
    struct Key: Hashable, Sendable {
        var method = ""
        var host = ""
        var status = ""
        /// An ending or a reason.
        var word = ""
        /// An error code.
        var code = ""
    }

    /// A histogram of durations.
    struct Histogram: Sendable {
        /// The number of values in each bucket, followed by the number of values beyond the last bound.
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
    /// This package has fewer codes, but a program may define its own.
    private static let mostCodes = 100

    let bounds: [Double]
    private let hostLimit: Int
    /// The label of each known origin.
    private var hosts: [String: String] = [:]
    /// The known error codes.
    private var codes: Set<String> = []
    private(set) var began: UInt64 = 0
    private(set) var inFlight: Int64 = 0
    private(set) var attemptsInFlight: Int64 = 0
    private(set) var ended: [Key: UInt64] = [:]
    private(set) var attempts: [Key: UInt64] = [:]
    private(set) var retries: [Key: UInt64] = [:]
    private(set) var waits: [Key: UInt64] = [:]
    /// The realms with a refresh in progress.
    ///
    /// A new credential of another realm was set by the program.
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
            // If the session reports hops, their events contain the byte counts.
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

    private mutating func note(_ answer: AttemptPolicyDecision?) {
        guard let answer else { return }
        switch answer.decision {
        case .fail: break
        case .again, .replay: retries[Key(word: answer.reason?.description ?? answer.decision.name), default: 0] += 1
        case .pause(let reason): waits[Key(word: reason.kind.description), default: 0] += 1
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
        // Like any counter of Prometheus, these may begin again at zero.
        sentBytes[key, default: 0] &+= UInt64(max(metrics.bodyBytesSent, 0))
        receivedBytes[key, default: 0] &+= UInt64(max(metrics.bodyBytesReceived, 0))
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
    /// The duration in seconds for a histogram, which is never negative.
    fileprivate var asSeconds: Double { max(Double(saturatedNanoseconds) / 1e9, 0) }
}

/// The counts of queues by name, as a value.
///
/// A counter never decreases, because the counts of a freed queue remain with its name.
struct QueueCounters: Sendable {
    /// The number of ended operations by outcome.
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
    /// The number of existing queues by name.
    private var living: [String: Int] = [:]
    /// The counts of freed queues by name.
    private(set) var ended: [String: Ends] = [:]

    init(limit: Int) { self.limit = max(limit, 0) }

    /// Adds a queue, and returns the label under which it is counted.
    mutating func add(_ name: String) -> String {
        let isKnown = living[name] != nil || ended[name] != nil
        let label = isKnown || Set(living.keys).union(ended.keys).count < limit ? name : MeterCounters.other
        living[label, default: 0] += 1
        return label
    }

    /// Removes a queue that was freed, and keeps its counts.
    mutating func remove(_ label: String, _ ends: Ends) {
        let left = (living[label] ?? 1) - 1
        living[label] = left > 0 ? left : nil
        // A queue without ended operations leaves no counts.
        if ends != Ends() { ended[label] = (ended[label] ?? Ends()) + ends }
    }
}
