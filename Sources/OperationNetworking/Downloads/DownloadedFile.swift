// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A file that was downloaded whole.
public struct DownloadedFile: Sendable, Hashable {
    /// Where it lies.
    public let url: URL
    /// How many bytes it has.
    public let length: Int64
    /// How many of them were there before, from a download that had not come to its end.
    public let resumedBytes: Int64
    /// Whether the server said beforehand how long it is.
    ///
    /// If not, and if the connection's end was the body's end, nobody can tell whether something is missing. Only a
    /// checksum can.
    public let isLengthKnown: Bool
}
