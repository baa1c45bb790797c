// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What happens in a realm: the story of its credential, beside those of the operations.
public struct AuthenticationEvent: Sendable, CustomStringConvertible {
    /// What happened; others may be added.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        /// The name, fit for a metric's label.
        public let description: String

        private init(_ name: String) { description = name }

        /// A refresh began; from now on no request leaves with the old credential.
        public static let refreshBegan = Kind("refreshBegan")
        /// A credential is wanted and there is nobody to be asked for it: set one, for instance after a sign-in.
        public static let credentialWanted = Kind("credentialWanted")
        /// There is a new credential.
        public static let credentialCame = Kind("credentialCame")
        /// A refresh failed, or took too long.
        public static let refreshFailed = Kind("refreshFailed")
        /// Operations that were postponed go on.
        public static let released = Kind("released")
        /// Operations that were postponed failed.
        public static let failed = Kind("failed")
    }

    /// What happened.
    public let kind: Kind
    /// The realm's name.
    public let realm: String
    /// How many credentials there were by now.
    public let version: Int
    /// How many operations it is about.
    public let count: Int
    /// Why it failed.
    public let error: NetworkError?

    /// The event in a line, for a log.
    public var description: String {
        let name = realm.isEmpty ? "" : " \(realm)"
        let number = count > 0 ? ", \(count) operations" : ""
        return "realm\(name): \(kind), credential \(version)\(number)" + (error.map { ", \($0)" } ?? "")
    }
}
