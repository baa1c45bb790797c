// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A storage that keeps the cookies of a jar between launches of the program.
///
/// A jar calls ``load()`` once, on the thread that creates the jar. After that, the jar calls ``save(_:)`` on its own
/// queue, one call at a time.
public protocol CookieStorage: Sendable {
    /// Returns the cookies that were saved last, or an empty array if none were saved.
    func load() throws -> [Cookie]

    /// Saves these cookies in place of the cookies that were saved before.
    func save(_ cookies: [Cookie]) throws
}

/// A storage that keeps cookies in memory.
///
/// Use this storage in tests, or to pass the cookies of one jar to another. A jar without a storage keeps its cookies
/// in memory as well.
public final class MemoryCookieStorage: CookieStorage {
    private let cookies: Locked<[Cookie]>

    /// Creates a storage that contains the given cookies.
    public init(_ cookies: [Cookie] = []) {
        self.cookies = Locked(cookies)
    }

    /// Returns the cookies that were saved last.
    public func load() -> [Cookie] { cookies.withLock { $0 } }

    /// Saves these cookies in place of the cookies that were saved before.
    public func save(_ cookies: [Cookie]) { self.cookies.withLock { $0 = cookies } }
}

/// A storage that keeps cookies in a file that only its owner can read.
///
/// The file is replaced in one step, so that a crash leaves either the old or the new cookies. Use a file for one jar
/// only. If two programs save to the same file, the file contains the cookies that were saved last.
public struct FileCookieStorage: CookieStorage {
    /// The URL of the file.
    public let url: URL

    /// Creates a storage that uses a file.
    ///
    /// The storage creates missing directories when it saves.
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

    /// Returns the cookies in the file, or none if there is no file.
    ///
    /// If the URL names a symbolic link that belongs to the current user, this method reads the file that the link
    /// points to. A file counts as empty if another user could have written it, or if it has a second hard link. A
    /// symbolic link of another user also counts as an empty file. Otherwise, that user could choose the cookies that
    /// this program sends. OperationKit reports such a file with the notice `OperationNotice.Kind.untrustedFile`, and
    /// ``save(_:)`` does not replace it.
    ///
    /// - Throws: A `FileOperationError` if the file cannot be read, or the error of the decoder if the file is damaged.
    public func load() throws -> [Cookie] {
        let file = target
        switch FileSystem().readTrusted(FolderEntry(PathBytes(file.path)), limit: Self.largest) {
        case .success(let bytes): return try JSONDecoder().decode(Contents.self, from: Data(bytes)).cookies
        case .failure(SystemError(ENOENT)): return []
        case .failure(.untrusted):
            OperationDiagnostics.report(
                .untrustedFile, by: "FileCookieStorage",
                "The file \(file.path) belongs to another user, other users can write to it, or it is a link. Its "
                    + "cookies are not used, and no cookies are saved there. Remove it, set its permissions to 0600, "
                    + "or use a file in your own folder.")
            return []
        case .failure(let error):
            throw FileOperationError(
                code: FileOperationError.Code(systemErrorNumber: error.number), action: .reading, path: file.path,
                systemErrorNumber: error.number)
        }
    }

    /// Writes the cookies to the file.
    ///
    /// If the URL names a symbolic link that belongs to the current user, this method replaces the file that the link
    /// points to and keeps the link.
    ///
    /// - Throws: A `FileOperationError`. Its code is `untrusted` if ``load()`` would not use the cookies in the
    ///   existing file.
    public func save(_ cookies: [Cookie]) throws {
        let file = target
        if case .failure(.untrusted) = FileSystem().openTrusted(FolderEntry(PathBytes(file.path))) {
            throw FileOperationError(code: .untrusted, action: .writing, path: file.path)
        }
        let bytes = Array(try JSONEncoder().encode(Contents(cookies: cookies)))
        let folder = try PreparedFolder(of: file, makingFolders: true, action: .writing, files: FileSystem())
        try folder.replaceFile(with: bytes)
    }

    /// The file to which the symbolic links of this user lead, or the file itself if it is not such a link.
    private var target: URL {
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
