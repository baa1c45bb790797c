// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The result for a file.
enum FileResult: Sendable {
    case done(FileReport)
    /// The file already existed.
    case skipped(path: String)
    case failed(FileFailure)
    /// The download was canceled, and the received bytes stay on the disk.
    case stopped
}

/// A report about a file that was downloaded.
struct FileReport: Sendable, Equatable {
    var path: String
    var bytes: Int64
    var resumedBytes: Int64 = 0
    var discardedBytes: Int64 = 0
    var segments = 1
}
