// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A type that stores the cookies of a ``CookieJar`` between launches of the program.
///
/// A jar calls ``load()`` once, on the thread that creates the jar. Later, the jar calls ``save(_:)`` on its own serial
/// queue.
public protocol CookieStorage: Sendable {
    /// Returns the cookies that the jar last saved, or an empty array if the storage is empty.
    ///
    /// - Throws: An error if the storage cannot read the cookies.
    func load() throws -> [Cookie]

    /// Replaces all cookies in the storage.
    ///
    /// - Parameter cookies: The cookies to save.
    /// - Throws: An error if the storage cannot save the cookies.
    func save(_ cookies: [Cookie]) throws
}

/// An object that stores cookies in a file that only the file's owner can read.
///
/// The storage replaces the file atomically, so that the file contains either the old or the new cookies after a crash.
/// Use a file for only one jar. If two jars save to the same file, the file contains only the cookies that were saved
/// last.
public struct FileCookieStorage: CookieStorage {
    /// The URL of the file that contains the cookies.
    public let url: URL

    /// Creates an object that stores cookies in a file.
    ///
    /// The storage creates missing directories when it saves cookies.
    ///
    /// - Parameter url: The URL of the file.
    public init(url: URL) {
        self.url = url
    }

    /// The maximum size of a file that is read.
    ///
    /// A jar has no more than a few thousand cookies of a few kilobytes.
    private static let largest = 256 << 20

    private struct Contents: Codable {
        var version = 1
        var cookies: [Cookie]
    }

    /// Returns the cookies in the file, or an empty array if the file does not exist.
    ///
    /// If the file is a symbolic link that the current user or `root` owns, the method reads the file to which the link
    /// points.
    ///
    /// The method ignores the contents of a file that other users can change. The method also ignores any other
    /// symbolic link and a file that has more than one hard link. In these cases, the method returns an empty array,
    /// and OperationKit reports the notice `OperationNotice.Kind.untrustedFile`.
    ///
    /// - Throws: A `FileOperationError` if the method cannot read the file or the URL is not a file URL, or a
    ///   `DecodingError` if the file is damaged.
    public func load() throws -> [Cookie] {
        let file = try target(for: .reading)
        switch FileSystem().readTrusted(FolderEntry(PathBytes(file.path)), limit: Self.largest) {
        case .success(let bytes): return try JSONDecoder().decode(Contents.self, from: Data(bytes)).cookies
        case .failure(SystemError(ENOENT)): return []
        case .failure(.untrusted):
            OperationDiagnostics.report(
                .untrustedFile, by: "FileCookieStorage",
                "The file \(file.path) belongs to another user, other users can write to it, or it is a link. The "
                    + "storage neither reads nor writes this file. Remove the file, set its permissions to 0600, or "
                    + "use a file in your own folder.")
            return []
        case .failure(let error):
            throw FileOperationError(
                code: FileOperationError.Code(systemErrorNumber: error.number), action: .reading, path: file.path,
                systemErrorNumber: error.number)
        }
    }

    /// Replaces the cookies in the file.
    ///
    /// If the file is a symbolic link that the current user or `root` owns, the method replaces the file to which the
    /// link points and keeps the link.
    ///
    /// - Throws: A `FileOperationError`. The code is `untrusted` if ``load()`` would ignore the contents of the
    ///   existing file.
    public func save(_ cookies: [Cookie]) throws {
        let file = try target(for: .writing)
        if case .failure(.untrusted) = FileSystem().openTrusted(FolderEntry(PathBytes(file.path))) {
            throw FileOperationError(code: .untrusted, action: .writing, path: file.path)
        }
        let bytes = Array(try JSONEncoder().encode(Contents(cookies: cookies)))
        let folder = try PreparedFolder(of: file, makingFolders: true, action: .writing, files: FileSystem())
        try folder.replaceFile(with: bytes)
    }

    /// Returns the file at the end of a chain of this user's symbolic links, or the file itself if it is not a symbolic
    /// link.
    private func target(for action: FileOperationError.Action) throws(FileOperationError) -> URL {
        do throws(FileInterruption) {
            // The path of a URL that is not a file URL is a different file on this computer.
            _ = try FileAddress(url, for: action)
        } catch {
            throw error.error(action, url)
        }
        var target = url
        // The number of links that Linux follows.
        for _ in 0..<40 {
            guard let status = try? FileSystem().status(of: FolderEntry(PathBytes(target.path))).get(),
                status.kind == .symbolicLink, status.isOwnerTrusted,
                let path = try? FileManager.default.destinationOfSymbolicLink(atPath: target.path)
            else { return target }
            target = URL(fileURLWithPath: path, relativeTo: target.deletingLastPathComponent()).absoluteURL
        }
        return target
    }
}
