// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How much of a file is there.
public struct DownloadProgress: Sendable, Hashable {
    /// Bytes that are written, those included that were there before.
    public let received: Int64
    /// How many there will be, if that is known.
    public let total: Int64?
}
