// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// What a meter counted: a pure value, told the events.
struct MeterBook: Sendable {
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
