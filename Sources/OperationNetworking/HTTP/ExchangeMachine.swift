// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The source of a response, as the state machine of an exchange sees it.
package protocol ExchangeSource: Sendable {
    /// Whether the response comes from a session, whose task can be paused.
    ///
    /// If the value is `false`, the exchange itself reads the body, for example from the cache.
    var isFlight: Bool { get }
}

/// The reasons to hold the bytes of a response.
package struct ExchangeHoldReasons: OptionSet, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    /// The receiver holds the response.
    package static let receiver = ExchangeHoldReasons(rawValue: 1)
    /// The cache has too many bytes to write.
    package static let cache = ExchangeHoldReasons(rawValue: 2)
    /// A rule is being asked, or the response headers are being delivered.
    package static let decision = ExchangeHoldReasons(rawValue: 4)
}

/// The state machine of an exchange, which receives events and returns actions.
///
/// The machine does not depend on sessions, caches, receivers or threads.
///
/// ```text
///          resume           requestWasSent              delivers
/// waiting ───────▶ preparing ──────────────▶ awaitingHead ────────▶ delivering ──▶ ended
///                   ▲    ▲                    │  │                     ▲  ▲
///                   │    │             leaves │  │ asksRule            │  │ deliversHead
///           ended,  │    │                    ▼  ▼                     │  │
///         failsOver │    └──────────── draining ◀── deciding ──────────┘  │
///                   └───── ended             leaves        └──────▶ keepingHead
///                                                        delivers
/// ```
///
/// A cached response goes from `preparing` directly to `deciding`, `keepingHead` or `delivering`. A response that
/// arrives while delivery is paused goes from `awaitingHead` to `keepingHead`. `finish` leads from every state to
/// `ended`.
///
/// Each request and each cache lookup has a number, the step. An event of any other step than the present one changes
/// nothing.
package struct ExchangeMachine<Source: ExchangeSource, Next: Sendable, Copy: Sendable>: Sendable {
    enum State {
        /// The exchange was never resumed.
        case waiting
        /// The next request is being prepared, or the cache is being searched.
        case preparing
        /// The session has a request, and the response headers have not arrived.
        case awaitingHead(Source)
        /// A rule of the user is being asked about a response, which is held and may fail in the meantime.
        case deciding(Source, broken: NetworkError?)
        /// The rest of an intermediate response is being read.
        indirect case draining(Source, Next, Copy?, discarded: Int)
        /// The headers of the final response arrived but may not be delivered yet, and the rest is held.
        indirect case keepingHead(Source, Copy?, ResponseHead)
        /// The headers were delivered, and the body follows.
        case delivering(Source, Copy?, count: Int64, isReading: Bool)
        case ended
    }

    var state = State.waiting
    /// The number of the present step, or -1 after the end.
    var step = 0
    var isSuspended = true { didSet { changes += 1 } }
    var holdReasons: ExchangeHoldReasons = [] { didSet { changes += 1 } }
    /// The number of changes of these two properties, which is the number of the present order.
    private var changes = 0
    /// The number of the newest order that the exchange received.
    private var lastFollowed = Int.min
    /// The highest reported number of body bytes that any of the requests sent.
    var sent: Int64 = 0
    /// Whether a server responded to one of the requests, so that an error must not claim that nothing was sent.
    var wasAnswered = false

    package init() {}

    /// A machine of an exchange that ended.
    static var ended: Self {
        var machine = Self()
        (machine.state, machine.step) = (.ended, -1)
        return machine
    }

    var source: Source? {
        switch state {
        case .awaitingHead(let source), .deciding(let source, _), .draining(let source, _, _, _),
            .keepingHead(let source, _, _), .delivering(let source, _, _, _):
            source
        case .waiting, .preparing, .ended: nil
        }
    }

    /// Returns whether a step is the present and the first one, so that nothing was sent before.
    package func isFirst(_ step: Int) -> Bool { step == 1 && isPresent(step) }

    /// Returns whether events of a step are still accepted.
    package func isPresent(_ step: Int) -> Bool { step == self.step }

    package var isEnded: Bool { if case .ended = state { true } else { false } }

    /// The phase that an error from outside the exchange reports.
    package var phase: NetworkError.Phase {
        switch state {
        case .waiting: .waiting
        case .keepingHead, .delivering: .receiving
        case .preparing, .awaitingHead, .deciding, .draining, .ended: .awaitingResponse
        }
    }
}

