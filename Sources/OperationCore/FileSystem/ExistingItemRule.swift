// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A rule for an item that already exists at the destination of a copy or a move.
public struct ExistingItemRule: Hashable, Sendable {
    private let name: String

    /// The operation keeps the existing item and fails with the code `alreadyExists`.
    ///
    /// If several operations create the same destination at the same time, at most one succeeds.
    public static let refuse = ExistingItemRule(name: "refuse")

    /// The operation replaces the existing item atomically, or fails.
    ///
    /// A file or a link can replace a file or a link, and a directory can replace an empty directory. If the existing
    /// item is a directory that is not empty, the operation fails with the code `directoryNotEmpty`. If the existing
    /// item is a pipe, a socket or a device, the operation fails with the code `unsupportedKind`.
    public static let replace = ExistingItemRule(name: "replace")
}
