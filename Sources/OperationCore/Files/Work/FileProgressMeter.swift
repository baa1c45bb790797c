// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Adds up what was done and says when it is worth telling.
///
/// That is after a mebibyte or a hundredth of the whole, whichever is more, and after each hundred files.
package struct FileProgressMeter: Sendable {
    private static let smallestStep: Int64 = 1024 * 1024
    private static let itemStep = 100

    /// How many bytes there will be; nil where nobody knows.
    package var totalBytes: Int64?
    private var bytes: Int64 = 0
    private var items = 0
    private var toldBytes: Int64 = 0
    private var toldItems = 0

    package init() {}

    /// Returns the progress if it is worth telling.
    package mutating func advance(bytes count: Int64) -> FileProgress? {
        bytes += count
        // A file that grows meanwhile never makes more of itself than there is.
        if let total = totalBytes, total < bytes { totalBytes = bytes }
        let step = max(Self.smallestStep, (totalBytes ?? 0) / 100)
        return bytes - toldBytes >= step ? tell() : nil
    }

    /// Returns the progress if it is worth telling.
    package mutating func advanceByItem() -> FileProgress? {
        items += 1
        return items - toldItems >= Self.itemStep ? tell() : nil
    }

    /// All is done, so that the whole is known, whatever was expected.
    package mutating func complete() -> FileProgress {
        totalBytes = bytes
        return tell()
    }

    private mutating func tell() -> FileProgress {
        toldBytes = bytes
        toldItems = items
        return FileProgress(completedBytes: bytes, totalBytes: totalBytes, completedItems: items)
    }
}
