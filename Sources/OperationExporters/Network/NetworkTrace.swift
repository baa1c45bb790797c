// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// Writes down what network operations did when, and makes a timeline of it.
///
/// ```swift
/// func run(_ queue: QueueManager, _ shop: inout NetworkBase) throws {
///     let trace = NetworkTrace()
///     shop.observers.append(trace)
///     queue.recording = QueueRecording()
///     // … run operations of the shop in the queue …
///     try trace.chromeTrace(with: queue.record).write(to: URL(fileURLWithPath: "/tmp/trace.json"))
/// }
/// ```
///
/// The file opens in `ui.perfetto.dev` and `chrome://tracing`. It shows no secrets: of URLs no values of queries, of requests
/// and responses neither fields nor bodies.
public final class NetworkTrace: NetworkObserver {
    private struct State {
        var operations: [UInt64: TracedOperation] = [:]
        var order = Fifo<UInt64>()
        /// How many operations, attempts, requests, waits and suspensions there are.
        var size = 0
        var forgottenCount = 0

        mutating func forget(_ id: UInt64) {
            guard let operation = operations.removeValue(forKey: id) else { return }
            size -= operation.size
            forgottenCount += 1
        }
    }

    /// How many operations are remembered at most; the oldest give way.
    public let limit: Int
    private let state = Locked(State())

    /// Makes an empty trace, of up to 10,000 operations unless you set another number.
    ///
    /// Of each operation it has the last 100 attempts, of each attempt the last 100 requests and waits, and of all these
    /// things together ten times as many as operations, or the oldest operations give way.
    public init(limit: Int = 10_000) {
        self.limit = max(limit, 1)
    }

    /// How many operations are not in it any more because there were more than are remembered, since ended ones
    /// were taken out or removed last.
    public var forgottenCount: Int { state.withLock { $0.forgottenCount } }

    /// Notes an event.
    public func observe(_ event: NetworkEvent) {
        let summary = event.request.map { "\($0.summary)" }
        state.withLock { state in
            if state.operations[event.operationID] == nil {
                // One of which it knew nothing, or nothing any more: it begins with its beginning.
                guard event.kind == .operationBegan else { return }
                let operation = TracedOperation(event)
                state.operations[event.operationID] = operation
                state.size += operation.size
                state.order.append(event.operationID)
            }
            let before = state.operations[event.operationID]?.size ?? 0
            state.operations[event.operationID]?.note(event, summary)
            state.size += (state.operations[event.operationID]?.size ?? 0) - before
            while state.order.count > limit || state.size / 10 > limit && state.order.count > 1 {
                guard let oldest = state.order.popFirst() else { break }
                state.forget(oldest)
            }
        }
    }

    /// The timeline as a Chrome trace: JSON that `ui.perfetto.dev` and `chrome://tracing` open.
    ///
    /// - Parameter records: What queues recorded (`queue.record`). What is in the record of one stands in its track there,
    ///   with its attempts nested in it; the others have tracks of their own.
    ///
    /// In each operation are its attempts and the waits between them: for a pause, a credential, the network, and with it for
    /// a place of the queue after that; for that place alone where the pause is none. In each attempt are its requests, and
    /// in each request what it spent its time with, as far as the session measured it:
    /// waiting for a connection, looking up the name, connecting, agreeing on TLS, sending, waiting for the first byte,
    /// receiving.
    public func chromeTrace(with records: QueueRecord...) throws -> Data { try chromeTrace(with: records) }

    /// The same with the records of any number of queues.
    public func chromeTrace(with records: [QueueRecord]) throws -> Data {
        try Self.json(of: state.withLock { $0.operations }.values, records)
    }

    /// The timeline, and from then on without what ended: for whoever writes one every minute.
    ///
    /// What goes on is in this one as far as it came, and in the next one from its beginning.
    public func takeChromeTrace(with records: [QueueRecord] = []) throws -> Data {
        try Self.json(of: takeEnded().values, records)
    }

    /// Forgets all operations that ended; what goes on stays.
    public func removeAll() { _ = takeEnded() }

    private func takeEnded() -> [UInt64: TracedOperation] {
        state.withLock { state in
            let all = state.operations
            state.operations = all.filter { $0.value.ended == nil }
            state.order = Fifo()
            for id in state.operations.keys.sorted() { state.order.append(id) }
            state.size = state.operations.values.reduce(0) { $0 + $1.size }
            state.forgottenCount = 0
            return all
        }
    }

    private static func json(of operations: some Sequence<TracedOperation>, _ records: [QueueRecord]) throws -> Data {
        try TraceLayout(operations.sorted { $0.id < $1.id }, records).trace.json()
    }
}

