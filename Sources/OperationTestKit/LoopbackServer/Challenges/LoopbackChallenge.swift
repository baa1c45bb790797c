// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Asks for credentials before a request is answered, and checks them.
///
/// ```swift
/// import OperationTestKit
///
/// let server = try LoopbackServer()
/// let challenge = LoopbackChallenge.digest(realm: "test", user: "u", password: "p")
/// server.route("/secret") { request in challenge.answer(to: request, granting: .text("open")) }
/// ```
public final class LoopbackChallenge: Sendable {
    enum Scheme: Sendable {
        case basic(user: String, password: String)
        case bearer(isValid: @Sendable (String) -> Bool)
        case digest(DigestCheck)
    }

    enum Verdict {
        case granted
        case stale
        case refused
    }

    private let scheme: Scheme
    private let realm: String
    private let isOfProxy: Bool
    private let nonces = Locked(NonceBook())

    private init(_ scheme: Scheme, realm: String, isOfProxy: Bool) {
        self.scheme = scheme
        self.realm = realm
        self.isOfProxy = isOfProxy
    }

    /// User and password as they are.
    public static func basic(
        realm: String = "test", user: String, password: String, isOfProxy: Bool = false
    ) -> LoopbackChallenge {
        LoopbackChallenge(.basic(user: user, password: password), realm: realm, isOfProxy: isOfProxy)
    }

    /// A token, which this closure judges; it is called on the server's thread.
    public static func bearer(
        realm: String = "test", isValid: @escaping @Sendable (String) -> Bool
    ) -> LoopbackChallenge {
        LoopbackChallenge(.bearer(isValid: isValid), realm: realm, isOfProxy: false)
    }

    /// A proof that the client knows the password, bound to a nonce of the server and to the request.
    ///
    /// Nonces that were not given out are refused, and so are counts that were used before. A nonce that served
    /// `usesPerNonce` requests is stale.
    public static func digest(
        realm: String = "test", user: String, password: String, algorithm: DigestAlgorithm = .md5,
        usesPerNonce: Int = .max, isOfProxy: Bool = false
    ) -> LoopbackChallenge {
        let check = DigestCheck(
            realm: realm, user: user, password: password, algorithm: algorithm, usesPerNonce: usesPerNonce)
        return LoopbackChallenge(.digest(check), realm: realm, isOfProxy: isOfProxy)
    }

    /// The answer if the credentials are right; otherwise 401 (407 of a proxy) with the challenge.
    public func answer(to request: LoopbackRequest, granting answer: LoopbackAnswer) -> LoopbackAnswer {
        let verdict = verdict(on: request)
        guard verdict != .granted else { return answer }
        let name = isOfProxy ? "Proxy-Authenticate" : "WWW-Authenticate"
        return .status(isOfProxy ? 407 : 401).with(name, challenge(isStale: verdict == .stale))
    }

    private func verdict(on request: LoopbackRequest) -> Verdict {
        guard let field = request[isOfProxy ? "Proxy-Authorization" : "Authorization"],
            let blank = field.firstIndex(of: " ")
        else { return .refused }
        let name = field[..<blank].lowercased()
        let rest = String(field[field.index(after: blank)...])
        switch scheme {
        case .basic(let user, let password):
            let wanted = Data("\(user):\(password)".utf8).base64EncodedString()
            return name == "basic" && rest == wanted ? .granted : .refused
        case .bearer(let isValid): return name == "bearer" && isValid(rest) ? .granted : .refused
        case .digest(let check):
            guard name == "digest", let use = check.proven(by: AuthorizationParts(rest), of: request) else {
                return .refused
            }
            let isFresh = nonces.withLock { $0.use(use.nonce, use.count, limit: check.usesPerNonce) }
            return isFresh ? .granted : .stale
        }
    }

    private func challenge(isStale: Bool) -> String {
        switch scheme {
        case .basic: "Basic realm=\"\(realm)\", charset=\"UTF-8\""
        case .bearer: "Bearer realm=\"\(realm)\""
        case .digest(let check):
            "Digest realm=\"\(realm)\", qop=\"auth\", algorithm=\(check.algorithm.name), "
                + "nonce=\"\(nonces.withLock { $0.issue() })\", opaque=\"\(DigestCheck.opaque)\""
                + (isStale ? ", stale=true" : "")
        }
    }
}
