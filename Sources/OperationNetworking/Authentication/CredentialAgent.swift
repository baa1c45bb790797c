// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

/// An agent that adds credentials to the requests of one operation, and pauses the operation if a credential is
/// rejected.
final class CredentialAgent: AttemptPolicy, @unchecked Sendable {
    // Sendable: all mutable state is behind a lock.

    private struct State {
        /// The credential of the request that is being prepared.
        var used: (realm: AuthenticationRealm, version: Int)?
        /// The credential with which an attempt was sent, whose response may arrive while the next attempt is
        /// prepared.
        var sent: Sent?
        /// The last response that a realm examined, and its verdict, so that each response is examined once.
        var judged: (attempt: Int, head: ResponseHead, isRejected: Bool)?
        /// The realms whose credentials the user adds to the request.
        var without: [UInt64] = []
        /// The version of each realm's credential at the first of consecutive rejections.
        var rejections: [ObjectIdentifier: Int] = [:]
        /// The only origins that get the credentials of realms without origins, or `nil` for any origin.
        var allowedOrigins: [RequestOrigin]?
    }

    /// The number of an attempt, and the realm and version of the credential with which it was sent.
    private typealias Sent = (number: Int, realm: AuthenticationRealm, version: Int)

    let realms: [AuthenticationRealm]
    /// The refreshes on whose behalf the operation was created.
    private let scope: RefreshScope
    private let state = Locked(State())
    private let wait = GateWait()

    init(_ realms: [AuthenticationRealm], for scope: RefreshScope = .current) {
        self.realms = realms
        self.scope = scope
    }

    override func pass(_ request: NetworkRequest, for owner: any AttemptOwner) throws(NetworkError) -> NetworkRequest? {
        state.withLock { $0.used = nil }
        if let error = realms.lazy.compactMap(\.errorOfOrigin).first { throw error }
        guard let realm = realm(for: request) else { return request }
        // Usually there is a credential, so that nothing must be stored for a wait.
        guard let (credential, version) = realm.current() else { return nil }
        return try put(credential, version, realm, request)
    }

    /// Returns the realm whose credential the request needs, if there is one.
    private func realm(for request: NetworkRequest) -> AuthenticationRealm? {
        let (allowedOrigins, without) = state.withLock { ($0.allowedOrigins, $0.without) }
        let realm = realms.first {
            $0.covers(request.origin, allowedOrigins: allowedOrigins) && !scope.exempts(from: $0.number)
        }
        guard let realm, !without.contains(realm.number) else { return nil }
        return realm
    }

