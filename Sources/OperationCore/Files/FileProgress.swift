// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How far a file operation has come.
public struct FileProgress: Sendable, Hashable {
    /// How many bytes were read or written.
    public let completedBytes: Int64
    /// How many there are; nil while nobody knows, as with directories and devices.
    ///
    /// At the end it is what was completed.
    public let totalBytes: Int64?
    /// How many files, directories and links were copied or removed.
    public let completedItems: Int

    /// Makes a progress, for tests of your own code.
    public init(completedBytes: Int64, totalBytes: Int64?, completedItems: Int = 0) {
        self.completedBytes = completedBytes
        self.totalBytes = totalBytes
        self.completedItems = completedItems
    }

    /// The share that is done, between zero and one; nil while the whole is not known.
    public var fraction: Double? {
        guard let totalBytes else { return nil }
        return totalBytes > 0 ? min(Double(completedBytes) / Double(totalBytes), 1) : 1
    }
}