// Pausing.
extension ExchangeMachine {
    /// The action after a pause ended.
    package enum Release: Equatable, Sendable {
        /// Make the first request.
        case start
        /// Pass the wanted pause order to the task of the session.
        case order
        /// Continue reading the body if it is in the cache.
        case read
        /// Do the same as `order`, and deliver the kept headers if delivery is not paused.
        case answer
    }

    /// The order for the task of the present source, or `nil` if there is no such task.
    package var wanted: (source: Source, order: PauseOrder)? {
        guard let source, source.isFlight else { return nil }
        return (source, PauseOrder(number: changes, isSuspended: isSuspended, isHeld: !holdReasons.isEmpty))
    }

    package mutating func resume() -> Release {
        isSuspended = false
        if case .waiting = state {
            state = .preparing
            return .start
        }
        return afterRelease
    }

    private var afterRelease: Release {
        if case .keepingHead = state { return .answer }
        return source?.isFlight == true ? .order : .read
    }

    package mutating func suspend() { isSuspended = true }

    /// Follows an order, or returns `nil` if the order is not newer than the last one.
    package mutating func follow(_ order: PauseOrder) -> Release? {
        guard order.number > lastFollowed else { return nil }
        lastFollowed = order.number
        if let isHeld = order.isHeld {
            if isHeld { holdReasons.insert(.receiver) } else { holdReasons.remove(.receiver) }
        }
        guard order.isSuspended else { return resume() }
        isSuspended = true
        return .order
    }

    package mutating func set(_ reason: ExchangeHoldReasons) { holdReasons.insert(reason) }

    package mutating func release(_ reason: ExchangeHoldReasons) -> Release {
        holdReasons.remove(reason)
        return afterRelease
    }
}

// Requests and responses.
extension ExchangeMachine {
    /// Begins a new step and returns its number, or returns `nil` if the exchange ended.
    package mutating func advance() -> Int? {
        if case .ended = state { return nil }
        step += 1
        return step
    }

    /// Records that the session has a request, and returns `false` if the request is no longer needed.
    package mutating func requestWasSent(_ source: Source, _ step: Int) -> Bool {
        guard isPresent(step), case .preparing = state else { return false }
        state = .awaitingHead(source)
        return true
    }

    /// Records that response headers arrived, and returns their source, or `nil` if no response is expected.
    package mutating func headArrived(_ step: Int) -> Source? {
        guard isPresent(step), case .awaitingHead(let source) = state else { return nil }
        wasAnswered = true
        return source
    }

    /// Records that a rule is about to be asked about a response, and returns `false` if the decision is no longer
    /// needed.
    package mutating func asksRule(_ source: Source, _ step: Int) -> Bool {
        guard isPresent(step) else { return false }
        switch state {
        case .preparing, .awaitingHead: break
        case .waiting, .deciding, .draining, .keepingHead, .delivering, .ended: return false
        }
        state = .deciding(source, broken: nil)
        holdReasons.insert(.decision)
        return true
    }

    /// Returns the response about which a rule is being asked, or `nil` if the step is over.
    package func beingDecided(_ step: Int) -> Source? {
        guard isPresent(step), case .deciding(let source, _) = state else { return nil }
        return source
    }

    /// The failure of a response that occurred while a rule was asked.
    package var broken: NetworkError? { if case .deciding(_, let broken) = state { broken } else { nil } }

    /// The action for the final response.
    package enum Delivery: Sendable {
        case drop
        /// Deliver the headers. If the response does not come from a session, then let the exchange read the body.
        case deliverHead
        /// Keep the headers because delivery is paused, and hold the rest.
        case keep
        /// Deliver the kept headers (`deliversHead`) as soon as no other call is in progress, because that call may
        /// still pause the delivery.
        ///
        /// If there is an error, the response failed in the meantime. Finish with the error afterwards.
        case deliverKept(thenFinish: NetworkError?)
        /// Finish with this error, because the response failed before any part of it was delivered.
        case finish(NetworkError)
    }

