// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Where a response comes from, as far as the life of an exchange depends on it.
package protocol ExchangeSource: Sendable {
    /// Whether it comes from a session, whose task can be braked.
    var isFlight: Bool { get }
    /// Whether what comes after its head is to be read, as from the cache.
    var isRead: Bool { get }
}

/// Why the bytes that come in are held.
package struct ExchangeBrakes: OptionSet, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    /// The receiver said so.
    package static let receiver = ExchangeBrakes(rawValue: 1)
    /// The cache has more than it can write.
    package static let cache = ExchangeBrakes(rawValue: 2)
    /// A rule is asked, or the head is being handed over.
    package static let decision = ExchangeBrakes(rawValue: 4)
}

/// The life of an exchange: events in, actions out.
///
/// It knows no sessions, caches, receivers and threads.
///
/// ```text
///          resume            asked           delivers
/// waiting ───────▶ preparing ──────▶ asking ─────────▶ delivering ──▶ ended
///                   ▲    ▲            │  │                 ▲  ▲
///                   │    │     leaves │  │ asksRule        │  │ tellsHead
///           ended,  │    │            ▼  ▼                 │  │
///         failsOver │    └──── draining ◀── deciding ──────┘  │
///                   └───── ended     leaves        └──▶ answering
///                                                delivers
/// ```
///
/// What is kept goes from `preparing` to `deciding`, `answering` or `delivering` at once, and a request that is answered
/// under a brake from `asking` to `answering`. `finish` leads to the end from
/// everywhere. Each request and each look into the cache has a number, the step; what comes with one that is no longer the
/// present one changes nothing.
package struct ExchangeMachine<Source: ExchangeSource, Next: Sendable, Copy: Sendable>: Sendable {
    enum State {
        /// It was never resumed.
        case waiting
        /// The next request is being put together, or the cache is asked.
        case preparing
        /// A request is with the session, and its head is not there yet.
        case asking(Source)
        /// A rule of the user's is asked what becomes of a response, which is held meanwhile; it may break then.
        case deciding(Source, broken: NetworkError?)
        /// A response that is not the answer runs out.
        case draining(Source, Next, Copy?, discarded: Int)
        /// The head of the answer is there, and may not be told yet; what is behind it is held.
        case answering(Source, Copy?, ResponseHead)
        /// The head was handed over, and the body follows.
        case delivering(Source, Copy?, count: Int64, isReading: Bool)
        case ended
    }

    var state = State.waiting
    var step = 0
    var isSuspended = true { didSet { changes += 1 } }
    var brakes: ExchangeBrakes = [] { didSet { changes += 1 } }
    /// How often one of these two changed: the number of what is wanted now.
    private var changes = 0
    /// The number of the last order from above.
    private var obeyed = Int.min
    /// How many bytes of the request's body were told to be sent, whichever request it was.
    var sent: Int64 = 0
    /// Whether a server answered one of the requests, so that it cannot be said that nothing was sent.
    var wasAnswered = false

    package init() {}

    var source: Source? {
        switch state {
        case .asking(let source), .deciding(let source, _), .draining(let source, _, _, _),
            .answering(let source, _, _), .delivering(let source, _, _, _):
            source
        case .waiting, .preparing, .ended: nil
        }
    }

    /// Whether it is the first of all, so that nothing was sent by now.
    package func isFirst(_ step: Int) -> Bool { step == 1 && isPresent(step) }

    /// Whether something with this number is still heard.
    package func isPresent(_ step: Int) -> Bool { !isEnded && step == self.step }

    package var isEnded: Bool { if case .ended = state { true } else { false } }

    /// How far it has come, for errors from outside.
    package var phase: NetworkError.Phase {
        switch state {
        case .waiting: .waiting
        case .answering, .delivering: .receiving
        case .preparing, .asking, .deciding, .draining, .ended: .awaitingResponse
        }
    }
}

// Brakes.
extension ExchangeMachine {
    /// What is to be done after something was let go.
    package enum Release: Equatable, Sendable {
        /// The first request is to be made.
        case start
        /// The task of the session is to be brought to what is wanted.
        case settle
        /// The body is to be read on, if it is in the cache.
        case read
        /// The same as `settle`, and the head that was kept is to be told if it may be.
        case answer
    }

    /// What is wanted of the task of the present source; nil if there is no such task.
    package var wanted: (source: Source, order: BrakeOrder)? {
        guard let source, source.isFlight else { return nil }
        return (source, BrakeOrder(number: changes, isSuspended: isSuspended, isHeld: !brakes.isEmpty))
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
        if case .answering = state { return .answer }
        return source?.isFlight == true ? .settle : .read
    }

    package mutating func suspend() { isSuspended = true }

