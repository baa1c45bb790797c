// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Has one operation wait while the network is gone: before it sends, and after it failed because of that.
final class OfflineAgent: AttemptPolicy, AttemptGate {
    private struct State {
        var ticket: ParkingLot.Ticket?
        /// How often it waited, and for how long.
        var waits = 0
        var waited = Duration.zero
        /// How often a download had got somewhere by then: each time is a new beginning.
        var advances = 0
        /// A wait was ended early, since the operation was suspended: it waits again if need be.
        var wasLetGo = false
        /// Of which time without a network the user was told.
        var toldOutage: Int?
        var isForgotten = false
    }

    let policy: OfflinePolicy
    private let state = Locked(State())

    init(_ policy: OfflinePolicy) {
        self.policy = policy
    }

    var rank: Int { AttemptRank.connectivity }

    private var isOffline: Bool { policy.lot.monitor.connectivity.isOffline }

    func pass(_ request: NetworkRequest, for host: any AttemptHost) -> NetworkRequest? {
        guard policy.beforeSending == .send || !isOffline else { return nil }
        state.withLock { $0.wasLetGo = false }
        return request
    }

    func clear(
        _ request: NetworkRequest, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptClearance) -> Void
    ) {
        let mayFail = policy.beforeSending == .fail && !state.withLock { exchange(&$0.wasLetGo, with: false) }
        guard policy.beforeSending != .send, isOffline, policy.concerns(request) else { return answer(.go(request)) }
        if mayFail { return answer(.refuse(.offline(.offline, policy, after: nil))) }
        let turns = TurnTaking()
        let refusal = wait(for: host) { [policy] end in
            turns.second {
                answer(end == .released ? .again : .refuse(.offline(.offlineTooLong, policy, after: nil)))
            }
        }
        turns.first { answer(refusal.map { .refuse(.offline($0, policy, after: nil)) } ?? .hold(.network)) }
        if refusal == nil { tell(host) }
    }

    func decide(
        _ report: AttemptReport, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptAnswer?) -> Void
    ) {
        // What this agent has decided before is not decided by others.
        if report.error.isAboutWaiting { return answer(AttemptAnswer(.fail)) }
        guard let request = report.request, let rule = policy.rule(for: report.error, of: request), isOffline,
            policy.concerns(request)
        else { return answer(nil) }
        guard request.body.canBeSentNow else { return answer(fail(.bodyNotRepeatable, after: report.error)) }
        state.withLock { state in
            if exchange(&state.advances, with: report.advances) != report.advances {
                (state.waits, state.waited) = (0, .zero)
            }
        }
        let turns = TurnTaking()
        let refusal = wait(for: host) { [weak self] end in
            let verdict = self?.verdict(end, after: report.error)
            turns.second { answer(verdict) }
        }
        if let refusal { return answer(fail(refusal, after: report.error)) }
        let note = "attempt \(report.number) failed (\(report.error.code)): waits for the network. \(rule.reason)"
        turns.first { answer(AttemptAnswer(.park(.network), note: note)) }
        tell(host)
    }

    /// The user learns that it waits; not again if it only had been suspended in between.
    private func tell(_ host: any AttemptHost) {
        let outage = policy.lot.outage
        let isNews = state.withLock { exchange(&$0.toldOutage, with: outage) != outage }
        if isNews { host.tellOfWaitForNetwork() }
    }

    private func verdict(_ end: ParkingLot.End, after failure: NetworkError) -> AttemptAnswer {
        switch end {
        case .released:
            AttemptAnswer(.replay(after: .zero), note: isOffline ? "was suspended: looks again" : "the network is back")
        case .limitReached: fail(.offlineTooLong, after: failure)
        }
    }

    private func fail(_ code: NetworkError.Code, after failure: NetworkError) -> AttemptAnswer {
        AttemptAnswer(.fail, note: "no more, \(code)", error: .offline(code, policy, after: failure))
    }

    /// Begins to wait, or says why not.
    private func wait(
        for host: any AttemptHost, _ body: @escaping @Sendable (ParkingLot.End) -> Void
    ) -> NetworkError.Code? {
        let left: Duration?? = state.withLock { state in
            guard state.waits < policy.mostWaits else { return .none }
            state.waits += 1
            return .some(policy.longestWait.map { max($0 - state.waited, .zero) })
        }
        guard let left else { return .offlineTooOften }
        let lot = policy.lot
        // What failed for want of a network says nothing of the credential.
        let endOutage = host.networkAttempts.policy(of: CredentialAgent.self)?.outage()
        let ticket = lot.park(atMost: left) { [weak self, weak host] end, duration in
            // What is suspended does not run out of time. Once it is resumed it looks again, and waits again if need be.
            if end == .limitReached, host?.state == .suspended {
                self?.letGo()
                endOutage?()
                return body(.released)
            }
            self?.note(duration)
            if end == .released { endOutage?() }
            body(end)
        }
        guard let ticket else { return .tooManyOffline }
        let isForgotten = state.withLock { state in
            state.ticket = ticket
            return state.isForgotten
        }
        if isForgotten { lot.leave(ticket) }
        return nil
    }

    private func note(_ duration: Duration) { state.withLock { $0.waited += duration } }

    /// The wait that is ended early does not count.
    private func letGo() {
        state.withLock { state in
            state.waits -= 1
            state.wasLetGo = true
        }
    }

    func forget() {
        let ticket = state.withLock { state in
            state.isForgotten = true
            return state.ticket
        }
        if let ticket { policy.lot.leave(ticket) }
    }
}

extension WaitReason {
    fileprivate static let network = WaitReason(.network, "waiting for the network")
}