/// What a trace knows of one operation: a pure value, told the events.
struct TracedOperation: Sendable {
    /// A wait: for what, from when, to when.
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
        /// Whether what comes is still of this one, and not an answer of the cache's after it.
        var isOpen = true
    }

    struct Attempt: Sendable {
        let number: Int
        let began: OperationInstant
        var ended: OperationInstant?
        var sent: OperationInstant?
        var waits: [Wait] = []
        /// The requests of it; without word of those, one that stands for all.
        var hops: [Hop] = []
        var ending: NetworkEvent.Ending?
        var code: NetworkError.Code?
        var status: Int?
        var summary: String?

        var size: Int { 1 + waits.count + hops.count }
    }

    /// So many attempts and waits of an operation are remembered, and requests and waits of an attempt: the last ones.
    fileprivate static let most = 100

    let id: UInt64
    let name: String
    let object: ObjectIdentifier?
    let began: OperationInstant
    /// When something of it was told last.
    private(set) var last: OperationInstant
    private(set) var ended: OperationInstant?
    private(set) var ending: NetworkEvent.Ending?
    private(set) var attempts: [Attempt] = []
    private(set) var waits: [Wait] = []
    private(set) var marks: [(name: String, moment: OperationInstant)] = []
    private(set) var forgottenAttempts = 0
    /// What the attempts before the last one are made of.
    private var sizeBefore = 0

    /// Of how many things it is made: itself, attempts, requests, waits, suspensions.
    var size: Int { 1 + waits.count + marks.count + sizeBefore + (attempts.last?.size ?? 0) }

    init(_ event: NetworkEvent) {
        (id, name, object) = (event.operationID, event.operationName, event.operationObject)
        (began, last) = (event.moment, event.moment)
    }

    mutating func note(_ event: NetworkEvent, _ summary: String?) {
        last = max(last, event.moment)
        switch event.kind {
        case .attemptBegan:
            endWait(event)
            sizeBefore += attempts.last?.size ?? 0
            attempts.append(Attempt(number: event.attempt, began: event.moment))
            guard attempts.count > Self.most else { return }
            sizeBefore -= attempts.removeFirst().size
            waits.removeAll { ($0.ended ?? last) < attempts[0].began }
            forgottenAttempts += 1
        case .decided:
            endWait(event)
            guard let decision = event.decision, decision.pause != nil || decision.waitReason != nil else { return }
            let pause: WaitReason.Kind = decision.pause == .zero ? .place : .pause
            let kind = (decision.waitReason?.kind ?? pause).description
            waits.keep(Wait(name: "waiting: \(kind)", note: decision.note, began: event.moment), of: Self.most)
        case .suspended, .resumed:
            if marks.count < Self.most { marks.append(("\(event.kind)", event.moment)) }
        case .operationEnded:
            endWait(event)
            (ended, ending) = (event.moment, event.ending)
        default: noteInAttempt(event, summary)
        }
    }

    private mutating func endWait(_ event: NetworkEvent) {
        if !waits.isEmpty, waits[waits.count - 1].ended == nil { waits[waits.count - 1].ended = event.moment }
    }

    private mutating func noteInAttempt(_ event: NetworkEvent, _ summary: String?) {
        guard var attempt = attempts.popLast() else { return }
        defer { attempts.append(attempt) }
        attempt.summary = summary ?? attempt.summary
        switch event.kind {
        case .held:
            let kind = event.waitReason?.kind.description ?? "held"
            attempt.endWait(event.moment)
            let wait = Wait(name: "held: \(kind)", note: event.waitReason?.description, began: event.moment)
            attempt.waits.keep(wait, of: Self.most)
        case .wentOn: attempt.endWait(event.moment)
        case .sending:
            attempt.endWait(event.moment)
            attempt.sent = event.moment
        case .hopBegan: attempt.hops.keep(Hop(summary: summary, began: event.moment), of: Self.most)
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
            attempt.endWait(event.moment)
            (attempt.ended, attempt.ending, attempt.code) = (event.moment, event.ending, event.error?.code)
            if attempt.hops.isEmpty, let sent = attempt.sent {
                let hop = Hop(
                    summary: summary, began: sent, ended: event.moment, status: attempt.status, metrics: event.metrics)
                attempt.hops.append(hop)
            }
        default: break
        }
    }
}

extension TracedOperation.Attempt {
    fileprivate mutating func endWait(_ moment: OperationInstant) {
        if !waits.isEmpty, waits[waits.count - 1].ended == nil { waits[waits.count - 1].ended = moment }
    }

    /// Changes the present hop.
    fileprivate mutating func change(_ change: (inout TracedOperation.Hop) -> Void) {
        if hops.last?.isOpen == true { change(&hops[hops.count - 1]) }
    }
}

extension Array {
    /// Adds one; of more than so many the first is let go of.
    fileprivate mutating func keep(_ element: Element, of most: Int) {
        append(element)
        if count > most { removeFirst() }
    }
}

/// What one transfer spent its time with, phase after phase: a pure value made of what the session measured.
///
/// The phases follow each other without gaps from the beginning to the end, and none is negative, whatever was measured.
package struct TransferPhases: Sendable {
    package enum Kind: String, Sendable, CaseIterable, CustomStringConvertible {
        case queued, dns, connect, tls, request, wait, receive

        package var description: String { rawValue }
    }

    package struct Phase: Sendable {
        package let kind: Kind
        package let began: Duration
        package let ended: Duration

        package var length: Duration { ended - began }
    }

    package private(set) var list: [Phase] = []

    /// - Parameter bodySent: When the body was handed over, counted from the beginning.
    package init(_ metrics: TransferMetrics, bodySent: Duration? = nil) {
        var moment = Duration.zero
        let end = max(metrics.ended ?? metrics.firstByte ?? metrics.requestBegan ?? .zero, .zero)
        func add(_ kind: Kind, until measured: Duration?) {
            guard let measured else { return }
            let next = min(max(measured, moment), end)
            list.append(Phase(kind: kind, began: moment, ended: next))
            moment = next
        }
        add(.queued, until: metrics.slotGranted)
        add(.dns, until: metrics.nameResolved)
        add(.connect, until: metrics.connected)
        add(.tls, until: metrics.secured)
        // What passes between the connection and the request is neither.
        if let began = metrics.requestBegan { moment = min(max(began, moment), end) }
        // Word of the last portion may come with the answer: then it is not known how long it took to send them.
        let sent = bodySent.flatMap { $0 < metrics.firstByte ?? end ? $0 : nil }
        if metrics.requestBegan != nil { add(.request, until: sent ?? moment) }
        add(.wait, until: metrics.firstByte)
        if metrics.firstByte != nil { add(.receive, until: metrics.ended) }
    }

    package subscript(kind: Kind) -> Duration? { list.first { $0.kind == kind }?.length }
}
