// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A policy that supplies credentials when a server requests authentication with the status code 401 (Unauthorized).
///
/// ```swift
/// let policy = ChallengePolicy { question in
///     let origin = question.space.origin
///     guard origin.host == "example.com", origin.isSecure, question.refused.isEmpty else { return nil }
///     return .password(user: "anna", password: "secret")
/// }
/// ```
///
/// The session calls your closure for each challenge that the session supports, the strongest first. The order is
/// Digest with SHA-256, Digest with MD5, Basic, and then all other schemes in the order of the response. The session
/// sends the first usable credential.
///
/// The session delivers the 401 response if the closure returns no usable credential for any challenge. A credential
/// that the server has already refused is not usable. The session also delivers the 401 response if the request has its
/// own `Authorization` header, or if its body cannot be sent again.
public struct ChallengePolicy: Sendable {
    /// The maximum number of times that one exchange sends a request again in response to a challenge.
    ///
    /// The default is 3.
    public var maximumTries = 3
    /// A Boolean value that indicates whether the session sends an accepted credential with later requests to the same
    /// origin, before it gets a challenge.
    ///
    /// The default is `true`.
    public var remembers = true
    package let rule: @Sendable (CredentialQuestion) async -> Credential?

    /// Creates a policy that asks a closure for credentials.
    ///
    /// - Parameter rule: A closure that returns a credential, or `nil` if it has none for the question. The closure can
    ///   take any time and is not isolated to an actor. The session holds the response until the closure returns.
    public init(_ rule: @escaping @Sendable (CredentialQuestion) async -> Credential?) {
        self.rule = rule
    }
}

/// A credential that authenticates a user to a server.
///
/// More cases may be added.
public enum Credential: Sendable, Hashable {
    /// A user name and a password, for the schemes `Basic` and `Digest`.
    case password(user: String, password: String)
    /// A token, for the scheme `Bearer`.
    case token(String)
    /// The complete value of the `Authorization` header, for any scheme.
    case authorization(String)
}

extension Credential: CustomStringConvertible {
    /// The kind of the credential, without the secret.
    public var description: String {
        switch self {
        case .password: "a name and a password"
        case .token: "a token"
        case .authorization: "an authorization"
        }
    }
}

extension Credential: CustomReflectable {
    /// The mirror for debuggers and `dump`, without the secret.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .enum) }
}

/// A question that asks the closure of a ``ChallengePolicy`` for a credential.
public struct CredentialQuestion: Sendable {
    /// The area for which the credential is needed.
    public let space: ProtectionSpace
    /// The challenge that the server sent.
    public let challenge: Challenge
    /// The URL of the request.
    public let url: URL
    /// The credentials that the server refused for this area during the exchange, the latest one last.
    public let refused: [Credential]
}
