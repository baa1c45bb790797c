// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileCopyTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test(arguments: [0, 1, 262_144, 1_000_001]) func `a file is copied completely`(size: Int) throws {
        try folder.write(bytes: size, to: "file")
        #expect(try FileCopyOperation(from: folder["file"], to: folder["copy"]).success() == folder["copy"])
        #expect(try areSame(Data(contentsOf: folder["copy"]), Data.patterned(size)))
        #expect(folder.names() == ["copy", "file"])
    }

    @Test func `a copy keeps the permissions and the modification time`() throws {
        try folder.write("text", to: "file")
        try folder.setPermissions(0o751, of: "file")
        let date = Date(timeIntervalSince1970: 1_000_000_000)
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: folder["file"].path)
        _ = try FileCopyOperation(from: folder["file"], to: folder["copy"]).success()
        #expect(folder.permissions(of: "copy") == 0o751)
        #expect(folder.attribute(.modificationDate, of: "copy") as? Date == date)
    }

    @Test func `a directory tree is copied with its links, permissions and empty directories`() throws {
        try folder.makeFolder("tree/sub/deeper")
        try folder.makeFolder("tree/empty")
        try folder.write("one", to: "tree/one")
        try folder.write("two", to: "tree/sub/deeper/two")
        try folder.link("tree/link", to: "sub/deeper/two")
        try folder.link("tree/sub/up", to: "..")
        try folder.link("tree/nowhere", to: "/no/such/file")
        try folder.setPermissions(0o500, of: "tree/sub")
        _ = try FileCopyOperation(from: folder["tree"], to: folder["copy"]).success()
        #expect(folder.names(in: "copy") == ["empty", "link", "nowhere", "one", "sub"])
        #expect(folder.names(in: "copy/sub") == ["deeper", "up"])
        #expect(folder.names(in: "copy/empty") == [])
        #expect(folder.text("copy/sub/deeper/two") == "two")
        #expect(folder.text("copy/one") == "one")
        #expect(folder.isLink("copy/link") && folder.isLink("copy/sub/up") && folder.isLink("copy/nowhere"))
        let target = try FileManager.default.destinationOfSymbolicLink(atPath: folder["copy/nowhere"].path)
        #expect(target == "/no/such/file")
        #expect(folder.permissions(of: "copy/sub") == 0o500)
        try folder.setPermissions(0o700, of: "tree/sub")
        try folder.setPermissions(0o700, of: "copy/sub")
        #expect(folder.names() == ["copy", "tree"])
    }

    @Test func `a symbolic link is copied as a link`() throws {
        try folder.write("text", to: "file")
        try folder.link("link", to: "file")
        _ = try FileCopyOperation(from: folder["link"], to: folder["copy"]).success()
        #expect(folder.isLink("copy"))
        #expect(folder.text("copy") == "text")
    }

    @Test func `a file that is copied onto itself is unchanged`() throws {
        try folder.write("text", to: "file")
        #expect(FileCopyOperation(from: folder["file"], to: folder["file"]).failure()?.code == .alreadyExists)
        _ = try FileCopyOperation(from: folder["file"], to: folder["file"], options: .replacing).success()
        #expect(folder.text("file") == "text")
    }

    @Test func `a pipe or a device cannot be copied`() throws {
        try folder.makeFolder("tree/sub")
        #expect(mkfifo(folder["tree/sub/pipe"].path, 0o600) == 0)
        FileCopyOperation(from: folder["tree"], to: folder["copy"])
            .expectFailure(.unsupportedKind, at: folder["tree/sub/pipe"], and: folder["copy/sub/pipe"])
        #expect(folder.names() == ["tree"])
        let device = FileCopyOperation(from: URL(fileURLWithPath: "/dev/zero"), to: folder["copy"])
        #expect(device.failure()?.code == .unsupportedKind)
    }

    @Test func `file names that are not valid UTF-8 are copied byte for byte`() throws {
        try folder.makeFolder("tree")
        let name = PathBytes([0x66, 0xFF, 0xFE, 0x67])
        let files = FileSystem()
        let tree = try files.openFolder(FolderEntry(PathBytes(folder["tree"].path))).get()
        _ = try files.createFile(FolderEntry(name, in: tree), permissions: 0o600).get()
        _ = try FileCopyOperation(from: folder["tree"], to: folder["copy"]).success()
        let copy = try files.openFolder(FolderEntry(PathBytes(folder["copy"].path))).get()
        #expect(try files.names(in: copy).get() == [name])
    }

    @Test(arguments: [false, true]) func `a file that is replaced during the copy of its directory is refused`(
        byLink: Bool
    ) throws {
        try folder.makeFolder("tree")
        try folder.write("text", to: "tree/file")
        try folder.write("secret", to: "secret")
        if byLink { try folder.link("other", to: "secret") } else { try folder.write("other", to: "other") }
        let folder = folder
        let copy = FileCopyOperation(from: folder["tree"], to: folder["copy"]).intercepted { call in
            guard call.kind == .open, call.name?.description == "file" else { return .proceed }
            // Runs between reading the status of the file and opening it.
            rename(folder["other"].path, folder["tree/file"].path)
            return .proceed
        }
        copy.expectFailure(byLink ? .tooManySymbolicLinks : .changedMeanwhile, at: folder["tree/file"])
        #expect(folder.names() == ["secret", "tree"])
    }

    /// A sandbox allows reading the file that the user picked, but not opening its directory.
    private func withClosedFolder(_ copy: FileCopyOperation) -> FileCopyOperation {
        copy.intercepted { call in
            call.kind == .open && call.name?.description.hasSuffix("/closed/") == true ? .fail(EPERM) : .proceed
        }
    }

    @Test func `a file is copied from a directory that cannot be opened`() throws {
        try folder.makeFolder("closed")
        try folder.write(bytes: 300_000, to: "closed/file")
        try folder.setPermissions(0o640, of: "closed/file")
        let copy = withClosedFolder(FileCopyOperation(from: folder["closed/file"], to: folder["copy"]))
        #expect(try copy.success() == folder["copy"])
        #expect(try areSame(Data(contentsOf: folder["copy"]), Data.patterned(300_000)))
        #expect(folder.permissions(of: "copy") == 0o640 && folder.names() == ["closed", "copy"])
    }

    @Test(arguments: ["tree", "link"])
    func `a directory or link inside a directory that cannot be opened is refused`(name: String) throws {
        try folder.makeFolder("closed/tree")
        try folder.write("text", to: "closed/tree/file")
        try folder.link("closed/link", to: "tree/file")
        let copy = withClosedFolder(FileCopyOperation(from: folder["closed/\(name)"], to: folder["copy"]))
        #expect(copy.failure()?.code == .permissionDenied)
        #expect(folder.names() == ["closed"])
    }
}
