// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

/// Gets credentials for the attempts of one operation, and postpones it where they are rejected.
final class CredentialAgent: AttemptGate, AttemptPolicy {
    private struct State {
        /// What the present attempt was sent with.
        var used: (realm: AuthenticationRealm, version: Int)?
        /// How many credentials a realm had had when one was rejected first, since something else came of an attempt.
        var rejections: [ObjectIdentifier: Int] = [:]
        /// Where it waits.
        var place: (realm: AuthenticationRealm, ticket: UInt64)?
        var isForgotten = false
    }

    let realms: [AuthenticationRealm]
    /// For which refreshes the operation was made.
    private let scope: RefreshScope
    private let state = Locked(State())

    init(_ realms: [AuthenticationRealm]) {
        self.realms = realms
        scope = RefreshScope.current
    }

    var rank: Int { AttemptRank.credential }

    func pass(_ request: NetworkRequest, for host: any AttemptHost) throws(NetworkError) -> NetworkRequest? {
        state.withLock { $0.used = nil }
        if let error = realms.lazy.compactMap(\.errorOfOrigin).first { throw error }
        let realm = realms.first { $0.covers(request.origin) && !scope.exempts(from: $0) }
        guard let realm else { return request }
        // As a rule there is one, and nothing has to be kept for a wait.
        guard let (credential, version) = realm.current() else { return nil }
        return try put(credential, version, realm, request)
    }

    func clear(
        _ request: NetworkRequest, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptClearance) -> Void
    ) {
        let realm = realms.first { $0.covers(request.origin) && !scope.exempts(from: $0) }
        guard let realm else { return answer(.go(request)) }
        let turns = TurnTaking()
        let waiter = AuthenticationRealm.Waiter(
            operation: host, scope: scope, goOn: { turns.second { answer(.again) } },
            fail: { error in turns.second { answer(.refuse(error)) } })
        switch realm.want(waiter) {
        case .give(let credential, let version):
            do throws(NetworkError) {
                answer(.go(try put(credential, version, realm, request)))
            } catch {
                answer(.refuse(error))
            }
        case .wait(let ticket):
            stand(in: realm, ticket)
            turns.first { answer(.hold(realm.reason)) }
        case .fail(let failure): answer(.refuse(realm.error(failure)))
        case .replay, .refuse: answer(.again)
        }
    }

    private func put(
        _ credential: any Sendable, _ version: Int, _ realm: AuthenticationRealm, _ request: NetworkRequest
    ) throws(NetworkError) -> NetworkRequest {
        do {
            let request = try realm.closures.apply(credential, request)
            state.withLock { $0.used = (realm, version) }
            return request
        } catch {
            throw NetworkError(error, phase: .checking)
        }
    }

    func refuses(_ head: ResponseHead, of request: NetworkRequest) -> Bool {
        let (used, first) = usedNow()
        guard let (realm, version) = used, realm.isRejected(head, request) else { return false }
        // Those that begin while the rest of this response comes do not get it any more.
        note(realm, realm.noteRejected(version, after: first, scope))
        return true
    }

    private func usedNow() -> (used: (realm: AuthenticationRealm, version: Int)?, first: Int?) {
        state.withLock { state in
            (state.used, state.used.flatMap { state.rejections[ObjectIdentifier($0.realm)] })
        }
    }

    private func note(_ realm: AuthenticationRealm, _ present: Int) {
        state.withLock { state in
            let first = state.rejections[ObjectIdentifier(realm)] ?? present
            state.rejections[ObjectIdentifier(realm)] = first
        }
    }

    func decide(
        _ report: AttemptReport, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptAnswer?) -> Void
    ) {
        guard let (realm, version) = usedNow().used, let head = report.head, let request = report.request,
            realm.isRejected(head, request)
        else {
            state.withLock { $0.rejections = [:] }
            return answer(nil)
        }
        // As a rule the realm learned of it with the head.
        if usedNow().first == nil { _ = refuses(head, of: request) }
        guard request.body.canBeSentAgain else {
            return answer(AttemptAnswer(.fail, error: Self.unrepeatable(report.error)))
        }
        let turns = TurnTaking()
        let fail: @Sendable (NetworkError) -> Void = { [weak host] error in
            let error = Self.completed(error, report.error)
            let end: @Sendable (AttemptAnswer?) -> Void = { said in
                answer(said ?? AttemptAnswer(.fail, note: "\(error)", error: error))
            }
            // Where the network is gone, that may be waited for.
            guard let host, let offline = host.networkAttempts.policy(of: OfflineAgent.self) else { return end(nil) }
            DispatchQueue.global().async { offline.decide(report.with(error), for: host, end) }
        }
        let waiter = AuthenticationRealm.Waiter(
            operation: host, scope: scope,
            goOn: {
                turns.second { answer(AttemptAnswer(.replay(after: .zero), note: "there is a new credential: again")) }
            },
            fail: { error in turns.second { fail(error) } })
        switch realm.reject(version, after: usedNow().first, waiter) {
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

    /// What is to be done when a network returns that is gone now: failures of before count for nothing then.
    func outage() -> @Sendable () -> Void {
        let moments = realms.map { ($0, $0.options.clock.now) }
        return { for (realm, moment) in moments { realm.forgetFailure(before: moment) } }
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
        error.isUnsent = response.isUnsent
        error.retryAfter = response.retryAfter
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