    override func clear(_ request: NetworkRequest, for owner: any AttemptOwner, _ answer: @escaping GateAnswer) {
        guard let realm = realm(for: request) else { return answer(.go(request)) }
        let order = NotificationOrder()
        let waiter = AuthenticationRealm.Waiter(owner) { error in
            order.second { answer(error.map { .refuse($0) } ?? .again) }
        }
        switch realm.want(waiter, in: scope) {
        case .give(let credential, let version):
            do throws(NetworkError) {
                answer(.go(try put(credential, version, realm, request)))
            } catch {
                answer(.refuse(error))
            }
        case .wait(let ticket):
            wait.begin(order, leave: { realm.leave(ticket) }) { answer(.hold(realm.reason)) }
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

    override func begins(_ number: Int, _ request: NetworkRequest, of owner: any AttemptOwner) -> NetworkError? {
        state.withLock { state in
            state.sent = state.used.map { (number, $0.realm, $0.version) }
        }
        return nil
    }

    override func maySend(_ number: Int) -> Bool {
        let sent = state.withLock { $0.sent?.number == number ? $0.sent : nil }
        return sent.map { $0.realm.maySend($0.version) } ?? true
    }

    override func refuses(_ head: ResponseHead, of request: NetworkRequest, _ number: Int) -> Bool {
        rejected(head, of: request, number) != nil
    }

    /// Returns the rejected credential if the response rejects it and belongs to the last attempt.
    ///
    /// The realm is notified of the rejection as soon as it is known. So requests that begin before the response is
    /// complete do not get this credential.
    private func rejected(
        _ head: ResponseHead, of request: NetworkRequest, _ number: Int, isSaidByBody: Bool = false
    ) -> Sent? {
        let (sent, judged) = state.withLock { ($0.sent, $0.judged) }
        guard let sent, sent.number == number else { return nil }
        if let judged, judged.attempt == number, judged.head.isSameResponse(as: head),
            judged.isRejected || !isSaidByBody
        {
            return judged.isRejected ? sent : nil
        }
        let isRejected = sent.realm.isRejected(head, request, isSaidByBody: isSaidByBody)
        let first: Int? = state.withLock { state in
            if state.sent?.number == number { state.judged = (number, head, isRejected) }
            return isRejected ? state.rejections[ObjectIdentifier(sent.realm)] : nil
        }
        guard isRejected else { return nil }
        record(sent.realm, sent.realm.recordRejection(sent.version, after: first, scope))
        return sent
    }

    private func record(_ realm: AuthenticationRealm, _ present: Int) {
        state.withLock { state in
            let first = state.rejections[ObjectIdentifier(realm)] ?? present
            state.rejections[ObjectIdentifier(realm)] = first
        }
    }

    override func decide(_ attempt: FailedAttempt, for owner: any AttemptOwner, _ answer: @escaping PolicyAnswer) {
        // Usually the realm has already seen the headers. An evaluator may pass on the error of another request,
        // which does not concern this credential.
        let isSaidByBody =
            attempt.error.code == .credentialRejected && attempt.error.request == attempt.request?.summary
        guard let head = attempt.head, let request = attempt.request,
            let sent = rejected(head, of: request, attempt.number, isSaidByBody: isSaidByBody)
        else {
            state.withLock { $0.rejections = [:] }
            return answer(nil)
        }
        let (realm, version) = (sent.realm, sent.version)
        guard request.body.canBeSentNow else {
            return answer(AttemptPolicyDecision(.fail, error: Self.unrepeatable(attempt.error)))
        }
        let order = NotificationOrder()
        let fail: @Sendable (NetworkError) -> Void = { [weak owner] error in
            let error = Self.completed(error, attempt.error)
            let end: @Sendable (AttemptPolicyDecision?) -> Void = { decision in
                answer(decision ?? AttemptPolicyDecision(.fail, note: "\(error)", error: error))
            }
            // If the network is unavailable, the operation can wait for it.
            guard let owner, let offline = owner.networkAttempts.policies?[.offline] else {
                return end(nil)
            }
            let changed = attempt.with(error)
            DispatchQueue.global().async { offline.decide(changed, for: owner, end) }
        }
        let waiter = AuthenticationRealm.Waiter(owner) { error in
            order.second {
                if let error { return fail(error) }
                answer(AttemptPolicyDecision(.replay(after: .zero), note: "a new credential arrived: sending again"))
            }
        }
        let first = state.withLock { $0.rejections[ObjectIdentifier(realm)] }
        switch realm.reject(version, after: first, waiter, in: scope) {
        case .give, .replay:
            answer(
                AttemptPolicyDecision(.replay(after: .zero), note: "the credential was replaced before: sending again"))
        case .wait(let ticket):
            wait.begin(order, leave: { realm.leave(ticket) }) {
                answer(AttemptPolicyDecision(.pause(realm.reason), note: "rejected: paused, \(realm.reason)"))
            }
        case .fail(let failure): fail(realm.error(failure))
        case .refuse:
            answer(AttemptPolicyDecision(.fail, error: isSaidByBody ? attempt.error : realm.rejection(attempt.error)))
        }
    }

    /// Returns a closure to call when the network returns, which makes earlier failures of a refresh obsolete.
    func outage() -> @Sendable () -> Void {
        let moments = realms.map { ($0, $0.options.clock.now) }
        return { for (realm, moment) in moments { realm.forgetFailure(before: moment) } }
    }

    /// Leaves the credential of a realm to the user from now on.
    func skipCredential(_ realm: AuthenticationRealm) { state.withLock { $0.without.append(realm.number) } }

    override func keepCredentials(at origin: RequestOrigin?) {
        state.withLock { $0.allowedOrigins = origin.map { [$0] } ?? [] }
    }

    override func forget() { wait.end() }

    /// Returns the error with the information about the response that caused it.
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
                "The server rejected the credential, and the request cannot be sent again with a new one, because its "
                + "body can be read only once. Send data, a file, or a stream that can be created again.",
            request: response.request)
        error.status = response.status
        error.cause = response
        return error
    }
}

// Set these properties before the operation starts.
extension AnyNetworkOperation {
    /// The realms that can add a credential to the operation's requests.
    package var realms: [AuthenticationRealm] {
        get { (networkAttempts.policies?[.credential] as? CredentialAgent)?.realms ?? [] }
        set {
            guard maySet("list of realms") else { return }
            networkAttempts.set(newValue.isEmpty ? nil : CredentialAgent(newValue), bySetting: .realms)
        }
    }

    /// Adds an authenticator, which adds its credential to the operation's requests.
    ///
    /// If you add several authenticators, a request gets the credential of the first one that applies to the request's
    /// origin. Call this method before the operation starts. If neither the operation nor its ``NetworkBase`` has an
    /// authenticator, the operation uses the authenticators of its group.
    ///
    /// - Parameter authenticator: The authenticator to add.
    public func authenticate<Credential>(by authenticator: Authenticator<Credential>) {
        realms.append(authenticator.realm)
    }
}

extension NetworkAttempts {
    func set(_ agent: CredentialAgent?, bySetting setting: ExplicitPolicies = []) {
        changePolicies(bySetting: setting) { exchange(&$0[.credential], with: agent) }
    }
}

extension ResponseHead {
    /// Returns whether both values are headers of one response, because the length of a file is reported only at its
    /// end.
    fileprivate func isSameResponse(as other: ResponseHead) -> Bool {
        if self == other { return true }
        guard status == other.status, url == other.url else { return false }
        var (mine, theirs) = (headers, other.headers)
        mine.remove("Content-Length")
        theirs.remove("Content-Length")
        return mine == theirs
    }
}
