// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// An observer that records the events of network operations and exports them as a timeline.
///
/// ```swift
/// func run(_ queue: QueueManager, _ shop: inout NetworkBase) throws {
///     let trace = NetworkTrace()
///     shop.observers.append(trace)
///     queue.recording = QueueRecording()
///     // … run operations of the shop in the queue …
///     try trace.chromeTrace(with: queue.record).write(
///         to: URL(fileURLWithPath: "/tmp/trace.json"))
/// }
/// ```
///
/// You can open the timeline in `ui.perfetto.dev` or `chrome://tracing`. To protect secrets, the trace hides query
/// values, and omits the headers and bodies of requests and responses.
public final class NetworkTrace: NetworkObserver {
    private struct State {
        var operations: [UInt64: TracedOperation] = [:]
        var order = Fifo<UInt64>()
        /// The number of recorded operations, attempts, requests, waits and suspensions.
        var size = 0
        var forgottenCount = 0

        mutating func forget(_ id: UInt64) {
            guard let operation = operations.removeValue(forKey: id) else { return }
            size -= operation.size
            forgottenCount += 1
        }
    }

    /// The maximum number of operations in the trace.
    ///
    /// Beyond this limit, the trace removes the oldest operations.
    package let limit: Int
    private let state = Locked(State())

    /// Creates an empty trace.
    ///
    /// The trace keeps the last 100 attempts of each operation, and the last 100 requests and waits of each attempt. If
    /// the operations, attempts, requests and waits together exceed ten times the limit, the trace removes the oldest
    /// operations.
    ///
    /// - Parameter limit: The maximum number of operations. The default is 10,000.
    public init(limit: Int = 10_000) {
        self.limit = max(limit, 1)
    }

    /// The number of operations that the trace has removed because of its limit.
    ///
    /// The ``takeChromeTrace(with:)`` method resets the number to 0.
    package var forgottenCount: Int { state.withLock { $0.forgottenCount } }

    /// Records an event of a network operation.
    public func observe(_ event: NetworkEvent) {
        state.withLock { state in
            if state.operations[event.operationID] == nil {
                // An operation whose beginning is not recorded is ignored.
                guard event.kind == .operationBegan else { return }
                let operation = TracedOperation(event)
                state.operations[event.operationID] = operation
                state.size += operation.size
                state.order.append(event.operationID)
            }
            let before = state.operations[event.operationID]?.size ?? 0
            state.operations[event.operationID]?.note(event)
            state.size += (state.operations[event.operationID]?.size ?? 0) - before
            while state.order.count > limit || state.size / 10 > limit && state.order.count > 1 {
                guard let oldest = state.order.popFirst() else { break }
                state.forget(oldest)
            }
        }
    }

    /// Returns the timeline as a Chrome trace in JSON, together with the records of the given queues.
    ///
    /// In the timeline, each operation contains its attempts and the waits between them. If an operation waits for the
    /// end of a pause, for a credential or for the network, the displayed wait also includes the following wait for a
    /// slot in the queue. If an operation retries without a pause, the timeline shows only the wait for a slot.
    ///
    /// Each attempt contains its requests, with the phases that the session measured. The phases are the wait for a
    /// connection, the DNS lookup, the connection setup, the TLS handshake, the upload, the wait for the first byte,
    /// and the download.
    ///
    /// - Parameter records: The queue records to include, from `queue.record`. The trace shows an operation in a record
    ///   on the track of its queue, and all other operations on separate tracks.
    /// - Throws: An error from the JSON encoder.
    public func chromeTrace(with records: QueueRecord...) throws -> Data { try chromeTrace(with: records) }

    /// Returns a Chrome trace that contains the timeline and an array of queue records.
    ///
    /// - Parameter records: The queue records to include, from `queue.record`.
    /// - Throws: An error from the JSON encoder.
    package func chromeTrace(with records: [QueueRecord]) throws -> Data {
        try Self.json(of: state.withLock { $0.operations }.values, records)
    }

