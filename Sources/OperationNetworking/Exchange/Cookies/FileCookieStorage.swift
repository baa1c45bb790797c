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

    private struct Contents: Codable {
        var version = 1
        var cookies: [Cookie]
    }

    /// The cookies in the file; none if it is not there.
    public func load() throws -> [Cookie] {
        let read = FileReadOperation(url)
        read.start()
        do {
            let data = try read.outcome?.get() ?? Data()
            return try JSONDecoder().decode(Contents.self, from: data).cookies
        } catch OperationFailure<FileOperationError>.failed(let error) where error.code == .notFound {
            return []
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
