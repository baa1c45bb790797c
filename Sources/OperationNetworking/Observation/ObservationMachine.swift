// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A step of an operation, as those who take it tell it.
package enum AttemptStep: Sendable {
    case started
    /// The preparation of an attempt begins, maybe not for the first time.
    case begins
    case held(WaitReason, NetworkRequest?)
    /// A task is about to be made.
    case sends(NetworkRequest)
    /// The session sends that.
    case hopBegins(NetworkRequest)
    /// The response of the present hop is not the answer.
    case left(ResponseHead)
    /// The present hop is over, whether there is word of its time or not.
    case hopIsOver
    /// That is how the present hop spent its time.
    case measured(TransferMetrics)
    case bodySent
    case takenBack
    case received(ResponseHead)
    case evaluated(body: Data?, count: Int64)
    case failed(NetworkError, count: Int64)
    case decided(AttemptAnswer)
    case suspended(Bool)
    /// With how many bytes of a body the attempt had received that goes on, if one does.
    case ended(NetworkEvent.Ending, NetworkError?, CancellationCause?, received: Int64? = nil)
}

/// What observers are told of the steps of one operation: a pure value, told the time.
///
/// Steps come from several threads, which read the clock before they come: a moment is never told that lies before the
/// last one. A step that comes too late, of an attempt that is over, is not told; what has begun and not ended when
/// something ends around it ends before that, and in the same way.
package struct ObservationMachine: Sendable {
    private struct Hop: Sendable {
        let number: Int
        var head: ResponseHead?
    }

    private struct Attempt: Sendable {
        let number: Int
        let began: OperationInstant
        var sent: OperationInstant?
        var hops = 0
        var hop: Hop?
        var head: ResponseHead?
        var metrics: TransferMetrics?
        var isHeld = false
        var isBodySent = false
        /// Whether the head of the answer was told, of the present hop if there are any.
        var hasResponded = false
    }

    private var began: OperationInstant?
    private var last = OperationInstant(offset: .seconds(-Int64.max))
    private(set) var request: NetworkRequest?
    private var lastHead: ResponseHead?
    private var attempt: Attempt?
    private var lastAttempt = 0
    private var isEnded = false

    /// Whether observers were told that the operation began: one that comes after that is too late.
    var hasBegun: Bool { began != nil }

    /// Makes an event: kind, attempt, hop and moment.
    package typealias Make = (NetworkEvent.Kind, Int, Int, OperationInstant) -> NetworkEvent

    package init() {}

    /// What is to be told of a step, in this order.
    package mutating func note(
        _ step: AttemptStep, _ number: Int, at now: OperationInstant, _ make: Make
    ) -> [NetworkEvent] {
        guard !isEnded else { return [] }
        let now = max(now, last)
        last = now
        var events: [NetworkEvent] = []
        func add(_ kind: NetworkEvent.Kind, _ fill: (inout NetworkEvent) -> Void = { _ in }) {
            events.append(event(kind, now, make, fill))
        }
        switch step {
        case .started:
            guard began == nil else { return [] }
            began = now
            add(.operationBegan)
        case .suspended(let isSuspended):
            guard began != nil else { return [] }
            add(isSuspended ? .suspended : .resumed)
        case .decided(let answer):
            guard attempt == nil, number == lastAttempt, number > 0 else { return [] }
            add(.decided) { $0.decision = NetworkEvent.Decision(answer) }
        case .begins: begin(number, now, make, &events)
        case .ended(let ending, let error, let cause, let received):
            if attempt != nil {
                // The operation may have ended by itself in the middle of it.
                end(ending, now, make, &events) { event in
                    (event.error, event.cancellationCause, event.receivedBytes) = (error, cause, received)
                }
            }
            isEnded = true
            add(.operationEnded) { ($0.ending, $0.error, $0.cancellationCause) = (ending, error, cause) }
        case .held, .sends, .hopBegins, .left, .hopIsOver, .measured, .bodySent, .takenBack, .received, .evaluated,
            .failed:
            guard attempt?.number == number else { return [] }
            noteInAttempt(step, now, make, &events)
        }
        return events
    }

    private mutating func begin(_ number: Int, _ now: OperationInstant, _ make: Make, _ events: inout [NetworkEvent]) {
        if attempt?.number == number {
            // Held back or suspended for long, its request is made anew.
            guard attempt?.isHeld == true else { return }
            attempt?.isHeld = false
            return events.append(event(.wentOn, now, make))
        }
        guard number > lastAttempt, hasBegun else { return }
        if attempt != nil { end(.takenBack, now, make, &events) }
        attempt = Attempt(number: number, began: now)
        lastAttempt = number
        events.append(event(.attemptBegan, now, make))
    }

    private mutating func noteInAttempt(
        _ step: AttemptStep, _ now: OperationInstant, _ make: Make, _ events: inout [NetworkEvent]
    ) {
        switch step {
        case .held(let reason, let request):
            self.request = request ?? self.request
            attempt?.isHeld = true
            events.append(event(.held, now, make) { $0.waitReason = reason })
        case .sends(let request):
            self.request = request
            attempt?.sent = now
            events.append(event(.sending, now, make))
        case .hopBegins(let request):
            endHop(now, make, &events)
            self.request = request
            let number = (attempt?.hops ?? 0) + 1
            attempt?.hops = number
            attempt?.hop = Hop(number: number)
            attempt?.metrics = nil
            attempt?.isBodySent = false
            attempt?.hasResponded = false
            events.append(event(.hopBegan, now, make))
        case .left(let head):
            guard attempt?.hop != nil else { return }
            attempt?.hop?.head = head
            events.append(event(.leftBehind, now, make) { $0.head = head })
        case .hopIsOver: endHop(now, make, &events)
        case .measured(let metrics):
            attempt?.metrics = metrics
            endHop(now, make, &events)
        case .bodySent:
            guard attempt?.isBodySent == false else { return }
            attempt?.isBodySent = true
            events.append(event(.bodySent, now, make))
        case .takenBack: end(.takenBack, now, make, &events)
        case .received(let head):
            attempt?.head = head
            // A file that is there has a head of its own, after that of its last response was told.
            guard attempt?.hasResponded == false else { return }
            attempt?.hasResponded = true
            attempt?.hop?.head = head
            events.append(event(.responded, now, make))
        case .evaluated(let body, let count):
            end(.success, now, make, &events) { ($0.responseBody, $0.receivedBytes) = (body, count) }
        case .failed(let error, let count):
            end(error.code == .cancelled ? .cancelled : .failure, now, make, &events) { event in
                (event.error, event.responseBody, event.receivedBytes) = (error, error.bodyPrefix, count)
            }
        case .started, .begins, .decided, .suspended, .ended: break
        }
    }

    /// The present hop is over.
    private mutating func endHop(_ now: OperationInstant, _ make: Make, _ events: inout [NetworkEvent]) {
        guard let hop = attempt?.hop else { return }
        events.append(event(.hopEnded, now, make) { $0.head = hop.head })
        attempt?.hop = nil
    }

    private mutating func end(
        _ ending: NetworkEvent.Ending, _ now: OperationInstant, _ make: Make, _ events: inout [NetworkEvent],
        _ fill: (inout NetworkEvent) -> Void = { _ in }
    ) {
        endHop(now, make, &events)
        let ended = event(.attemptEnded, now, make) { event in
            event.ending = ending
            fill(&event)
        }
        events.append(ended)
        lastHead = attempt?.head
        attempt = nil
    }

    private func event(
        _ kind: NetworkEvent.Kind, _ now: OperationInstant, _ make: Make,
        _ fill: (inout NetworkEvent) -> Void = { _ in }
    ) -> NetworkEvent {
        var event = make(kind, attempt?.number ?? lastAttempt, attempt?.hops ?? 0, now)
        event.sinceOperationBegan = began?.duration(to: now)
        event.sinceAttemptBegan = attempt?.began.duration(to: now)
        event.sinceSending = attempt?.sent?.duration(to: now)
        event.request = request
        event.head = attempt == nil ? lastHead : attempt?.head
        event.metrics = attempt?.metrics
        fill(&event)
        return event
    }
}
