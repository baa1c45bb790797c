// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What becomes of something that stands at the destination of a copy or a move.
public struct ExistingItemRule: Hashable, Sendable {
    private let name: String

    /// It stays, and the operation fails with the code `alreadyExists`.
    ///
    /// Of many that try at once, one succeeds.
    public static let refuse = ExistingItemRule(name: "refuse")

    /// It is replaced in one step: a file or link by a file or link, an empty directory by a directory.
    ///
    /// A directory with something in it is never replaced: the operation fails with the code `directoryNotEmpty`. Nor is a
    /// pipe, a socket or a device.
    public static let replace = ExistingItemRule(name: "replace")
}