    /// Follows an order from above; nil if that is older than the last one.
    package mutating func obey(_ order: BrakeOrder) -> Release? {
        guard order.number > obeyed else { return nil }
        obeyed = order.number
        if let isHeld = order.isHeld {
            if isHeld { brakes.insert(.receiver) } else { brakes.remove(.receiver) }
        }
        guard order.isSuspended else { return resume() }
        isSuspended = true
        return .settle
    }

    package mutating func set(_ brake: ExchangeBrakes) { brakes.insert(brake) }

    package mutating func release(_ brake: ExchangeBrakes) -> Release {
        brakes.remove(brake)
        return afterRelease
    }
}

// Requests and responses.
extension ExchangeMachine {
    /// Something new begins: its number, or nil if the exchange ended.
    package mutating func advance() -> Int? {
        if case .ended = state { return nil }
        step += 1
        return step
    }

    /// A request was handed to the session; false if nobody wants it any more.
    package mutating func asked(_ source: Source, _ step: Int) -> Bool {
        guard isPresent(step), case .preparing = state else { return false }
        state = .asking(source)
        return true
    }

    /// The head of a response came: to which request, or nil if nobody waits for it.
    package mutating func answered(_ step: Int) -> Source? {
        guard isPresent(step), case .asking(let source) = state else { return nil }
        wasAnswered = true
        return source
    }

    /// A rule is about to be asked about a response; false if nobody wants to know any more.
    package mutating func asksRule(_ source: Source, _ step: Int) -> Bool {
        guard isPresent(step) else { return false }
        switch state {
        case .preparing, .asking: break
        case .waiting, .deciding, .draining, .answering, .delivering, .ended: return false
        }
        state = .deciding(source, broken: nil)
        brakes.insert(.decision)
        return true
    }

    /// The response that a rule is asked about, if it is still this one.
    package func beingDecided(_ step: Int) -> Source? {
        guard isPresent(step), case .deciding(let source, _) = state else { return nil }
        return source
    }

    /// What broke while a rule was asked.
    package var broken: NetworkError? { if case .deciding(_, let broken) = state { broken } else { nil } }

    /// What is to be done with a response that is the answer.
    package enum Delivery: Sendable {
        case drop
        /// Hand the head over, then this.
        case tellHead(then: After)
        /// There is a brake, and so the head is kept: hold what is behind it.
        case keep
        /// The head is kept until no other call is being made, in which a brake may be set yet: then tell it (`tellsHead`). It
        /// broke if there is an error: end with that.
        case tellKept(thenFinish: NetworkError?)
        /// It broke, and nothing of it was told: end with this.
        case finish(NetworkError)

        package enum After: Sendable {
            case nothing
            case release
        }
    }

    /// The response is the answer.
    package mutating func delivers(
        _ source: Source, _ head: ResponseHead, _ copy: Copy?, _ step: Int
    ) -> Delivery {
        guard isPresent(step) else { return .drop }
        switch state {
        case .preparing, .asking: break
        case .deciding(_, let broken):
            if let broken, !mayTellHead { return .finish(broken) }
            state = .answering(source, copy, head)
            return mayTellHead ? .tellKept(thenFinish: broken) : .keep
        case .waiting, .draining, .answering, .delivering, .ended: return .drop
        }
        guard mayTellHead else {
            state = .answering(source, copy, head)
            brakes.insert(.decision)
            return .keep
        }
        state = .delivering(source, copy, count: 0, isReading: false)
        return .tellHead(then: source.isRead ? .release : .nothing)
    }

    private var mayTellHead: Bool { !isSuspended && brakes.isSubset(of: .decision) }

    /// The head that was kept, if it may be told now: then hand it over.
    package mutating func tellsHead() -> ResponseHead? {
        guard mayTellHead, case .answering(let source, let copy, let head) = state else { return nil }
        state = .delivering(source, copy, count: 0, isReading: false)
        return head
    }

    /// The head that was kept was told, unless a brake came first: what is behind it is let go.
    package mutating func headWasTold() -> Release? {
        guard case .delivering = state, brakes.contains(.decision) else { return nil }
        return release(.decision)
    }

    /// What is to be done with a response that is not the answer.
    package enum Leaving: Equatable, Sendable {
        case drop
        /// There is nothing left of it: take the next step.
        case goOn
        /// The rest of it runs out first.
        case drain
    }

    /// The response is not the answer, and `next` comes after it.
    package mutating func leaves(_ source: Source, for next: Next, _ copy: Copy?, _ step: Int) -> Leaving {
        guard isPresent(step) else { return .drop }
        var isBroken = false
        switch state {
        case .preparing, .asking: break
        case .deciding(_, let error): isBroken = error != nil
        case .waiting, .draining, .answering, .delivering, .ended: return .drop
        }
        brakes.remove(.decision)
        guard source.isFlight, !isBroken else {
            state = .preparing
            return .goOn
        }
        state = .draining(source, next, copy, discarded: 0)
        return .drain
    }
}

