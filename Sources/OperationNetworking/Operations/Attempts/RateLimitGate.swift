// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore
import Synchronization

/// A gate that holds the requests of one operation until their rate limit has a token.
///
/// The operation releases its slot in the meantime. A request that follows from the operation's request, such as a
/// redirect, waits in the exchange instead. A request that a cache of the session may answer also waits in the
/// exchange, because a cached response takes no token.
final class RateLimitGate: AttemptPolicy, @unchecked Sendable {
    // Sendable: all mutable state is behind a lock.

    private struct State {
        /// The token for the next request.
        var token: RateLimit.Token?
        /// The pass of the last request.
        var pass: RatePass?
        /// The operation's position in the queue of the rate limit.
        var ticket: RateLimit.Ticket?
        /// Whether a token was available, but no request was sent, because the operation was suspended or withdrew
        /// the request.
        var missedTurn = false
        /// The last attempt whose token became stale.
        ///
        /// A second stale token in the same attempt is used nevertheless.
        var staleAttempt = 0
        var isForgotten = false
    }

    /// The limit that was set for the operation.
    ///
    /// If it is nil, the limit of the session applies.
    let limit: RateLimit?
    private let state = Locked(State())

    init(_ limit: RateLimit?) {
        self.limit = limit
    }

    override func pass(_ request: NetworkRequest, for owner: any AttemptOwner) -> NetworkRequest? { nil }

    override func clear(_ request: NetworkRequest, for owner: any AttemptOwner, _ answer: @escaping GateAnswer) {
        let configuration = owner.exchangeOfAttempts?.configuration
        guard let limit = limit ?? configuration?.rateLimit else { return answer(.go(request)) }
        guard configuration?.cache == nil || !CacheDecision.mayAnswer(request.method) else {
            return answer(.go(request.with(RatePass(limit))))
        }
        var (token, isAhead) = keptToken(limit, request.origin, owner)
        if token == nil {
            isAhead = isAhead || owner.networkAttempts.isForRefresh
            let turns = NotificationOrder()
            let admission = limit.take(for: request.origin, isAhead: isAhead) { [self, weak owner] token in
                keep(token, isSuspended: owner?.networkAttempts.isSuspended ?? true)
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
        // The token of an overtaken round is returned.
        let old = state.withLock { state in state.isForgotten ? pass : exchange(&state.pass, with: pass) }
        old?.withdraw()?.giveBack()
        answer(.go(request.with(pass)))
    }

    /// Returns the token that the operation already has, and whether the operation precedes others that wait.
    private func keptToken(
        _ limit: RateLimit, _ origin: RequestOrigin, _ owner: any AttemptOwner
    ) -> (token: RateLimit.Token?, isAhead: Bool) {
        let attempt = owner.attemptCount
        let (granted, pass, ticket, missedTurn, mayBeStale) = state.withLock { state in
            let left = state
            (state.token, state.pass, state.ticket, state.missedTurn) = (nil, nil, nil, false)
            return (left.token, left.pass, left.ticket, left.missedTurn, left.staleAttempt != attempt)
        }
        _ = ticket?.leave()
        // The last request was created again before it was sent, or a token became available.
        var (kept, isAhead): (RateLimit.Token?, Bool) = (nil, missedTurn)
        for token in [pass?.withdraw(), granted].compactMap(\.self) {
            if kept == nil, token.isGood(for: origin, of: limit) {
                // The wait for a slot took so long that the limit may have assigned all its tokens to others in the
                // meantime.
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

    /// Stores a token that became available.
    ///
    /// While the operation is suspended, the token goes to others.
    private func keep(_ token: RateLimit.Token, isSuspended: Bool) {
        let unused: RateLimit.Token? = state.withLock { state in
            if state.isForgotten { return token }
            state.missedTurn = isSuspended
            return isSuspended ? token : exchange(&state.token, with: token)
        }
        // The next operation may be suspended as well, so this avoids a recursion.
        if let unused { DispatchQueue.global().async { unused.giveBack() } }
    }

    /// Records that the request was withdrawn before it was sent, so that its successor precedes others that wait.
    override func takenBack(_ number: Int) { state.withLock { $0.missedTurn = true } }

    private func keep(_ ticket: RateLimit.Ticket) {
        let isForgotten = state.withLock { state in
            if !state.isForgotten { state.ticket = ticket }
            return state.isForgotten
        }
        if isForgotten { _ = ticket.leave() }
    }

    override func forget() {
        let left = state.withLock { state in exchange(&state, with: State(isForgotten: true)) }
        _ = left.ticket?.leave()
        left.token?.giveBack()
        left.pass?.withdraw()?.giveBack()
    }
}

extension NetworkAttempts {
    fileprivate var isSuspended: Bool { state.withLock { $0.machine.isSuspended } }

    /// Adds a gate if the session of the operation limits the rate of its requests.
    func addRateLimitGate(of owner: any AttemptOwner) {
        guard owner.exchangeOfAttempts?.configuration.rateLimit != nil, policies?[.rate] == nil else { return }
        changePolicies { $0[.rate] = RateLimitGate(nil) }
    }
}

extension WaitReason {
    fileprivate static func rateLimit(_ limit: RateLimit, _ time: Duration?) -> WaitReason {
        let text = " for the rate limit of \(limit)"
        return time.map { waiting(.rateLimit, $0, text) } ?? WaitReason(.rateLimit, "waiting\(text)")
    }
}

// Options to set before the start.
extension AnyNetworkOperation {
    /// The limit on the number of requests that the operation sends in a period of time.
    ///
    /// The default is `nil`, which applies only the session's limit, if the session has one. Operations with the same
    /// ``RateLimit`` object share the limit. Set this property before the operation starts. To limit all operations of
    /// a service, set ``NetworkBase/rateLimit``.
    public var rateLimit: RateLimit? {
        get { (networkAttempts.policies?[.rate] as? RateLimitGate)?.limit }
        set {
            guard maySet("rate limit") else { return }
            networkAttempts.changePolicies { exchange(&$0[.rate], with: newValue.map(RateLimitGate.init)) }
        }
    }
}
