// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A set of options that determine how a download is written and validated.
public struct DownloadOptions: Sendable {
    /// The rule for an item that already exists at the destination.
    ///
    /// The default is `refuse`, which keeps the item and fails the download. If the destination names the file, the
    /// download fails before a request is sent. If the destination is a folder, the response determines the name. The
    /// download then sends the request, and fails before it writes any of the body.
    public var existingItem = ExistingItemRule.refuse

    /// A Boolean value that indicates whether the download creates missing directories on the path to the destination.
    ///
    /// The default is `true`.
    public var createsDirectories = true

    /// The permission bits of the file, reduced by the `umask` of the process.
    ///
    /// The default is `0o644`. The complete file has these permissions. Until the file is complete, only its owner can
    /// read it.
    public var permissions: UInt16 = 0o644

    /// A Boolean value that indicates whether the file and its name are flushed to disk before the download succeeds.
    ///
    /// The default is `true`, so that the file survives a power failure. A temporary file is never flushed.
    public var isDurable = true

    /// The expected number of bytes.
    ///
    /// The default is `nil`, which accepts any number. If the response states a different number, the download fails
    /// before any of the body is written.
    public var expectedLength: Int64?

    /// The maximum number of bytes.
    ///
    /// The default is `nil`, which sets no limit.
    public var maximumLength: Int64?

    /// The expected checksum of the complete file.
    ///
    /// The default is `nil`, which computes no checksum. If the checksum differs, the download removes the file and
    /// fails. The operation does not request the file again. The next download starts from scratch.
    public var checksum: FileChecksum?

    /// A Boolean value that indicates whether the received data stays on disk after a failure or a cancellation.
    ///
    /// The default is `true`, so that the next download to the same destination can resume. The data is stored next to
    /// the destination in hidden files (`.operationkit-….part` and `….metadata`). A temporary download keeps the data
    /// only as long as its operation exists.
    public var keepsPart = true

    /// A key that identifies the file in addition to the URL, so that a later download can resume.
    ///
    /// Set a key for URLs that are signed again for each request. Without a key, a download from another URL starts
    /// from scratch.
    public var resumeKey: String?

    /// The maximum time between two flushes of the received data to disk.
    ///
    /// The default is 5 seconds, so that a power failure loses at most the data of the last 5 seconds. If the process
    /// is terminated, no written data is lost, regardless of this value.
    public var checkpointInterval = Duration.seconds(5)

    /// Creates options with the default values.
    public init() {}
}

/// A destination for the file of a complete download.
public struct DownloadDestination: Sendable, Hashable {
    package enum Place: Sendable, Hashable {
        case temporary(in: URL?)
        case file(URL)
        case folder(URL)
    }

    package let place: Place

    /// A temporary file, which is removed unless you move it.
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

    /// Returns a destination at the URL of a file.
    public static func file(_ url: URL) -> DownloadDestination {
        DownloadDestination(place: .file(url))
    }

    /// Returns a destination in a directory, with the file name that the server provides, or with the last path
    /// component of the URL.
    ///
    /// The file name is always a single plain name in this directory, regardless of the server's response. For the
    /// rules, see ``DownloadFileName``.
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
    ///   - url: The URL of the download. In a folder, each URL has its own data. A file destination has the data of
    ///     only one download, which this method removes regardless of the URL.
    ///   - options: The options of the download. In a folder, the ``DownloadOptions/resumeKey`` identifies the data if
    ///     the options contain one.
    /// - Returns: A Boolean value that indicates whether there was data to remove.
    /// - Throws: ``NetworkError/Code/destinationBusy`` if a download is writing the data now, or any error of the file
    ///   system.
    @discardableResult
    public func removePart(
        of url: URL, options: DownloadOptions = DownloadOptions()
    ) throws(NetworkError) -> Bool {
        guard !isTemporary else { return false }
        let source = DownloadNames.source(of: try NetworkRequest(url: url), options)
        var options = options
        (options.createsDirectories, options.existingItem) = (false, .replace)
        do throws(FileOperationError) {
            let store = try DownloadStore(self, source: source, options: options, files: FileSystem())
            store.discard()
            return store.hadPart
        } catch {
            if [.notFound, .folderNotFound].contains(error.code) { return false }
            throw NetworkError(
                code: NetworkError(error).code, phase: .saving,
                message: "The received part of the download cannot be removed. \(error.message)",
                underlying: NetworkError(error).underlying)
        }
    }
}

/// A completely downloaded file.
public struct DownloadedFile: Sendable, Hashable {
    /// The location of the file.
    public let url: URL
    /// The size of the file, in bytes.
    public let length: Int64
    /// The number of bytes that an earlier, incomplete download had already received.
    public let resumedBytes: Int64
    /// The number of bytes from an earlier download that were discarded.
    ///
    /// Bytes are discarded if the file on the server has changed, or if the server could not resume the download.
    public let discardedBytes: Int64
    /// A Boolean value that indicates whether the server stated the length of the file in advance.
    ///
    /// If the value is `false` and the body ended with the connection, missing data cannot be detected from the length.
    /// Only a checksum can detect it.
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

/// The progress of a download.
public struct DownloadProgress: Sendable, Hashable {
    /// The number of bytes written, including the bytes from an earlier download.
    public let received: Int64
    /// The total number of bytes, if it is known.
    public let total: Int64?
}