    /// Returns the timeline as a Chrome trace and removes the ended operations from the timeline.
    ///
    /// To keep each period in a separate file, call this method at regular intervals, for example every minute, and
    /// write the returned data to a new file.
    ///
    /// If an operation is in progress, the returned trace contains the events so far, and a later trace contains all
    /// events of the operation.
    ///
    /// - Parameter records: The queue records to include, from `queue.record`. The default is an empty array.
    /// - Throws: An error from the JSON encoder.
    public func takeChromeTrace(with records: [QueueRecord] = []) throws -> Data {
        let operations = state.withLock { state in
            let all = state.operations
            state.operations = all.filter { $0.value.ended == nil }
            state.order = Fifo()
            for id in state.operations.keys.sorted() { state.order.append(id) }
            state.size = state.operations.values.reduce(0) { $0 + $1.size }
            state.forgottenCount = 0
            return all
        }
        return try Self.json(of: operations.values, records)
    }

    private static func json(of operations: some Sequence<TracedOperation>, _ records: [QueueRecord]) throws -> Data {
        try TraceLayout(operations.sorted { $0.id < $1.id }, records).trace.json()
    }
}

/// The trace of one operation, as a value that receives the events.
struct TracedOperation: Sendable {
    /// A wait with its reason, its start and its end.
    struct Wait: Sendable {
        let name: String
        let note: String?
        let began: OperationInstant
        var ended: OperationInstant?
    }

    struct Hop: Sendable {
        var summary: String?
        let began: OperationInstant
        var ended: OperationInstant?
        var bodySent: OperationInstant?
        var status: Int?
        var metrics: TransferMetrics?
        /// Whether later events belong to this hop, and not to a following response of the cache.
        var isOpen = true
    }

    struct Attempt: Sendable {
        let number: Int
        let began: OperationInstant
        var ended: OperationInstant?
        var sent: OperationInstant?
        var waits: [Wait] = []
        /// The requests of the attempt, or a single hop that represents all of them if the session does not report
        /// them.
        var hops: [Hop] = []
        var ending: NetworkEvent.Ending?
        var code: NetworkError.Code?
        var status: Int?
        var summary: String?

        var size: Int { 1 + waits.count + hops.count }
    }

    /// The maximum number of attempts and waits of an operation, and of requests and waits of an attempt.
    fileprivate static let most = 100

    let id: UInt64
    let name: String
    let object: ObjectIdentifier?
    let began: OperationInstant
    /// The time of the last event.
    private(set) var last: OperationInstant
    private(set) var ended: OperationInstant?
    private(set) var ending: NetworkEvent.Ending?
    private(set) var attempts: [Attempt] = []
    private(set) var waits: [Wait] = []
    private(set) var marks: [(name: String, moment: OperationInstant)] = []
    private(set) var forgottenAttempts = 0
    /// The number of items in the attempts before the last one.
    private var sizeBefore = 0

    /// The number of items: the operation, its attempts, requests, waits and suspensions.
    var size: Int { 1 + waits.count + marks.count + sizeBefore + (attempts.last?.size ?? 0) }

    init(_ event: NetworkEvent) {
        (id, name, object) = (event.operationID, event.operationName, event.operationObject)
        (began, last) = (event.moment, event.moment)
    }

    mutating func note(_ event: NetworkEvent) {
        last = max(last, event.moment)
        switch event.kind {
        case .attemptBegan:
            waits.endLast(event.moment)
            sizeBefore += attempts.last?.size ?? 0
            attempts.append(Attempt(number: event.attempt, began: event.moment))
            guard attempts.count > Self.most else { return }
            sizeBefore -= attempts.removeFirst().size
            waits.removeAll { ($0.ended ?? last) < attempts[0].began }
            forgottenAttempts += 1
        case .decided:
            waits.endLast(event.moment)
            guard let answer = event.decision else { return }
            let kind: WaitReason.Kind
            switch answer.decision {
            case .fail: return
            case .again(let pause), .replay(let pause): kind = pause == .zero ? .place : .pause
            case .pause(let reason): kind = reason.kind
            }
            waits.keep(Wait(name: "waiting: \(kind)", note: answer.note, began: event.moment), of: Self.most)
        case .suspended, .resumed:
            if marks.count < Self.most { marks.append(("\(event.kind)", event.moment)) }
        case .operationEnded:
            waits.endLast(event.moment)
            (ended, ending) = (event.moment, event.ending)
        default: recordInAttempt(event)
        }
    }

