// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

@Suite("Files that other users may have written", .timeLimit(.minutes(1)), .serialized)
struct UntrustedFilesTests {
    /// A user other than the current one.
    ///
    /// Only the administrator can change the owner of a file.
    private static let stranger = 65_534
    private static let canGiveAway = geteuid() == 0

    private let folder = CacheFolderFixture()

    init() throws {
        try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
    }

    private func set(_ mode: Int, of url: URL) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: url.path)
    }

    private func give(_ url: URL, to user: Int) throws {
        try FileManager.default.setAttributes([.ownerAccountID: user], ofItemAtPath: url.path)
    }

    private func entry(_ url: URL) -> FolderEntry { FolderEntry(PathBytes(url.path)) }

    private func file(_ text: String = "text") throws -> URL {
        let url = folder.url.appendingPathComponent("\(UUID())")
        try Data(text.utf8).write(to: url)
        try set(0o600, of: url)
        return url
    }

    private func read(_ url: URL) -> Result<[UInt8], SystemError> { FileSystem().readTrusted(entry(url), limit: 100) }

    @Test(arguments: [
        (0o600, true), (0o644, true), (0o400, true), (0o755, true), (0o620, false), (0o602, false), (0o666, false),
        (0o664, false), (0o1666, false),
    ])
    func `a file is trusted if no other user can write to it`(_ mode: Int, _ isTrusted: Bool) throws {
        let url = try file()
        try set(mode, of: url)
        #expect(read(url) == (isTrusted ? .success(Array("text".utf8)) : .failure(.untrusted)))
    }

    @Test(arguments: [
        (0o700, true), (0o755, true), (0o1777, true), (0o777, false), (0o775, false), (0o770, false), (0o702, false),
    ])
    func `a folder is trusted if no other user can replace its contents`(_ mode: Int, _ isTrusted: Bool) throws {
        try set(mode, of: folder.url)
        #expect(FileSystem().isTrustedFolder(entry(folder.url)) == isTrusted)
    }

    @Test func `a file with a second hard link is not trusted, but an open file without links is`() throws {
        let (url, other) = (try file(), folder.url.appendingPathComponent("other"))
        #expect(link(url.path, other.path) == 0)
        #expect(read(url) == .failure(.untrusted) && read(other) == .failure(.untrusted))
        #expect(unlink(other.path) == 0)
        #expect(read(url) == .success(Array("text".utf8)))
        // Another program replaces the file after it is opened and before its status is read.
        let (open, status) = try FileSystem().openTrusted(entry(url)).get()
        #expect(status.linkCount == 1 && unlink(url.path) == 0)
        let later = try FileSystem().status(of: open).get()
        #expect(later.linkCount == 0 && later.isTrusted(as: .regular))
    }

    @Test func `a response whose file has a second hard link is not served and is removed`() throws {
        let inner = CacheFolderFixture()
        #expect(try inner.disk().keep(Data("body".utf8), at: "https://h.com/"))
        let size = inner.disk().size()
        let body = try #require(inner.files(".body").first)
        #expect(link(body.path, folder.url.appendingPathComponent("second").path) == 0)
        #expect(inner.disk().body("https://h.com/") == nil)
        // A refused file is removed immediately, or it still counts toward the size.
        let disk = inner.disk()
        #expect(size > 0 && (disk.size() > 0 || inner.files(".body").isEmpty))
        disk.forgetAll()
        #expect(inner.files(".body").isEmpty)
    }

    @Test func `links, folders, pipes and oversized files are not read`() throws {
        let (url, link) = (try file(), folder.url.appendingPathComponent("link"))
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: url)
        #expect(read(link) == .failure(.untrusted))
        #expect(read(folder.url) == .failure(SystemError(EISDIR)))
        let pipe = folder.url.appendingPathComponent("pipe")
        #expect(mkfifo(pipe.path, 0o600) == 0)
        #expect(read(pipe) == .failure(.untrusted))
        #expect(read(try file(String(repeating: "a", count: 101))) == .failure(SystemError(EFBIG)))
        #expect(read(folder.url.appendingPathComponent("none")) == .failure(SystemError(ENOENT)))
        // A folder may be reached through the user's own symbolic link.
        let way = folder.url.appendingPathComponent("way")
        try FileManager.default.createSymbolicLink(at: way, withDestinationURL: folder.url)
        #expect(FileSystem().isTrustedFolder(entry(way)))
        try set(0o777, of: folder.url)
        #expect(!FileSystem().isTrustedFolder(entry(way)))
    }

    @Test(.enabled(if: canGiveAway, "Only the administrator can change the owner of a file."))
    func `files that belong to another user are not trusted`() throws {
        let url = try file()
        try give(url, to: Self.stranger)
        #expect(read(url) == .failure(.untrusted))
        let inner = CacheFolderFixture()
        #expect(inner.disk().size() == 0)
        #expect(try inner.disk().keep(Data("body".utf8), at: "https://h.com/"))
        #expect(inner.disk().body("https://h.com/") == Data("body".utf8))
        // The files change their owner one by one, then the folder.
        for suffix in [".metadata", ".body"] {
            let file = try #require(inner.files(suffix).first)
            try give(file, to: Self.stranger)
            #expect(inner.disk().metadata("https://h.com/", now: CacheSamples.now) == nil || suffix == ".body")
            if suffix == ".metadata" { try give(file, to: 0) }
        }
        #expect(inner.disk().body("https://h.com/") == nil)
        try give(inner.url, to: Self.stranger)
        #expect(inner.disk().openWriter() == nil && inner.disk().size() == 0)
    }

    @Test(arguments: [0o777, 0o770, 0o702])
    func `a cache in a folder that others can write to is empty and changes no file`(_ mode: Int) throws {
        let inner = CacheFolderFixture()
        #expect(try inner.disk().keep(Data("body".utf8), at: "https://h.com/"))
        let names = inner.files("").map(\.lastPathComponent)
        try set(mode, of: inner.url)
        let disk = inner.disk()
        #expect(disk.body("https://h.com/") == nil && disk.size() == 0 && disk.openWriter() == nil)
        disk.forgetAll()
        #expect(inner.files("").map(\.lastPathComponent) == names)
        try set(0o700, of: inner.url)
        #expect(inner.disk().body("https://h.com/") == Data("body".utf8))
    }

    @Test(arguments: [".metadata", ".body"])
    func `a cache file that others can write to is not served`(_ suffix: String) throws {
        let inner = CacheFolderFixture()
        #expect(try inner.disk().keep(Data("body".utf8), at: "https://h.com/"))
        try set(0o666, of: try #require(inner.files(suffix).first))
        #expect(inner.disk().body("https://h.com/") == nil)
    }

    @Test func `a secret key that others may have written is not used`() throws {
        let inner = CacheFolderFixture()
        let key = inner.disk().key
        #expect(inner.disk().key == key)
        try set(0o666, of: inner.url.appendingPathComponent("secret"))
        #expect(inner.disk().key != key)
    }

    @Test func `cookies that others may have written are not sent`() async throws {
        let url = folder.url.appendingPathComponent("cookies.json")
        let home = try #require(URL(string: "https://h.com/"))
        let jar = try CookieJar(storage: FileCookieStorage(url: url))
        jar.receive(["sid=1; Max-Age=1000"], from: home)
        try await jar.save()
        func header() throws -> String? { try CookieJar(storage: FileCookieStorage(url: url)).header(for: home) }
        #expect(try header() == "sid=1")
        let content = try Data(contentsOf: url)
        for mode in [0o666, 0o620, 0o664] {
            try set(mode, of: url)
            #expect(try header() == nil)
            // The cookies in the file are not overwritten.
            let late = try CookieJar(storage: FileCookieStorage(url: url))
            late.receive(["new=1; Max-Age=1000"], from: home)
            let error = await #expect(throws: FileOperationError.self) { try await late.save() }
            #expect(error?.code == .untrusted && error?.message.contains(url.path) == true)
            #expect(try Data(contentsOf: url) == content)
        }
        try set(0o600, of: url)
        #expect(try header() == "sid=1")
        if Self.canGiveAway {
            try give(url, to: Self.stranger)
            #expect(try header() == nil)
            try give(url, to: 0)
        }
        #expect(throws: FileOperationError.self) { try FileCookieStorage(url: folder.url).load() }
    }

    @Test(arguments: ["https://h.com", "file://h.com"])
    func `a URL that names no file on this computer is not used as a path`(_ prefix: String) throws {
        let file = try file("{\"version\":1,\"cookies\":[]}")
        let storage = FileCookieStorage(url: try #require(URL(string: prefix + file.path)))
        for use in [{ _ = try storage.load() }, { try storage.save([]) }] as [() throws -> Void] {
            let error = #expect(throws: FileOperationError.self) { try use() }
            #expect(error?.code == .notAFileURL)
        }
        let place = try #require(URL(string: prefix + folder.url.path))
        let disk = DiskCache(folder: CacheFolder(url: place), limits: CacheLimits())
        #expect(try !disk.keep(Data("body".utf8), at: "http://h.com/"))
        #expect(folder.files("").map(\.lastPathComponent) == [file.lastPathComponent])
    }

    @Test func `cookies are read and saved through the user's own symbolic links, not those of others`()
        async throws
    {
        let home = try #require(URL(string: "https://h.com/"))
        let (url, link) = (folder.url.appendingPathComponent("real.json"), folder.url.appendingPathComponent("a.json"))
        let middle = folder.url.appendingPathComponent("b.json")
        try FileManager.default.createSymbolicLink(atPath: link.path, withDestinationPath: "b.json")
        try FileManager.default.createSymbolicLink(at: middle, withDestinationURL: url)
        // At first, the link leads to no file.
        for count in 1...2 {
            let jar = try CookieJar(storage: FileCookieStorage(url: link))
            #expect(jar.cookies.count == count - 1)
            jar.receive(["c\(count)=1; Max-Age=1000"], from: home)
            try await jar.save()
            #expect(try FileCookieStorage(url: url).load().count == count)
        }
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link.path) == "b.json")
        try set(0o664, of: url)
        #expect(try FileCookieStorage(url: link).load().isEmpty)
        #expect(throws: FileOperationError.self) { try FileCookieStorage(url: link).save([]) }
        try set(0o600, of: url)
        #expect(try FileCookieStorage(url: link).load().count == 2)
        if Self.canGiveAway {
            #expect(lchown(middle.path, uid_t(Self.stranger), gid_t(Self.stranger)) == 0)
            #expect(try FileCookieStorage(url: link).load().isEmpty)
            #expect(throws: FileOperationError.self) { try FileCookieStorage(url: link).save([]) }
            #expect(try FileCookieStorage(url: url).load().count == 2)
        }
        // A link that leads to itself leads to no file.
        let loop = folder.url.appendingPathComponent("loop.json")
        try FileManager.default.createSymbolicLink(atPath: loop.path, withDestinationPath: "loop.json")
        #expect(try FileCookieStorage(url: loop).load().isEmpty)
        #expect(throws: FileOperationError.self) { try FileCookieStorage(url: loop).save([]) }
    }
}
