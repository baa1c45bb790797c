// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Gets credentials for the attempts of one operation, and postpones it where they are rejected.
final class CredentialAgent: AttemptGate, AttemptPolicy {
    private struct State {
        /// What the present attempt was sent with.
        var used: (realm: AuthenticationRealm, version: Int)?
        /// Whether the last attempt was postponed, so that this one has a fresh credential.
        var wasRejected = false
        /// Where it waits.
        var place: (realm: AuthenticationRealm, ticket: UInt64)?
        var isForgotten = false
    }

    let realms: [AuthenticationRealm]
    /// Those for whose refresh the operation was made.
    private let exempt: Set<ObjectIdentifier>
    private let state = Locked(State())

    init(_ realms: [AuthenticationRealm]) {
        self.realms = realms
        exempt = RefreshScope.realms
    }

    var rank: Int { AttemptRank.credential }

    func clear(
        _ request: NetworkRequest, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptClearance) -> Void
    ) {
        state.withLock { $0.used = nil }
        let realm = realms.first { $0.covers(request.origin) && !exempt.contains(ObjectIdentifier($0)) }
        guard let realm else { return answer(.go(request)) }
        // As a rule there is one, and nothing has to be kept for a wait.
        if let (credential, version) = realm.current() { return answer(put(credential, version, realm, request)) }
        let turns = TurnTaking()
        let waiter = AuthenticationRealm.Waiter(
            operation: host, goOn: { turns.second { answer(.again) } },
            fail: { error in turns.second { answer(.refuse(error)) } })
        switch realm.want(waiter) {
        case .give(let credential, let version): answer(put(credential, version, realm, request))
        case .wait(let ticket):
            stand(in: realm, ticket)
            turns.first { answer(.hold(realm.reason)) }
        case .fail(let failure): answer(.refuse(realm.error(failure)))
        case .replay, .refuse: answer(.again)
        }
    }

    private func put(
        _ credential: any Sendable, _ version: Int, _ realm: AuthenticationRealm, _ request: NetworkRequest
    ) -> AttemptClearance {
        do {
            let request = try realm.closures.apply(credential, request)
            state.withLock { $0.used = (realm, version) }
            return .go(request)
        } catch {
            return .refuse(NetworkError(error, phase: .checking))
        }
    }

    func decide(
        _ report: AttemptReport, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptAnswer?) -> Void
    ) {
        let (used, isSecond) = state.withLock { ($0.used, $0.wasRejected) }
        guard let (realm, version) = used, let head = report.head, let request = report.request,
            realm.isRejected(head, request)
        else {
            state.withLock { $0.wasRejected = false }
            return answer(nil)
        }
        guard request.body.canBeSentAgain else {
            return answer(AttemptAnswer(.fail, error: Self.unrepeatable(report.error)))
        }
        state.withLock { $0.wasRejected = true }
        let turns = TurnTaking()
        let fail: @Sendable (NetworkError) -> Void = { error in
            answer(AttemptAnswer(.fail, note: "\(error)", error: Self.completed(error, report.error)))
        }
        let waiter = AuthenticationRealm.Waiter(
            operation: host,
            goOn: {
                turns.second { answer(AttemptAnswer(.replay(after: .zero), note: "there is a new credential: again")) }
            },
            fail: { error in turns.second { fail(error) } })
        switch realm.reject(version, isSecond: isSecond, waiter) {
        case .give, .replay:
            answer(AttemptAnswer(.replay(after: .zero), note: "the credential was renewed meanwhile: again"))
        case .wait(let ticket):
            stand(in: realm, ticket)
            turns.first {
                answer(AttemptAnswer(.park(realm.reason), note: "rejected: postponed, \(realm.reason)"))
            }
        case .fail(let failure): fail(realm.error(failure))
        case .refuse: answer(AttemptAnswer(.fail, error: realm.rejection(report.error)))
        }
    }

    func forget() {
        let place = state.withLock { state in
            state.isForgotten = true
            return exchange(&state.place, with: nil)
        }
        place?.realm.leave(place?.ticket ?? 0)
    }

    private func stand(in realm: AuthenticationRealm, _ ticket: UInt64) {
        let isForgotten = state.withLock { state in
            if !state.isForgotten { state.place = (realm, ticket) }
            return state.isForgotten
        }
        if isForgotten { realm.leave(ticket) }
    }

    /// What is known of the response that began it.
    private static func completed(_ error: NetworkError, _ response: NetworkError) -> NetworkError {
        var error = error
        error.request = response.request
        error.status = response.status
        error.bodyPrefix = response.bodyPrefix
        return error
    }

    private static func unrepeatable(_ response: NetworkError) -> NetworkError {
        var error = NetworkError(
            code: .bodyNotRepeatable, phase: response.phase,
            message:
                "The credential was rejected, and the request cannot be sent with a new one: its body can be read only "
                + "once. Send data or a file, or a stream that can be made anew.",
            request: response.request)
        error.status = response.status
        error.cause = response
        return error
    }
}

// To be set before the start.
extension AnyNetworkOperation {
    /// The realms whose credentials the operation uses: the first one that covers the place of a request.
    public var realms: [AuthenticationRealm] {
        get { networkAttempts.policy(of: CredentialAgent.self)?.realms ?? [] }
        set {
            let agent = newValue.isEmpty ? nil : CredentialAgent(newValue)
            networkAttempts.set(gate: agent)
            networkAttempts.set(agent)
        }
    }

    /// Lets the operation use the credential of that realm, too.
    public func authenticate<Credential>(by authenticator: Authenticator<Credential>) {
        realms.append(authenticator.realm)
    }
}

extension NetworkBase {
    /// Lets all operations of the service use the credential of that realm, too.
    public mutating func authenticate<Credential>(by authenticator: Authenticator<Credential>) {
        realms.append(authenticator.realm)
    }
}
