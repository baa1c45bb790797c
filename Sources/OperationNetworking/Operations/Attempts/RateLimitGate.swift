// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore
import Synchronization

/// Holds the requests of one operation until their rate limit has a token.
///
/// The operation gives up its slot meanwhile. A request that follows from its request, such as a redirect, waits in the
/// exchange. So does a request that a cache of the session may answer, because a response from the cache takes no token.
final class RateLimitGate: AttemptGate {
    private struct State {
        /// The token for the next request.
        var token: RateLimit.Token?
        /// What the last request carries.
        var pass: RatePass?
        /// Where the operation waits.
        var ticket: RateLimit.Ticket?
        /// Whether its turn came, but no request was sent: the operation was suspended, or took the request back.
        var missedTurn = false
        /// The last attempt whose token became stale; a second one of the same attempt is used nevertheless.
        var staleAttempt = 0
        var isForgotten = false
    }

    /// The limit that was set for the operation.
    ///
    /// Without one, the limit of the session applies.
    let limit: RateLimit?
    private let state = Locked(State())

    init(_ limit: RateLimit?) {
        self.limit = limit
    }

    var rank: Int { AttemptRank.rate }

    func clear(
        _ request: NetworkRequest, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptClearance) -> Void
    ) {
        let configuration = host.exchangeOfAttempts?.configuration
        guard let limit = limit ?? configuration?.rateLimit else { return answer(.go(request)) }
        guard configuration?.cache == nil || !CacheDecision.mayAnswer(request.method) else {
            return answer(.go(request.with(RatePass(limit))))
        }
        var (token, isAhead) = keptToken(limit, request.origin, host)
        if token == nil {
            isAhead = isAhead || host.networkAttempts.isForRefresh
            let turns = TurnTaking()
            let admission = limit.take(for: request.origin, isAhead: isAhead) { [self, weak host] token in
                keep(token, isSuspended: host?.networkAttempts.isSuspended ?? true)
                turns.second { answer(.again) }
            }
            switch admission {
            case .granted(let granted): token = granted
            case .waits(let ticket, let time):
                keep(ticket)
                return turns.first { answer(.hold(.rateLimit(limit, time))) }
            }
        }
        let pass = RatePass(limit, token)
        // That of a round that was overtaken is not lost.
        let old = state.withLock { state in state.isForgotten ? pass : exchange(&state.pass, with: pass) }
        old?.withdraw()?.giveBack()
        answer(.go(request.with(pass)))
    }

    /// The token that the operation has already, and whether it goes before others that wait.
    private func keptToken(
        _ limit: RateLimit, _ origin: RequestOrigin, _ host: any AttemptHost
    ) -> (token: RateLimit.Token?, isAhead: Bool) {
        let attempt = host.attemptCount
        let (granted, pass, ticket, missedTurn, mayBeStale) = state.withLock { state in
            let left = state
            (state.token, state.pass, state.ticket, state.missedTurn) = (nil, nil, nil, false)
            return (left.token, left.pass, left.ticket, left.missedTurn, left.staleAttempt != attempt)
        }
        _ = ticket?.leave()
        // The last request was made again before it was sent, or its turn came.
        var (kept, isAhead): (RateLimit.Token?, Bool) = (nil, missedTurn)
        for token in [pass?.withdraw(), granted].compactMap(\.self) {
            if kept == nil, token.isGood(for: origin, of: limit) {
                // Since then the limit may have given all its tokens to others: the wait for a slot took too long.
                guard mayBeStale, token.isStale else {
                    kept = token
                    continue
                }
                isAhead = true
                state.withLock { $0.staleAttempt = attempt }
            }
            token.giveBack()
        }
        return (kept, isAhead)
    }

    /// The turn of the operation came.
    ///
    /// While it is suspended, others may have the token.
    private func keep(_ token: RateLimit.Token, isSuspended: Bool) {
        let unused: RateLimit.Token? = state.withLock { state in
            if state.isForgotten { return token }
            state.missedTurn = isSuspended
            return isSuspended ? token : exchange(&state.token, with: token)
        }
        // The next one may be suspended as well: no recursion from one to the next.
        if let unused { DispatchQueue.global().async { unused.giveBack() } }
    }

    /// The request was made, but taken back before it was sent: when it is made again, it goes before others that wait.
    func goNext() { state.withLock { $0.missedTurn = true } }

    private func keep(_ ticket: RateLimit.Ticket) {
        let isForgotten = state.withLock { state in
            if !state.isForgotten { state.ticket = ticket }
            return state.isForgotten
        }
        if isForgotten { _ = ticket.leave() }
    }

    func forget() {
        let left = state.withLock { state in exchange(&state, with: State(isForgotten: true)) }
        _ = left.ticket?.leave()
        left.token?.giveBack()
        left.pass?.withdraw()?.giveBack()
    }
}

extension NetworkAttempts {
    fileprivate var isSuspended: Bool { state.withLock { $0.machine.isSuspended } }

    /// Adds a gate if the session of the operation limits the rate of its requests.
    func noteRateLimit(of host: any AttemptHost) {
        guard RateLimit.isUsedBySessions.load(ordering: .relaxed),
            host.exchangeOfAttempts?.configuration.rateLimit != nil, gate(of: RateLimitGate.self) == nil
        else { return }
        set(gate: RateLimitGate(nil))
    }
}

extension AttemptRank {
    /// The rate of requests is limited.
    ///
    /// This gate is the last one, so that no request takes a token and is then held back.
    package static let rate = 35
}

extension WaitReason {
    fileprivate static func rateLimit(_ limit: RateLimit, _ time: Duration?) -> WaitReason {
        guard let time else { return WaitReason(.rateLimit, "waiting for the rate limit of \(limit)") }
        let tenths = time.saturatedNanoseconds / 100_000_000
        return WaitReason(.rateLimit, "waiting \(tenths / 10).\(tenths % 10) s for the rate limit of \(limit)")
    }
}

// To be set before the start.
extension AnyNetworkOperation {
    /// The limit on how many requests the operation sends in a time, together with all that share the limit.
    ///
    /// The default is `nil`, so that the limit of the session applies if it has one. ``NetworkBase/rateLimit`` sets the limit
    /// for the operations of a service. See ``RateLimit``.
    public var rateLimit: RateLimit? {
        get { networkAttempts.gate(of: RateLimitGate.self)?.limit }
        set {
            guard maySet("rate limit") else { return }
            networkAttempts.set(gate: newValue.map(RateLimitGate.init))
        }
    }
}
