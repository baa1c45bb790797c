// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

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
