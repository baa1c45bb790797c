// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What is done when a server asks who one is (status 401).
///
/// ```swift
/// let policy = ChallengePolicy { question in
///     let origin = question.space.origin
///     guard origin.host == "example.com", origin.isSecure, question.refused.isEmpty else { return nil }
///     return .password(user: "anna", password: "secret")
/// }
/// ```
///
/// The rule is asked for each way that the server offers and that can be gone, the strongest first: digest with SHA-256,
/// digest with MD5, basic, then all others in the order in which they came. With nil for all of them the 401 is the
/// answer. So it is where the request had an `Authorization` field of its own, where a credential comes back that was
/// refused before, and where the body cannot be sent again.
public struct ChallengePolicy: Sendable {
    /// How often a request is sent again for a challenge: 3 times unless changed.
    public var maximumTries = 3
    /// Whether what was accepted goes along with later requests to the same origin without being asked for: it does.
    public var remembers = true
    package let rule: @Sendable (CredentialQuestion) async -> Credential?

    /// Makes a policy that asks a closure of yours, which may take its time.
    public init(_ rule: @escaping @Sendable (CredentialQuestion) async -> Credential?) {
        self.rule = rule
    }
}

/// What proves to a server who one is.
///
/// More cases may be added.
public enum Credential: Sendable, Hashable {
    /// A user's name and password, for `Basic` and `Digest`.
    case password(user: String, password: String)
    /// A token, for `Bearer`.
    case token(String)
    /// The whole value of the `Authorization` field, for schemes of your own.
    case authorization(String)
}

extension Credential: CustomStringConvertible {
    /// The kind; never the secret.
    public var description: String {
        switch self {
        case .password: "a name and a password"
        case .token: "a token"
        case .authorization: "an authorization"
        }
    }
}

extension Credential: CustomReflectable {
    /// What debuggers and `dump` show: never the secret.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .enum) }
}

/// Asks a rule of yours for a credential.
public struct CredentialQuestion: Sendable {
    /// What it is for.
    public let space: ProtectionSpace
    /// The challenge as it came.
    public let challenge: Challenge
    /// The address that was asked for.
    public let url: URL
    /// The credentials that this space refused during this exchange, the last one at the end.
    public let refused: [Credential]
}
