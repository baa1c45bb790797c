// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A file that was downloaded whole.
public struct DownloadedFile: Sendable, Hashable {
    /// Where it lies.
    public let url: URL
    /// How many bytes it has.
    public let length: Int64
    /// How many of them were there before, from a download that had not come to its end.
    public let resumedBytes: Int64
    /// How many bytes of one were there before and had to be thrown away: the file on the server has changed, or the server
    /// could not go on with them.
    public let discardedBytes: Int64
    /// Whether the server said beforehand how long it is.
    ///
    /// If not, and if the connection's end was the body's end, nobody can tell whether something is missing. Only a
    /// checksum can.
    public let isLengthKnown: Bool

    init(url: URL, length: Int64, start: DownloadStart, isLengthKnown: Bool) {
        self.url = url
        self.length = length
        resumedBytes = start.resumedBytes
        discardedBytes = start.discardedBytes
        self.isLengthKnown = isLengthKnown
    }
}

extension DownloadedFile {
    /// Removes the file, and no other one that has the same name by now.
    ///
    /// A file that was moved away counts as removed.
    ///
    /// - Parameter published: The status of the file when it came to its destination.
    /// - Returns: Whether the name is free. It is not if the file was replaced, or written to since it was published.
    package func remove(
        ifStill published: FileStatus, files: FileSystem = FileSystem()
    ) throws(FileOperationError) -> Bool {
        do throws(FileOperationError) {
            let folder = try PreparedFolder(of: url, makingFolders: false, action: .removing, files: files)
            let entry = FolderEntry(folder.name, in: folder.folder)
            guard try folder.get(files.status(of: entry)).hasContent(of: published) else { return false }
            try folder.get(files.remove(entry, isDirectory: false))
            return true
        } catch {
            if [.notFound, .folderNotFound].contains(error.code) { return true }
            throw error
        }
    }
}
