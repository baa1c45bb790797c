// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What a download found of an earlier one, and what became of that.
public struct DownloadStart: Sendable, Hashable {
    /// How many bytes were there before, and are gone on with.
    public let resumedBytes: Int64
    /// How many bytes were there before and were thrown away: the file on the server has changed, or the server cannot go on
    /// with them.
    public let discardedBytes: Int64
}
