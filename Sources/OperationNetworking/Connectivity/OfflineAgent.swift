// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// An agent that makes one operation wait for the network, before it sends a request and after a failure that the
/// missing network caused.
final class OfflineAgent: AttemptPolicy, @unchecked Sendable {
    // Sendable: all mutable state is behind a lock.

    private struct State {
        /// The number and the total duration of the operation's waits.
        var waits = 0
        var waited = Duration.zero
        /// The number of times that the download had made progress.
        ///
        /// Each time, the limits of the waits start again.
        var advances = 0
        /// Whether a wait ended early because the operation was suspended.
        ///
        /// The operation waits again if necessary.
        var wasReleased = false
        /// The number of the outage that was reported to the user.
        var reportedOutage: Int?
    }

    let policy: OfflinePolicy
    private let state = Locked(State())
    private let wait = GateWait()

    init(_ policy: OfflinePolicy) {
        self.policy = policy
    }

    private var isOffline: Bool { policy.waiting.monitor.connectivity.isOffline }

    override func pass(_ request: NetworkRequest, for owner: any AttemptOwner) -> NetworkRequest? {
        guard policy.beforeSending == .send || !isOffline else { return nil }
        state.withLock { $0.wasReleased = false }
        return request
    }

    override func clear(_ request: NetworkRequest, for owner: any AttemptOwner, _ answer: @escaping GateAnswer) {
        let mayFail = policy.beforeSending == .fail && !state.withLock { exchange(&$0.wasReleased, with: false) }
        guard policy.beforeSending != .send, isOffline, policy.concerns(request) else { return answer(.go(request)) }
        if mayFail { return answer(.refuse(.offline(.offline, policy, after: nil))) }
        let refusal = wait(for: owner) {
            answer(.hold(.network))
        } ended: { [self] end in
            answer(end == .released ? .again : .refuse(.offline(.offlineTooLong, policy, after: nil)))
        }
        if let refusal { answer(.refuse(.offline(refusal, policy, after: nil))) }
    }

    override func decide(_ attempt: FailedAttempt, for owner: any AttemptOwner, _ answer: @escaping PolicyAnswer) {
        // The agent made this decision itself, so no other policy may change it.
        if attempt.error.isAboutWaiting { return answer(AttemptPolicyDecision(.fail)) }
        guard let request = attempt.request, let rule = policy.rule(for: attempt.error, of: request), isOffline,
            policy.concerns(request)
        else { return answer(nil) }
        guard request.body.canBeSentNow else { return answer(fail(.bodyNotRepeatable, after: attempt.error)) }
        state.withLock { state in
            if exchange(&state.advances, with: attempt.advances) != attempt.advances {
                (state.waits, state.waited) = (0, .zero)
            }
        }
        let note = "attempt \(attempt.number) failed (\(attempt.error.code)): waiting for the network. \(rule.reason)"
        let refusal = wait(for: owner) {
            answer(AttemptPolicyDecision(.pause(.network), note: note))
        } ended: { [self] end in
            answer(verdict(end, after: attempt.error))
        }
        if let refusal { answer(fail(refusal, after: attempt.error)) }
    }

    /// Reports the wait to the user, but not again if the operation was only suspended in between.
    private func notify(_ owner: any AttemptOwner) {
        let outage = policy.waiting.outage
        let hasChanged = state.withLock { exchange(&$0.reportedOutage, with: outage) != outage }
        if hasChanged { owner.reportWaitForNetwork() }
    }

    private func verdict(_ end: GateEnd, after failure: NetworkError) -> AttemptPolicyDecision {
        guard end == .released else { return fail(.offlineTooLong, after: failure) }
        let isSuspended = state.withLock { $0.wasReleased }
        return AttemptPolicyDecision(
            .replay(after: .zero),
            note: isSuspended
                ? "the operation was suspended: checking the network again" : "the network is available again")
    }

    private func fail(_ code: NetworkError.Code, after failure: NetworkError) -> AttemptPolicyDecision {
        AttemptPolicyDecision(.fail, note: "no other attempt, \(code)", error: .offline(code, policy, after: failure))
    }

    /// Begins to wait, or returns the reason not to.
    private func wait(
        for owner: any AttemptOwner, held: () -> Void, ended: @escaping @Sendable (GateEnd) -> Void
    ) -> NetworkError.Code? {
        let left: Duration?? = state.withLock { state in
            guard state.waits < policy.mostWaits else { return .none }
            state.waits += 1
            return .some(policy.longestWait.map { max($0 - state.waited, .zero) })
        }
        guard let left else { return .offlineTooOften }
        let (waiting, order) = (policy.waiting, NotificationOrder())
        // A failure caused by a missing network says nothing about the credential.
        let endOutage = (owner.networkAttempts.policies?[.credential] as? CredentialAgent)?.outage()
        // The gate keeps this object alive until the wait ends or the operation leaves the gate.
        let ticket = waiting.enter(atMost: left) { [self, weak owner] end, duration in
            // A suspended operation does not run out of time. When it resumes, it checks the network and waits again if
            // necessary.
            if end == .limitReached, owner?.state == .suspended {
                release()
                endOutage?()
                return order.second { ended(.released) }
            }
            record(duration)
            if end == .released { endOutage?() }
            order.second { ended(end) }
        }
        guard let ticket else { return .tooManyOffline }
        wait.begin(order, leave: { waiting.leave(ticket) }, held: held)
        notify(owner)
        return nil
    }

    private func record(_ duration: Duration) { state.withLock { $0.waited += duration } }

    /// Records that a wait ended early and does not count.
    private func release() {
        state.withLock { state in
            state.waits -= 1
            state.wasReleased = true
        }
    }

    override func forget() { wait.end() }
}

extension NetworkAttempts {
    func set(_ policy: OfflinePolicy?, bySetting setting: ExplicitPolicies = []) {
        let agent = policy.map(OfflineAgent.init)
        changePolicies(bySetting: setting) { exchange(&$0[.offline], with: agent) }
    }
}

extension AttemptOwner {
    /// Notifies the handler and the delegates that the operation waits, unless the operation ends before the
    /// notification.
    func reportWaitForNetwork() {
        notify(offlineHandler, unless: { [self] in networkAttempts.isEnded || isFinishedOrCancelled }) {
            [self] delegate in
            delegate.networkOperationWaitsForNetwork(self)
        }
    }
}

extension WaitReason {
    fileprivate static let network = WaitReason(.network, "waiting for the network")
}
