// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What becomes of an operation and of those that are present with the same key: see
/// ``QueueManager/addUnique(_:key:policy:)``.
///
/// Present are those that were added with the key and have not ended.
public struct UniqueWorkPolicy: Sendable, Hashable, CustomStringConvertible {
    enum Kind: String { case keep, replace, append }

    let kind: Kind

    /// The present one stays; the new one is cancelled with the cause `alreadyPresent`.
    ///
    /// If those that are present were all cancelled and only wind down, the new one runs after them.
    public static let keep = Self(kind: .keep)
    /// Those that are present are cancelled with the cause `replaced`; the new one runs after they ended.
    public static let replace = Self(kind: .replace)
    /// The new one runs after all that are present ended, however they end.
    public static let append = Self(kind: .append)

    /// The name of the policy.
    public var description: String { kind.rawValue }
}
