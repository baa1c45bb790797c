// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

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
    /// The value of the `WWW-Authenticate` or `Proxy-Authenticate` header.
    private let challenge: String
    private let isOfProxy: Bool
    /// A closure that returns whether credentials are valid.
    ///
    /// The name of the scheme is in lowercase letters.
    private let isProven: @Sendable (_ scheme: String, _ credentials: String) -> Bool

    private init(
        _ challenge: String, isOfProxy: Bool, isProven: @escaping @Sendable (String, String) -> Bool
    ) {
        (self.challenge, self.isOfProxy, self.isProven) = (challenge, isOfProxy, isProven)
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
        let wanted = Data("\(user):\(password)".utf8).base64EncodedString()
        return LoopbackChallenge("Basic realm=\"\(realm)\", charset=\"UTF-8\"", isOfProxy: isOfProxy) {
            $0 == "basic" && $1 == wanted
        }
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
        LoopbackChallenge("Bearer realm=\"\(realm)\"", isOfProxy: false) { $0 == "bearer" && isValid($1) }
    }

    /// Returns the given response if the request contains valid credentials, or a challenge otherwise.
    ///
    /// A challenge has the status code 401, or 407 if `isOfProxy` is `true`.
    ///
    /// - Parameters:
    ///   - request: The request whose credentials the method checks.
    ///   - answer: The response to a request with valid credentials.
    public func answer(to request: LoopbackRequest, granting answer: LoopbackAnswer) -> LoopbackAnswer {
        let field = request[isOfProxy ? "Proxy-Authorization" : "Authorization"] ?? ""
        if let blank = field.firstIndex(of: " "),
            isProven(field[..<blank].lowercased(), String(field[field.index(after: blank)...]))
        {
            return answer
        }
        let name = isOfProxy ? "Proxy-Authenticate" : "WWW-Authenticate"
        return .status(isOfProxy ? 407 : 401).with(name, challenge)
    }
}
