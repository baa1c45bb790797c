// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A request and what came of it, as it was told: a pure value.
///
/// It has nothing of the user's, for it goes under a lock.
struct ArchivedExchange: Sendable {
    /// As it is shown, for what is left out is not kept.
    let request: ArchiveEntry.Request
    let date: Date
    let began: OperationInstant
    let operationID: UInt64
    let operationName: String
    let attempt: Int
    let hop: Int
    /// Whether it stands for an answer that came without a request, after one that found no better.
    let isFromCache: Bool
    private(set) var bodySent: OperationInstant?
    private(set) var responded: OperationInstant?
    private(set) var ended: OperationInstant?
    private(set) var head: ResponseHead?
    private(set) var metrics: TransferMetrics?
    private(set) var error: NetworkError?
    private(set) var ending: NetworkEvent.Ending?
    private(set) var body: Data?
    private(set) var receivedBytes: Int64?

    init(_ event: NetworkEvent, _ options: NetworkArchive.Options, isFromCache: Bool = false) {
        request = ArchiveEntry.request(event.request, options)
        (date, began, self.isFromCache) = (event.date, event.moment, isFromCache)
        (operationID, operationName) = (event.operationID, event.operationName)
        (attempt, hop) = (event.attempt, event.hop)
    }

    mutating func note(_ event: NetworkEvent) {
        switch event.kind {
        case .bodySent: bodySent = event.moment
        case .leftBehind, .responded: (head, responded) = (event.head, event.moment)
        case .hopEnded: (ended, metrics) = (event.moment, event.metrics)
        default: break
        }
    }

    /// The attempt ended with this one.
    mutating func end(_ event: NetworkEvent) {
        if !isFromCache { metrics = metrics ?? event.metrics }
        ended = ended ?? event.moment
        (error, ending) = (event.error, event.ending)
        (body, receivedBytes) = (event.responseBody, event.receivedBytes)
    }
}

/// The times of an entry in milliseconds; -1 is what is not known, or did not happen.
struct ArchiveTimings: Sendable, Codable {
    var blocked = -1.0
    var dns = -1.0
    var connect = -1.0
    var ssl = -1.0
    var send = 0.0
    var wait = 0.0
    var receive = 0.0

    /// All of it: the time for TLS is a part of that for the connection.
    var sum: Double { [blocked, dns, connect, send, wait, receive].reduce(0) { $0 + max($1, 0) } }

    init(_ exchange: ArchivedExchange) {
        let end = exchange.ended ?? exchange.responded ?? exchange.began
        guard let metrics = exchange.metrics, let whole = metrics.ended else {
            // Only the moments are known at which something was told.
            let answered = exchange.responded ?? end
            send = exchange.bodySent.map { exchange.began.duration(to: min($0, answered)).milliseconds } ?? 0
            wait = max(exchange.began.duration(to: answered).milliseconds - send, 0)
            receive = answered.duration(to: max(end, answered)).milliseconds
            return
        }
        let phases = TransferPhases(metrics, bodySent: exchange.bodySent.map { exchange.began.duration(to: $0) })
        blocked = phases[.queued]?.milliseconds ?? -1
        dns = phases[.dns]?.milliseconds ?? -1
        if let time = phases[.connect] { connect = (time + (phases[.tls] ?? .zero)).milliseconds }
        ssl = phases[.tls]?.milliseconds ?? -1
        send = phases[.request]?.milliseconds ?? 0
        wait = phases[.wait]?.milliseconds ?? 0
        receive = phases[.receive]?.milliseconds ?? 0
        // What passed beside: before the request it was ready and not sent, after it there was no answer.
        let rest = max(max(whole, .zero).milliseconds - sum, 0)
        guard rest > 0 else { return }
        if metrics.requestBegan == nil || metrics.firstByte != nil {
            blocked = max(blocked, 0) + rest
        } else {
            wait += rest
        }
    }
}

extension Duration {
    fileprivate var milliseconds: Double { Double(saturatedNanoseconds) / 1e6 }
}
