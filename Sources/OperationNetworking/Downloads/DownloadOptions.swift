// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The options that determine how a download writes and validates its file.
public struct DownloadOptions: Sendable {
    /// The rule that applies if an item already exists at the destination.
    ///
    /// The default is `refuse`, which keeps the item and makes the download fail. With `refuse`, a download to a file
    /// fails before it sends a request. For a download to a folder, the response determines the file name, so the
    /// download fails after the headers arrive and before it writes the body.
    public var existingItem = ExistingItemRule.refuse

    /// A Boolean value that indicates whether the download creates missing directories in the path of the destination.
    ///
    /// The default is `true`.
    public var createsDirectories = true

    /// The permissions of the complete file, before the system applies the process's `umask`.
    ///
    /// The default is `0o644`. Until the file is complete, only its owner can read it. If the destination is
    /// ``DownloadDestination/temporary``, this property has no effect.
    public var permissions: UInt16 = 0o644

    /// A Boolean value that indicates whether the download flushes the file and its directory entry to disk before it
    /// succeeds.
    ///
    /// The default is `true`, which ensures that the file survives a power failure after the download succeeds. If the
    /// value is `false`, the system decides when it writes the file to disk. After a power failure, the file at the
    /// destination can then be missing, empty or incomplete. Regardless of this value, the file appears at its
    /// destination atomically, and a crash of the process does not damage the file.
    ///
    /// If the destination is ``DownloadDestination/temporary``, this property has no effect, and the download does not
    /// flush the file.
    public var isDurable = true

    /// The expected length of the file, in bytes.
    ///
    /// The default is `nil`, which accepts any length. If the response headers specify a different length, the download
    /// fails before it writes any of the body. If the headers specify no length, the download fails when it has
    /// received too many bytes, or at the end of the body.
    public var expectedLength: Int64?

    /// The maximum length of the file, in bytes.
    ///
    /// The default is `nil`, which does not limit the length. If the file is longer, the download fails with
    /// ``NetworkError/Code/bodyTooLarge``.
    public var maximumLength: Int64?

    /// The expected checksum of the complete file.
    ///
    /// The default is `nil`, which disables the check. If the checksum differs, the download removes the file and
    /// fails, without sending the request again. The next download of the file starts from scratch.
    public var checksum: FileChecksum?

    /// A Boolean value that indicates whether the received data remains on disk after the download fails or is
    /// canceled.
    ///
    /// The default is `true`, which lets the next download to the same destination resume if the server supports
    /// resuming. Two hidden files in the directory of the destination, `.operationkit-….part` and
    /// `.operationkit-….metadata`, contain the data and the information for resuming. If the destination is
    /// ``DownloadDestination/temporary``, the data remains only until the operation ends.
    ///
    /// If the download cannot write the data or cannot flush the data to disk, the download removes the data.
    public var keepsPart = true

    /// A key that identifies the file even if its URL changes, and lets a later download from another URL resume.
    ///
    /// Set a key if each request uses a newly signed URL. The default is `nil`, which makes a download from another URL
    /// start from scratch.
    public var resumeKey: String?

    /// The interval at which the download flushes the received data to disk.
    ///
    /// The default is 5 seconds. After a power failure, at most the data that arrived during the last interval is lost.
    /// If only the process terminates, no written data is lost.
    public var checkpointInterval = Duration.seconds(5)

    /// The file system that the download uses, which a test can replace.
    package var files = FileSystem()

    /// Creates options with the default values.
    public init() {}
}

/// The location of the file that a download creates.
public struct DownloadDestination: Sendable, Hashable {
    package enum Place: Sendable, Hashable {
        case temporary(in: URL?)
        case file(URL)
        case folder(URL)
    }

    package let place: Place

    /// A destination that is a temporary file.
    ///
    /// The operation removes the file after the evaluator has run, unless the evaluator moved the file or returned its
    /// URL.
    public static let temporary = DownloadDestination(place: .temporary(in: nil))

