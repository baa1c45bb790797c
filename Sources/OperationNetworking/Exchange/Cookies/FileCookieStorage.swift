// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Keeps cookies in a file that only its owner can read.
///
/// The file is replaced in one step, so that a crash leaves the cookies from before or those from after. It is made for
/// one jar: where two programs save to one file, the cookies of the last one to save are there.
public struct FileCookieStorage: CookieStorage {
    /// The file.
    public let url: URL

    /// Makes a storage at a place on disk; missing directories are made when it saves.
    public init(url: URL) {
        self.url = url
    }

    /// The largest file that is read. A jar has no more than a few thousand cookies of a few kilobytes.
    private static let largest = 256 << 20

    private struct Contents: Codable {
        var version = 1
        var cookies: [Cookie]
    }

    /// Returns the cookies in the file, or none if there is no file.
    ///
    /// A file that another user could have written counts as empty, and so does a symbolic link. Otherwise that user
    /// could choose what this program sends. OperationKit reports such a file with the notice
    /// `OperationNotice.Kind.untrustedFile`.
    public func load() throws -> [Cookie] {
        switch FileSystem().readTrusted(FolderEntry(PathBytes(url.path)), limit: Self.largest) {
        case .success(let bytes): return try JSONDecoder().decode(Contents.self, from: Data(bytes)).cookies
        case .failure(SystemError(ENOENT)): return []
        case .failure(.untrusted):
            OperationDiagnostics.report(
                .untrustedFile, by: "FileCookieStorage",
                "The file \(url.path) is a link, belongs to another user, or other users can write to it, so its cookies are "
                    + "not used. Remove it, or use a file in a folder of your own.")
            return []
        case .failure(let error):
            throw FileOperationError(
                code: FileOperationError.Code(systemErrorNumber: error.number), action: .reading, path: url.path,
                systemErrorNumber: error.number)
        }
    }

    /// Writes the cookies to the file.
    public func save(_ cookies: [Cookie]) throws {
        let data = try JSONEncoder().encode(Contents(cookies: cookies))
        let options = FileWriteOptions(createsDirectories: true, permissions: 0o600)
        let write = FileWriteOperation(data, to: url, options: options)
        write.start()
        _ = try write.outcome?.get()
    }
}