    private mutating func recordInAttempt(_ event: NetworkEvent) {
        guard var attempt = attempts.popLast() else { return }
        defer { attempts.append(attempt) }
        // The description of a request costs more than an event, and a request changes only after a wait.
        if attempt.summary == nil || event.kind == .sending && !attempt.waits.isEmpty {
            attempt.summary = event.summary ?? attempt.summary
        }
        switch event.kind {
        case .held:
            let kind = event.waitReason?.kind.description ?? "held"
            attempt.waits.endLast(event.moment)
            let wait = Wait(name: "held: \(kind)", note: event.waitReason?.description, began: event.moment)
            attempt.waits.keep(wait, of: Self.most)
        case .wentOn: attempt.waits.endLast(event.moment)
        case .sending:
            attempt.waits.endLast(event.moment)
            attempt.sent = event.moment
        case .hopBegan: attempt.hops.keep(Hop(summary: event.summary, began: event.moment), of: Self.most)
        case .bodySent: attempt.change { $0.bodySent = event.moment }
        case .leftBehind: attempt.change { $0.status = event.head?.status }
        case .responded:
            attempt.status = event.head?.status
            attempt.change { $0.status = event.head?.status }
        case .hopEnded:
            attempt.change { hop in
                (hop.ended, hop.metrics) = (event.moment, event.metrics)
                hop.status = hop.status ?? event.head?.status
                hop.isOpen = false
            }
        case .attemptEnded:
            attempt.waits.endLast(event.moment)
            (attempt.ended, attempt.ending, attempt.code) = (event.moment, event.ending, event.error?.code)
            if attempt.hops.isEmpty, let sent = attempt.sent {
                let hop = Hop(
                    summary: attempt.summary, began: sent, ended: event.moment, status: attempt.status,
                    metrics: event.metrics)
                attempt.hops.append(hop)
            }
        default: break
        }
    }
}

extension NetworkEvent {
    fileprivate var summary: String? { request.map { "\($0.summary)" } }
}

extension TracedOperation.Attempt {
    /// Changes the current hop.
    fileprivate mutating func change(_ change: (inout TracedOperation.Hop) -> Void) {
        if hops.last?.isOpen == true { change(&hops[hops.count - 1]) }
    }
}

extension [TracedOperation.Wait] {
    /// Ends the current wait.
    fileprivate mutating func endLast(_ moment: OperationInstant) {
        if !isEmpty, self[count - 1].ended == nil { self[count - 1].ended = moment }
    }
}

extension Array {
    /// Appends an element, and removes the first one if the array exceeds the limit.
    fileprivate mutating func keep(_ element: Element, of most: Int) {
        append(element)
        if count > most { removeFirst() }
    }
}

/// The phases of one transfer, as a value that is created from the measurements of the session.
///
/// The phases are consecutive and never negative, regardless of the measurements.
package struct TransferPhases: Sendable {
    package enum Kind: Sendable { case queued, dns, connect, tls, request, wait, receive }

    /// The phases in their order, with the times at which they begin and end, measured from the start of the transfer.
    package private(set) var list: [(kind: Kind, began: Duration, ended: Duration)] = []

    /// - Parameter bodySent: The time from the beginning until the body was passed on for sending.
    package init(_ metrics: TransferMetrics, bodySent: Duration? = nil) {
        var moment = Duration.zero
        let end = max(metrics.ended ?? metrics.firstByte ?? metrics.requestBegan ?? .zero, .zero)
        func add(_ kind: Kind, until measured: Duration?) {
            guard let measured else { return }
            let next = min(max(measured, moment), end)
            list.append((kind, moment, next))
            moment = next
        }
        add(.queued, until: metrics.slotGranted)
        add(.dns, until: metrics.nameResolved)
        add(.connect, until: metrics.connected)
        add(.tls, until: metrics.secured)
        // The time between the connection and the request belongs to no phase.
        if let began = metrics.requestBegan { moment = min(max(began, moment), end) }
        // The last part of the body may be reported together with the response. In this case, the duration of sending
        // is unknown.
        let sent = bodySent.flatMap { $0 < metrics.firstByte ?? end ? $0 : nil }
        if metrics.requestBegan != nil { add(.request, until: sent ?? moment) }
        add(.wait, until: metrics.firstByte)
        if metrics.firstByte != nil { add(.receive, until: metrics.ended) }
    }

    package subscript(kind: Kind) -> Duration? { list.first { $0.kind == kind }.map { $0.ended - $0.began } }
}
