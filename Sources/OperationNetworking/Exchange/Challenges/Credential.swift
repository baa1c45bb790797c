// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
