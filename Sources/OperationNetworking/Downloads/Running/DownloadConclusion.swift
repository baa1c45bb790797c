// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// What came of one request of a download.
package enum DownloadConclusion: Sendable {
    /// The file is there, whole, and had this status when it came to its destination; nil for a temporary file.
    case saved(DownloadedFile, ResponseHead, FileStatus?)
    /// Another request must be made, at once: what the server sent does not go on with what is there, or not to its end.
    case again
    /// It was no file: the response and the first bytes of its body.
    case answered(ResponseHead, [UInt8])
    /// It failed. What is there stays until the download is closed, for another request to go on with.
    case failed(NetworkError)
}