    /// Returns a destination for a temporary file in a directory.
    package static func temporary(in folder: URL) -> DownloadDestination {
        DownloadDestination(place: .temporary(in: folder))
    }

    var isTemporary: Bool {
        if case .temporary = place { true } else { false }
    }

    var isFolder: Bool {
        if case .folder = place { true } else { false }
    }

    /// Returns a destination that is a file at a URL.
    ///
    /// - Parameter url: The file URL of the destination.
    public static func file(_ url: URL) -> DownloadDestination {
        DownloadDestination(place: .file(url))
    }

    /// Returns a destination that is a file in a directory, with a name from the response headers or the response URL.
    ///
    /// The server cannot choose a location outside this directory. For the rules for file names, see
    /// ``DownloadFileName``.
    ///
    /// - Parameter url: The URL of the directory.
    public static func folder(_ url: URL) -> DownloadDestination {
        DownloadDestination(place: .folder(url))
    }
}

extension DownloadDestination {
    /// Removes the received data of an incomplete download to this destination.
    ///
    /// ```swift
    /// func forget(_ url: URL, in folder: URL) throws {
    ///     try DownloadDestination.folder(folder).removePart(of: url)
    /// }
    /// ```
    ///
    /// Call this method if you do not want to resume the download. The method does not remove a complete file. The
    /// method accesses the disk on the calling thread.
    ///
    /// - Parameters:
    ///   - url: The URL of the download. If the destination is a folder, the URL identifies the data of the download.
    ///     If the destination is a file, this method ignores the URL.
    ///   - options: The options of the download. If the destination is a folder and the options contain a
    ///     ``DownloadOptions/resumeKey``, the key identifies the data instead of the URL. The default options contain
    ///     no key.
    /// - Returns: `true` if the method found data of an incomplete download; otherwise, `false`.
    /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/destinationBusy`` if a download is currently
    ///   writing the data, or with another code if the URL is not valid or the method cannot remove the data.
    @discardableResult
    public func removePart(
        of url: URL, options: DownloadOptions = DownloadOptions()
    ) throws(NetworkError) -> Bool {
        guard !isTemporary else { return false }
        let source = DownloadNames.source(of: try NetworkRequest(url: url), options)
        var options = options
        (options.createsDirectories, options.existingItem) = (false, .replace)
        do throws(FileOperationError) {
            let store = try DownloadStore(self, source: source, options: options)
            try store.remove()
            return store.hadPart
        } catch {
            if [.notFound, .folderNotFound].contains(error.code) { return false }
            throw .saving(error, "The received part of the download cannot be removed.")
        }
    }
}

/// Information about a completely downloaded file.
public struct DownloadedFile: Sendable, Hashable {
    /// The location of the file.
    public let url: URL
    /// The size of the file, in bytes.
    public let length: Int64
    /// The number of bytes in the file that come from an earlier, incomplete download or from a failed attempt.
    public let resumedBytes: Int64
    /// The number of bytes from an earlier, incomplete download or from a failed attempt that this download discarded.
    ///
    /// For example, the download discards bytes if the file on the server has changed, or if the server does not
    /// support resuming.
    public let discardedBytes: Int64
    /// A Boolean value that indicates whether the response specified the length of the file.
    ///
    /// If the value is `false` and the body ended when the server closed the connection, only a checksum can detect
    /// missing data.
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
    /// Removes the file, but no other file that has the same name now.
    ///
    /// A file that was moved away counts as removed.
    ///
    /// - Parameter published: The status of the file when it was moved to its destination.
    /// - Returns: Whether the name is free. The name is not free if the file was replaced, or modified since it was
    ///   published.
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

/// The number of bytes that a download has received and the number that it expects.
package struct DownloadProgress: Sendable, Hashable {
    /// The number of bytes in the partial file, including the bytes of an earlier, incomplete download.
    package let received: Int64
    /// The length of the complete file, in bytes, or `nil` if it is not known.
    package let total: Int64?
}
