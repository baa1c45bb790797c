// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How much a cache keeps.
public struct CacheLimits: Hashable, Sendable {
    /// The bytes on disk, cards and bodies that are being written included; 256 MiB unless changed.
    public var totalBytes: Int64
    /// The bytes of one body; an eighth of the total unless changed, and what is longer is not kept.
    public var bodyBytes: Int64

    /// Makes limits.
    public init(totalBytes: Int64 = 256 << 20, bodyBytes: Int64? = nil) {
        self.totalBytes = max(totalBytes, 0)
        self.bodyBytes = bodyBytes ?? max(totalBytes, 0) / 8
    }
}
