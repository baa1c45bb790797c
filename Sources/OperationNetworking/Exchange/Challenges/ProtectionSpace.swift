// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What a credential is for: within one space it is the same, and it is never sent to another.
public struct ProtectionSpace: Hashable, Sendable {
    /// Where it is asked for.
    public let origin: WebOrigin
    /// What the server calls the part of it that is protected.
    public let realm: String
    /// The way to prove it, in lower case: `basic`, `digest`, `bearer`.
    public let scheme: String
}
