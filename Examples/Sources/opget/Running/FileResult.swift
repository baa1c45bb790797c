// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What became of a file.
enum FileResult: Sendable {
    case done(FileReport)
    /// It was there already.
    case skipped(path: String)
    case failed(FileFailure)
    /// It was cancelled, and what was received stays.
    case stopped
}

/// A file that is there.
struct FileReport: Sendable, Equatable {
    var path: String
    var bytes: Int64
    var resumedBytes: Int64 = 0
    var discardedBytes: Int64 = 0
    var segments = 1
}
