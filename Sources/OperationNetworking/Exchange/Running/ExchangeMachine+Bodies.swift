// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
