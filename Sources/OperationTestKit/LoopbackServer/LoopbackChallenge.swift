// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// An authentication challenge that a ``LoopbackServer`` uses to request and check credentials.
///
/// ```swift
/// import OperationTestKit
///
/// let server = try LoopbackServer()
/// let challenge = LoopbackChallenge.basic(
///     realm: "test", user: "u", password: "p")
/// server.route("/secret") { request in
///     challenge.answer(to: request, granting: .text("open"))
/// }
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
    private let nonces = Locked(NonceStore())

    private init(_ scheme: Scheme, realm: String, isOfProxy: Bool) {
        self.scheme = scheme
        self.realm = realm
        self.isOfProxy = isOfProxy
    }

    /// Returns a challenge for Basic authentication.
    ///
    /// - Parameters:
    ///   - realm: The HTTP realm in the challenge. The default is `test`.
    ///   - user: The user name that the server accepts.
    ///   - password: The password that the server accepts.
    ///   - isOfProxy: A Boolean value that indicates whether the challenge comes from a proxy. The default is `false`.
    public static func basic(
        realm: String = "test", user: String, password: String, isOfProxy: Bool = false
    ) -> LoopbackChallenge {
        LoopbackChallenge(.basic(user: user, password: password), realm: realm, isOfProxy: isOfProxy)
    }

    /// Returns a challenge for Bearer authentication.
    ///
    /// - Parameters:
    ///   - realm: The HTTP realm in the challenge. The default is `test`.
    ///   - isValid: A closure that returns whether a token is valid. The server calls the closure on the server's
    ///     thread.
    public static func bearer(
        realm: String = "test", isValid: @escaping @Sendable (String) -> Bool
    ) -> LoopbackChallenge {
        LoopbackChallenge(.bearer(isValid: isValid), realm: realm, isOfProxy: false)
    }

    /// Returns a challenge for Digest authentication.
    ///
    /// If a request contains an unknown or expired nonce, or a nonce count that was used before, the response is a
    /// challenge with `stale=true`.
    ///
    /// - Parameters:
    ///   - realm: The HTTP realm in the challenge. The default is `test`.
    ///   - user: The user name that the server accepts.
    ///   - password: The password that the server accepts.
    ///   - algorithm: The hash algorithm. The default is ``DigestAlgorithm/md5``.
    ///   - usesPerNonce: The number of requests after which a nonce expires. The default sets no limit.
    ///   - isOfProxy: A Boolean value that indicates whether the challenge comes from a proxy. The default is `false`.
    package static func digest(
        realm: String = "test", user: String, password: String, algorithm: DigestAlgorithm = .md5,
        usesPerNonce: Int = .max, isOfProxy: Bool = false
    ) -> LoopbackChallenge {
        let check = DigestCheck(
            realm: realm, user: user, password: password, algorithm: algorithm, usesPerNonce: usesPerNonce)
        return LoopbackChallenge(.digest(check), realm: realm, isOfProxy: isOfProxy)
    }

    /// Returns the given response if the request contains valid credentials, or a challenge otherwise.
    ///
    /// A challenge has the status code 401, or 407 if `isOfProxy` is `true`.
    ///
    /// - Parameters:
    ///   - request: The request whose credentials the method checks.
    ///   - answer: The response to a request with valid credentials.
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

/// The parameters of an `Authorization` header after its scheme, with or without quotation marks.
struct AuthorizationParts {
    private var values: [String: String] = [:]

    init(_ text: String) {
        var rest = text[...]
        while let equals = rest.firstIndex(of: "=") {
            let name = rest[..<equals].trimming(", \t").lowercased()
            rest = rest[rest.index(after: equals)...]
            let isQuoted = rest.first == "\""
            if isQuoted { rest = rest.dropFirst() }
            var value = ""
            while let character = rest.popFirst(), character != (isQuoted ? "\"" : ",") {
                value.append(isQuoted && character == "\\" ? rest.popFirst() ?? "\\" : character)
            }
            values[name] = isQuoted ? value : value[...].trimming(" \t")
        }
    }

    subscript(name: String) -> String? { values[name] }
}

extension Substring {
    fileprivate func trimming(_ characters: String) -> String {
        let start = drop { characters.contains($0) }
        guard let last = start.lastIndex(where: { !characters.contains($0) }) else { return "" }
        return String(start[...last])
    }
}

/// A hash algorithm for Digest authentication.
///
/// Future versions may add cases.
package enum DigestAlgorithm: Hashable, Sendable, CaseIterable {
    /// The challenge uses MD5.
    case md5
    /// The challenge uses SHA-256.
    case sha256
    /// The challenge uses MD5-sess, a variant of MD5 that includes the nonces of both sides in the first hash.
    case md5Session
    /// The challenge uses SHA-256-sess, a variant of SHA-256 that includes the nonces of both sides in the first hash.
    case sha256Session

    var name: String {
        switch self {
        case .md5: "MD5"
        case .sha256: "SHA-256"
        case .md5Session: "MD5-sess"
        case .sha256Session: "SHA-256-sess"
        }
    }

    var isOfSession: Bool { self == .md5Session || self == .sha256Session }

    func hash(_ text: String) -> String {
        let bytes =
            switch self {
            case .md5, .md5Session: MD5.checksum(of: text.utf8, startingWith: MD5())
            case .sha256, .sha256Session: SHA256.checksum(of: text.utf8, startingWith: SHA256())
            }
        return Hexadecimal.lower(bytes)
    }
}

/// A check of the proof in a request, according to RFC 7616.
struct DigestCheck: Sendable {
    static let opaque = "b3BhcXVl"

    let realm: String
    let user: String
    let password: String
    let algorithm: DigestAlgorithm
    let usesPerNonce: Int

    /// Returns the nonce and its count if the proof is valid.
    func proven(by parts: AuthorizationParts, of request: LoopbackRequest) -> (nonce: String, count: Int)? {
        guard parts["username"] == user, parts["realm"] == realm, parts["uri"] == request.target,
            parts["qop"] == "auth", parts["opaque"] == Self.opaque,
            parts["algorithm"].map({ $0 == algorithm.name }) ?? (algorithm == .md5), let nonce = parts["nonce"],
            let count = parts["nc"], let clientNonce = parts["cnonce"], let number = Int(count, radix: 16),
            count.utf8.count == 8
        else { return nil }
        var first = algorithm.hash("\(user):\(realm):\(password)")
        if algorithm.isOfSession { first = algorithm.hash("\(first):\(nonce):\(clientNonce)") }
        let second = algorithm.hash("\(request.method):\(request.target)")
        let proof = algorithm.hash("\(first):\(nonce):\(count):\(clientNonce):auth:\(second)")
        return parts["response"] == proof ? (nonce, number) : nil
    }
}

/// The issued nonces and the last count of each.
struct NonceStore {
    private var counts: [String: Int] = [:]

    mutating func issue() -> String {
        let nonce = String(UInt64.random(in: 0 ... .max), radix: 16)
        counts[nonce] = 0
        return nonce
    }

    /// Returns whether a nonce may be used with a count, which must increase with each use.
    mutating func use(_ nonce: String, _ number: Int, limit: Int) -> Bool {
        guard let last = counts[nonce], number > last, number <= limit else { return false }
        counts[nonce] = number
        return true
    }
}
