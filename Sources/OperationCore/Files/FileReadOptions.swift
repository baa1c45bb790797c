// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What part of a file is read, and how much of it at most.
public struct FileReadOptions: Sendable, Hashable {
    /// The bytes to read, counted from zero; nil for all.
    ///
    /// Of a range that goes beyond the end, what there is.
    public var range: Range<Int64>?

    /// How many bytes are read at most, so that an endless file does not eat up the memory: 256 MiB.
    ///
    /// A larger file, or range, is a failure with the code `tooLarge`; nothing of it is kept.
    public var maximumSize: Int

    /// Options with these values.
    public init(range: Range<Int64>? = nil, maximumSize: Int = 256 * 1024 * 1024) {
        self.range = range
        self.maximumSize = maximumSize
    }
}