    /// Accepts a response as the final one, and returns how to deliver it.
    package mutating func delivers(
        _ source: Source, _ head: ResponseHead, _ copy: Copy?, _ step: Int
    ) -> Delivery {
        guard isPresent(step) else { return .drop }
        switch state {
        case .preparing, .awaitingHead: break
        case .deciding(_, let broken):
            if let broken, !mayDeliverHead { return .finish(broken) }
            state = .keepingHead(source, copy, head)
            return mayDeliverHead ? .deliverKept(thenFinish: broken) : .keep
        case .waiting, .draining, .keepingHead, .delivering, .ended: return .drop
        }
        guard mayDeliverHead else {
            state = .keepingHead(source, copy, head)
            holdReasons.insert(.decision)
            return .keep
        }
        state = .delivering(source, copy, count: 0, isReading: false)
        return .deliverHead
    }

    private var mayDeliverHead: Bool { !isSuspended && holdReasons.isSubset(of: .decision) }

    /// Begins to deliver the response and returns its kept headers, or returns `nil` if delivery is paused.
    package mutating func deliversHead() -> ResponseHead? {
        guard mayDeliverHead, case .keepingHead(let source, let copy, let head) = state else { return nil }
        state = .delivering(source, copy, count: 0, isReading: false)
        return head
    }

    /// Releases the rest of the response after the kept headers were delivered, or returns `nil` if they were not.
    package mutating func headWasDelivered() -> Release? {
        guard case .delivering = state, holdReasons.contains(.decision) else { return nil }
        return release(.decision)
    }

    /// The action for a response that is not the final one.
    package enum Leaving: Equatable, Sendable {
        case drop
        /// Take the next step, because nothing is left to read.
        case startNext
        /// Read the rest of the response first.
        case drain
    }

    /// Leaves an intermediate response, after which `next` follows.
    package mutating func leaves(_ source: Source, for next: Next, _ copy: Copy?, _ step: Int) -> Leaving {
        guard isPresent(step) else { return .drop }
        var isBroken = false
        switch state {
        case .preparing, .awaitingHead: break
        case .deciding(_, let error): isBroken = error != nil
        case .waiting, .draining, .keepingHead, .delivering, .ended: return .drop
        }
        holdReasons.remove(.decision)
        guard source.isFlight, !isBroken else {
            state = .preparing
            return .startNext
        }
        state = .draining(source, next, copy, discarded: 0)
        return .drain
    }
}

// Bytes and ends.
extension ExchangeMachine {
    package enum Bytes: Sendable {
        case ignore
        /// Give the bytes only to the cache, if there is a copy.
        ///
        /// `isEnough` is `true` once, when no more bytes should be read.
        case discard(Copy?, isEnough: Bool)
        case tooMany
        /// Finish with `deliveredWhileHeld`, because the session delivered bytes of a held response and they are lost.
        case tooSoon
        case handOver(Copy?)
    }

    /// Returns what to do with bytes of a body.
    package mutating func received(_ count: Int, limit: Int64, drainLimit: Int, _ step: Int) -> Bytes {
        guard isPresent(step) else { return .ignore }
        switch state {
        case .draining(let source, let next, let copy, let discarded):
            let sum = discarded + count
            state = .draining(source, next, copy, discarded: sum)
            return .discard(copy, isEnough: sum > drainLimit && discarded <= drainLimit)
        case .delivering(let source, let copy, let before, let isReading):
            let sum = before + Int64(count)
            state = .delivering(source, copy, count: sum, isReading: isReading)
            return sum > limit ? .tooMany : .handOver(copy)
        case .deciding(let source, nil):
            state = .deciding(source, broken: Self.deliveredWhileHeld)
            return .ignore
        case .keepingHead: return .tooSoon
        case .waiting, .preparing, .awaitingHead, .deciding, .ended: return .ignore
        }
    }

