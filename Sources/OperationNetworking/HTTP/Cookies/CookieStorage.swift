// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Where a jar keeps its cookies from one run of the program to the next.
///
/// A jar calls one method at a time, on a queue of its own.
public protocol CookieStorage: Sendable {
    /// The cookies that were saved last; none if nothing was.
    func load() throws -> [Cookie]

    /// Puts these cookies in the place of those that were saved before.
    func save(_ cookies: [Cookie]) throws
}

/// Keeps cookies as long as the program runs.
///
/// For a jar that has no storage at all give none; this one is for two jars after another, and for tests.
public final class MemoryCookieStorage: CookieStorage {
    private let cookies: Locked<[Cookie]>

    /// Makes a storage that holds these cookies.
    public init(_ cookies: [Cookie] = []) {
        self.cookies = Locked(cookies)
    }

    /// The cookies that were saved last.
    public func load() -> [Cookie] { cookies.withLock { $0 } }

    /// Keeps the cookies.
    public func save(_ cookies: [Cookie]) { self.cookies.withLock { $0 = cookies } }
}

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

    /// The largest file that is read.
    ///
    /// A jar has no more than a few thousand cookies of a few kilobytes.
    private static let largest = 256 << 20

    private struct Contents: Codable {
        var version = 1
        var cookies: [Cookie]
    }

    /// Returns the cookies in the file, or none if there is no file.
    ///
    /// If the URL names a symbolic link of the user for whom this program runs, the cookies are those in the file to
    /// which the link leads. A file that another user could have written counts as empty. So does a file with a second
    /// name (a hard link), and a symbolic link of another user. Otherwise that user could choose what this program
    /// sends. OperationKit reports such a file with the notice `OperationNotice.Kind.untrustedFile`, and ``save(_:)``
    /// does not replace it.
    public func load() throws -> [Cookie] {
        let file = target
        switch FileSystem().readTrusted(FolderEntry(PathBytes(file.path)), limit: Self.largest) {
        case .success(let bytes): return try JSONDecoder().decode(Contents.self, from: Data(bytes)).cookies
        case .failure(SystemError(ENOENT)): return []
        case .failure(.untrusted):
            OperationDiagnostics.report(
                .untrustedFile, by: "FileCookieStorage",
                "The file \(file.path) belongs to another user, or other users can write to it, or it is a link, so its "
                    + "cookies are not used, and no cookies are saved there. Remove it, set its permissions to 0600, or "
                    + "use a file in a folder of your own.")
            return []
        case .failure(let error):
            throw FileOperationError(
                code: FileOperationError.Code(systemErrorNumber: error.number), action: .reading, path: file.path,
                systemErrorNumber: error.number)
        }
    }

    /// Writes the cookies to the file.
    ///
    /// If the URL names a symbolic link of the user for whom this program runs, the file to which the link leads is
    /// replaced, and the link stays.
    ///
    /// - Throws: A `FileOperationError`. Its code is `untrusted` if ``load()`` would not use the cookies in the file
    ///   that is there.
    public func save(_ cookies: [Cookie]) throws {
        let file = target
        if case .failure(.untrusted) = FileSystem().openTrusted(FolderEntry(PathBytes(file.path))) {
            throw FileOperationError(code: .untrusted, action: .writing, path: file.path)
        }
        let data = try JSONEncoder().encode(Contents(cookies: cookies))
        let options = FileWriteOptions(createsDirectories: true, permissions: 0o600)
        let write = FileWriteOperation(data, to: file, options: options)
        write.start()
        _ = try write.outcome?.get()
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
