// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A policy that provides credentials when a server responds with the status code 401 (Unauthorized).
///
/// ```swift
/// let policy = ChallengePolicy { question in
///     guard question.url.host() == "example.com",
///         question.url.scheme == "https", question.refused.isEmpty
///     else { return nil }
///     return .password(user: "anna", password: "secret")
/// }
/// ```
///
/// The session calls your closure for each challenge in the response until the closure returns a usable credential. The
/// session begins with the challenge that has the strongest scheme. The order is Digest with SHA-256, Digest with MD5,
/// Basic, and then all other schemes in the order in which they appear in the response.
///
/// If the closure returns no usable credential, the session delivers the 401 response. A credential is not usable if
/// the server has already rejected it or if the challenge requires another kind of credential. The session also
/// delivers the 401 response if the request has its own `Authorization` header, or if the request body can be sent only
/// once.
public struct ChallengePolicy: Sendable {
    /// The maximum number of times that the session sends a request again with a credential.
    ///
    /// If the server also rejects the last of these requests, the session delivers the 401 response.
    ///
    /// The default is 3.
    public var maximumTries = 3
    /// A Boolean value that indicates whether the session adds an accepted credential to later requests to the same
    /// origin.
    ///
    /// The default is `true`. The session adds a `Basic` credential only to requests in or below the directory of the
    /// request for which the server accepted the credential. For example, after the server accepts a credential for
    /// `/v1/songs`, the session adds it to requests whose path begins with `/v1/`. If the value is `false`, the session
    /// sends a credential only after a challenge.
    public var remembers = true
    package let rule: @Sendable (CredentialQuestion) async -> Credential?

    /// Creates a policy that calls a closure to get credentials.
    ///
    /// - Parameter rule: A closure that returns a credential for a challenge, or `nil` if there is no credential. The
    ///   closure can take any amount of time and is not isolated to an actor. The session waits for the closure before
    ///   it continues.
    public init(_ rule: @escaping @Sendable (CredentialQuestion) async -> Credential?) {
        self.rule = rule
    }
}

/// A credential that authenticates a user to a server.
///
/// Future versions may add cases.
public enum Credential: Sendable, Hashable {
    /// A user name and a password for the schemes `Basic` and `Digest`.
    case password(user: String, password: String)
    /// A token for the scheme `Bearer`.
    case token(String)
    /// The complete value of the `Authorization` header for any scheme.
    case authorization(String)
}

extension Credential: CustomStringConvertible {
    /// A description of the credential that does not contain secrets.
    public var description: String {
        switch self {
        case .password: "a name and a password"
        case .token: "a token"
        case .authorization: "an authorization"
        }
    }
}

extension Credential: CustomReflectable {
    /// A mirror for debuggers and `dump` that does not contain secrets.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .enum) }
}

/// A description of a challenge, which the closure of a ``ChallengePolicy`` receives.
public struct CredentialQuestion: Sendable {
    /// The protected area of the server that requires the credential.
    package let space: ProtectionSpace
    /// The challenge from the server's response.
    public let challenge: Challenge
    /// The URL of the request that received the challenge.
    public let url: URL
    /// The credentials that the server has already rejected for this request and the challenge's protected area, with
    /// the latest credential last.
    public let refused: [Credential]
}