    /// The error for a session that continues a response although its task is held, so that bytes are lost.
    package static var deliveredWhileHeld: NetworkError {
        NetworkError(
            code: .truncatedBody, phase: .receiving,
            message: "The session continued a response while its task was held, so a part of the response is lost. "
                + "After hold(), a session must not deliver bytes or a successful end before proceed().")
    }

    /// Returns whether the rest of an intermediate response is being read.
    package func isDraining(_ step: Int) -> Bool {
        guard isPresent(step), case .draining = state else { return false }
        return true
    }

    package enum End: Sendable {
        case ignore
        case finish(NetworkError?)
        /// Take the next step, because the intermediate response ended.
        case startNext(Next, Copy?)
        /// Handle a request that ended without a response.
        case failed(Source)
    }

    /// Returns what to do after a request ended.
    package mutating func ended(_ error: NetworkError?, _ step: Int) -> End {
        guard isPresent(step) else { return .ignore }
        switch state {
        case .awaitingHead(let source): return .failed(source)
        case .draining(_, let next, let copy, _):
            // The rest of the response is not needed, so its error does not matter.
            state = .preparing
            return .startNext(next, copy)
        case .deciding(let source, _):
            // If the rule leaves the response, its error does not matter.
            state = .deciding(source, broken: error ?? Self.deliveredWhileHeld)
            return .ignore
        // A held response can only end with a failure, which is reported even while delivery is paused.
        case .keepingHead: return .finish(error ?? Self.deliveredWhileHeld)
        case .delivering: return .finish(error)
        case .waiting, .preparing, .ended: return .ignore
        }
    }

    /// Replaces a failed request by a cached response, and returns `false` if the exchange no longer needs it.
    package mutating func failsOver(_ step: Int) -> Bool {
        guard isPresent(step), case .awaitingHead = state else { return false }
        state = .preparing
        return true
    }

    /// Returns whether parts of a response other than its headers and body are forwarded.
    package func forwards(_ step: Int) -> Bool {
        guard isPresent(step) else { return false }
        switch state {
        case .awaitingHead, .delivering: return true
        case .waiting, .preparing, .deciding, .draining, .keepingHead, .ended: return false
        }
    }

    /// Records the progress of a request's body, and returns whether it exceeds all earlier progress.
    package mutating func sent(_ count: Int64, _ step: Int) -> Bool {
        guard isPresent(step), count > sent else { return false }
        sent = count
        return true
    }
}

// Reading from the cache.
extension ExchangeMachine {
    /// Begins to read from the cache, or returns `nil` if another thread reads or delivery is paused.
    ///
    /// No other thread reads until `reads` was called.
    package mutating func startsReading() -> (source: Source, step: Int)? {
        guard !isSuspended, holdReasons.isEmpty, case .delivering(let source, let copy, let count, false) = state,
            !source.isFlight
        else { return nil }
        state = .delivering(source, copy, count: count, isReading: true)
        return (source, step)
    }

    /// Records that the turn of a reader came, and returns whether the reader may read now.
    package mutating func reads(_ step: Int) -> Bool {
        guard isPresent(step), case .delivering(let source, let copy, let count, _) = state else { return false }
        state = .delivering(source, copy, count: count, isReading: false)
        return !isSuspended && holdReasons.isEmpty
    }
}

// The end.
extension ExchangeMachine {
    /// The resources of an ended exchange that must be closed.
    package struct Left: Sendable {
        package let source: Source?
        package let copy: Copy?
        /// Whether the copy belongs to a final response whose headers were delivered.
        package let isAnswer: Bool
        package let wasAnswered: Bool
    }

    /// Ends the exchange, and returns `nil` if it ended before.
    package mutating func finish() -> Left? {
        var (copy, isAnswer): (Copy?, Bool) = (nil, false)
        switch state {
        case .ended: return nil
        case .draining(_, _, let present, _), .keepingHead(_, let present, _): copy = present
        case .delivering(_, let present, _, _): (copy, isAnswer) = (present, true)
        case .waiting, .preparing, .awaitingHead, .deciding: break
        }
        defer { (state, step) = (.ended, -1) }
        return Left(source: source, copy: copy, isAnswer: isAnswer, wasAnswered: wasAnswered)
    }
}
