// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Why the work of a file operation stops before its end.
enum FileInterruption: Error {
    /// The operation was cancelled: there is nobody to tell.
    case cancelled
    case failed(FileOperationError)
}