// Bytes and ends.
extension ExchangeMachine {
    package enum Bytes: Sendable {
        case ignore
        /// Nobody wants them but perhaps the cache; `isEnough` once, when no more of them are to come.
        case discard(Copy?, isEnough: Bool)
        case tooMany
        /// The task is held, and its session told them nevertheless: the answer lacks them, so end with `toldWhileHeld`.
        case tooSoon
        case handOver(Copy?)
    }

    /// Bytes came from the session.
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
            state = .deciding(source, broken: Self.toldWhileHeld)
            return .ignore
        case .answering: return .tooSoon
        case .waiting, .preparing, .asking, .deciding, .ended: return .ignore
        }
    }

    /// What goes wrong where a session does not heed that its task is held: what it tells then nobody can take.
    package static var toldWhileHeld: NetworkError {
        NetworkError(
            code: .truncatedBody, phase: .receiving,
            message: "The session went on with a response although its task was held, and what came then is lost. "
                + "After hold() a session must tell neither bytes nor a complete end until proceed().")
    }

    /// Whether a response runs out of which nothing is wanted any more.
    package func isDraining(_ step: Int) -> Bool {
        guard isPresent(step), case .draining = state else { return false }
        return true
    }

    package enum End: Sendable {
        case ignore
        case finish(NetworkError?)
        /// What was left of a response ran out: take the next step.
        case goOn(Next, Copy?)
        /// There was no response.
        case failed(Source)
    }

    /// The request ended.
    package mutating func ended(_ error: NetworkError?, _ step: Int) -> End {
        guard isPresent(step) else { return .ignore }
        switch state {
        case .asking(let source): return .failed(source)
        case .draining(_, let next, let copy, _):
            // However it ended: nothing was wanted of it any more.
            state = .preparing
            return .goOn(next, copy)
        case .deciding(let source, _):
            // If it is left behind, it does not matter how it ended.
            state = .deciding(source, broken: error ?? Self.toldWhileHeld)
            return .ignore
        // What is held does not end but by failing, and that is told whatever the brakes.
        case .answering: return .finish(error ?? Self.toldWhileHeld)
        case .delivering: return .finish(error)
        case .waiting, .preparing, .ended: return .ignore
        }
    }

    /// A request failed, and something that is kept takes its place; false if nobody wants it any more.
    package mutating func failsOver(_ step: Int) -> Bool {
        guard isPresent(step), case .asking = state else { return false }
        state = .preparing
        return true
    }

    /// Whether something of a response that is neither head nor body is handed on.
    package func handsOn(_ step: Int) -> Bool {
        guard isPresent(step) else { return false }
        switch state {
        case .asking, .delivering: return true
        case .waiting, .preparing, .deciding, .draining, .answering, .ended: return false
        }
    }

    /// The request's body moved on; whether that is further than any before.
    package mutating func sent(_ count: Int64, _ step: Int) -> Bool {
        guard isPresent(step), count > sent else { return false }
        sent = count
        return true
    }
}

// Reading from the cache.
extension ExchangeMachine {
    /// Whether somebody is to read on: from what, and with which number.
    ///
    /// Then nobody else does until `reads` was called.
    package mutating func startsReading() -> (source: Source, step: Int)? {
        guard !isSuspended, brakes.isEmpty, case .delivering(let source, let copy, let count, false) = state,
            source.isRead
        else { return nil }
        state = .delivering(source, copy, count: count, isReading: true)
        return (source, step)
    }

    /// Who reads is about to; false if it is not wanted any more.
    package mutating func reads(_ step: Int) -> Bool {
        guard isPresent(step), case .delivering(let source, let copy, let count, _) = state else { return false }
        state = .delivering(source, copy, count: count, isReading: false)
        return !isSuspended && brakes.isEmpty
    }
}

// The end.
extension ExchangeMachine {
    /// What an exchange leaves behind that is to be closed.
    package struct Left: Sendable {
        package let source: Source?
        package let copy: Copy?
        /// Whether the copy is of a body that was the answer.
        package let isAnswer: Bool
        package let wasAnswered: Bool
    }

    /// It is over; nil if it was before.
    package mutating func finish() -> Left? {
        var (copy, isAnswer): (Copy?, Bool) = (nil, false)
        switch state {
        case .ended: return nil
        case .draining(_, _, let present, _), .answering(_, let present, _): copy = present
        case .delivering(_, let present, _, _): (copy, isAnswer) = (present, true)
        case .waiting, .preparing, .asking, .deciding: break
        }
        defer { state = .ended }
        return Left(source: source, copy: copy, isAnswer: isAnswer, wasAnswered: wasAnswered)
    }
}
