// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileMoveTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Fails renames as if source and destination were on different file systems.
    private static let otherDevice: FileSystem.Interceptor = { call in
        let isRename = call.kind == .rename || call.kind == .renameExclusively
        return isRename && call.name?.description.hasPrefix(".operationkit-") == false ? .fail(EXDEV) : .proceed
    }

    private static let oldSystem: FileSystem.Interceptor = { $0.kind == .renameExclusively ? .fail(ENOSYS) : .proceed }

    private static let plain: FileSystem.Interceptor = { _ in .proceed }

    private static let ways = ["plain", "otherDevice", "oldSystem"]

    private func move(
        _ source: String, _ destination: String, _ way: String = "plain", _ options: FileTransferOptions = .init()
    ) -> FileMoveOperation {
        let interceptor = ["otherDevice": Self.otherDevice, "oldSystem": Self.oldSystem][way] ?? Self.plain
        return FileMoveOperation(from: folder[source], to: folder[destination], options: options)
            .intercepted(interceptor)
    }

    private static let transfers = ways + ["copy"]

    /// Moves or copies a file.
    private func transfer(
        _ source: String, _ destination: String, _ way: String, _ options: FileTransferOptions = .init()
    ) -> FileOperation<URL> {
        guard way == "copy" else { return move(source, destination, way, options) }
        return FileCopyOperation(from: folder[source], to: folder[destination], options: options)
    }

    /// Returns the names that are left in the folder after a transfer.
    private func names(afterMoving moved: [String], by way: String, of source: String) -> [String] {
        way == "copy" ? (moved + [source]).sorted() : moved
    }

    @Test(arguments: ways) func `a file is moved`(way: String) throws {
        try folder.write(bytes: 600_000, to: "file")
        #expect(try move("file", "moved", way).success() == folder["moved"])
        #expect(folder.names() == ["moved"])
        #expect(try areSame(Data(contentsOf: folder["moved"]), Data.patterned(600_000)))
    }

    @Test(arguments: ways) func `a move of a symbolic link moves the link itself`(way: String) throws {
        try folder.write("text", to: "file")
        try folder.link("link", to: "file")
        _ = try move("link", "moved", way).success()
        #expect(folder.names() == ["file", "moved"])
        #expect(folder.isLink("moved"))
    }

    @Test(arguments: transfers)
    func `a move or copy onto an existing file is refused unless replacing is allowed`(way: String) throws {
        try folder.write("new", to: "file")
        try folder.write("old", to: "moved")
        transfer("file", "moved", way)
            .expectFailure(.alreadyExists, way == "copy" ? .copying : .moving, at: folder["moved"], and: folder["file"])
        #expect(folder.text("file") == "new" && folder.text("moved") == "old")
        _ = try transfer("file", "moved", way, .replacing).success()
        #expect(folder.text("moved") == "new")
        #expect(folder.names() == names(afterMoving: ["moved"], by: way, of: "file"))
    }

    @Test(arguments: transfers)
    func `only a directory can replace a directory, and only an empty one`(way: String) throws {
        try folder.write("text", to: "file")
        try folder.makeFolder("tree/sub")
        try folder.makeFolder("empty")
        try folder.makeFolder("filled/sub")
        #expect(transfer("file", "filled", way, .replacing).failure()?.code == .isDirectory)
        #expect(transfer("tree", "file", way, .replacing).failure()?.code == .notADirectory)
        #expect(transfer("tree", "filled", way, .replacing).failure()?.code == .directoryNotEmpty)
        #expect(transfer("tree", "empty", way).failure()?.code == .alreadyExists)
        #expect(folder.names() == ["empty", "file", "filled", "tree"])
        #expect(transfer("tree", "empty", way, .replacing).failure() == nil)
        #expect(folder.names(in: "empty") == ["sub"])
        #expect(folder.names() == names(afterMoving: ["empty", "file", "filled"], by: way, of: "tree"))
    }

    @Test func `a directory that is not empty is reported as such if the file system calls it existing`() throws {
        try folder.makeFolder("tree")
        try folder.makeFolder("filled/sub")
        // XFS reports this error.
        let move = FileMoveOperation(from: folder["tree"], to: folder["filled"], options: .replacing)
            .intercepted { $0.kind == .rename ? .fail(EEXIST) : .proceed }
        #expect(move.failure()?.code == .directoryNotEmpty)
        #expect(folder.names() == ["filled", "tree"])
    }

    @Test func `a file that the file system refuses to replace is not reported as a directory`() throws {
        try folder.write("new", to: "file")
        try folder.write("old", to: "moved")
        let move = FileMoveOperation(from: folder["file"], to: folder["moved"], options: .replacing)
            .intercepted { $0.kind == .rename ? .fail(EEXIST) : .proceed }
        #expect(move.failure()?.code == .alreadyExists)
        #expect(folder.text("file") == "new" && folder.text("moved") == "old")
    }

    @Test(arguments: transfers, ["tree/moved", "tree/sub/moved"])
    func `a directory cannot be moved or copied into itself`(way: String, to: String) throws {
        try folder.makeFolder("tree/sub")
        try folder.write("text", to: "tree/file")
        for options in [FileTransferOptions(), .replacing] {
            transfer("tree", to, way, options).expectFailure(.destinationInsideSource, at: folder[to])
            #expect(folder.names(in: "tree") == ["file", "sub"])
            #expect(folder.names(in: "tree/sub") == [])
        }
    }

    @Test(arguments: transfers)
    func `a move or copy of a missing file fails with the paths of source and destination`(way: String) {
        transfer("missing", "moved", way)
            .expectFailure(.notFound, way == "copy" ? .copying : .moving, at: folder["missing"], and: folder["moved"])
        #expect(folder.names() == [])
    }

    @Test(arguments: transfers)
    func `missing directories are created only with createsDirectories`(way: String) throws {
        try folder.write("text", to: "file")
        transfer("file", "a/b/moved", way).expectFailure(.folderNotFound, at: folder["a/b/moved"])
        let options = FileTransferOptions(createsDirectories: true)
        #expect(transfer("missing", "a/b/moved", way, options).failure()?.code == .notFound)
        #expect(folder.names() == ["file"])
        _ = try transfer("file", "a/b/moved", way, options).success()
        #expect(folder.text("a/b/moved") == "text")
        #expect(folder.names() == names(afterMoving: ["a"], by: way, of: "file"))
    }

    @Test(arguments: ways) func `a move does not replace a pipe`(way: String) throws {
        try folder.write("text", to: "file")
        #expect(mkfifo(folder["pipe"].path, 0o600) == 0)
        #expect(move("file", "pipe", way, .replacing).failure()?.code == .unsupportedKind)
        #expect(folder.names() == ["file", "pipe"])
    }

    @Test(arguments: ["second", "File"])
    func `moving a file onto a hard link to itself leaves only that link, even if only the case of its name differs`(
        name: String
    ) throws {
        let url = try folder.write("text", to: "file")
        // On a volume that ignores case, the link `File` cannot be created.
        guard link(url.path, folder[name].path) == 0 else { return #expect(name == "File") }
        _ = try move("file", name, "plain", .replacing).success()
        #expect(folder.names() == [name])
        #expect(folder.text(name) == "text")
    }

    @Test func `a file moved onto itself stays, even with another spelling of its path`() throws {
        let url = try folder.write("text", to: "file")
        try FileManager.default.linkItem(at: url, to: folder["second"])
        try folder.link("here", to: ".")
        _ = try move("file", "file", "plain", .replacing).success()
        _ = try move("file", "here/file", "plain", .replacing).success()
        #expect(folder.text("file") == "text")
        #expect(move("file", "here/file").failure()?.code == .alreadyExists)
        #expect(folder.names() == ["file", "here", "second"])
    }

    @Test func `one of eight concurrent moves to the same path succeeds, and no file is lost`() async throws {
        let folder = folder
        for interceptor in [Self.plain, Self.oldSystem] {
            try await TestThread.run {
                let team = ThreadTeam(count: 8)
                for round in 0..<20 {
                    let target = "target-\(round)"
                    for number in 0..<8 { try folder.write("\(number)", to: "source-\(number)") }
                    let operations = (0..<8).map { number in
                        FileMoveOperation(
                            from: folder["source-\(number)"], to: folder[target], options: .init(isDurable: false)
                        ).intercepted(interceptor)
                    }
                    team.run(operations.map { operation in { operation.start() } })
                    let winners = operations.indices.filter { operations[$0].outcome?.result != nil }
                    #expect(winners.count == 1)
                    #expect(folder.text(target) == winners.first.map { "\($0)" })
                    #expect(folder.names().filter { $0.hasPrefix("source") }.count == 7)
                    try FileManager.default.removeItem(at: folder[target])
                }
            }
        }
    }

    @Test(arguments: [false, true]) func `a move keeps an original that changed after it was copied`(
        isReplaced: Bool
    ) throws {
        try folder.write("old", to: "file")
        try folder.write("new", to: "other")
        let folder = folder
        let move = FileMoveOperation(from: folder["file"], to: folder["moved"]).intercepted { call in
            if call.kind == .renameExclusively, call.name?.description.hasPrefix(".operationkit-") == true {
                // The copy is complete, and the original is not removed yet.
                if isReplaced { rename(folder["other"].path, folder["file"].path) }
                if !isReplaced { _ = try? folder.write("newer", to: "file") }
            }
            return Self.otherDevice(call)
        }
        move.expectFailure(.changedMeanwhile, .removing, at: folder["file"])
        #expect(folder.text("file") == (isReplaced ? "new" : "newer"))
        #expect(folder.text("moved") == "old")
    }

    @Test(arguments: [false, true]) func `a durable move also synchronizes the removal of the original`(
        isDurable: Bool
    ) throws {
        try folder.write("text", to: "file")
        let calls = EventRecorder<FileSystemCall.Kind>()
        let move = FileMoveOperation(
            from: folder["file"], to: folder["moved"], options: .init(isDurable: isDurable)
        ).intercepted { call in
            calls.record(call.kind)
            return Self.otherDevice(call)
        }
        _ = try move.success()
        let order = calls.events.filter { [.remove, .synchronize].contains($0) }
        // The synchronized changes are the copy, its name, and the removal of the original.
        #expect(order == (isDurable ? [.synchronize, .synchronize, .remove, .synchronize] : [.remove]))
    }

    @Test func `a move creates its directory again if another operation removes it`() throws {
        try folder.write("text", to: "file")
        let folder = folder, renames = CallCounter()
        let options = FileTransferOptions(createsDirectories: true)
        let move = FileMoveOperation(from: folder["file"], to: folder["one/two/moved"], options: options)
        _ = try move.intercepted { call in
            if call.kind == .renameExclusively, renames.next() == 1 {
                try? FileManager.default.removeItem(at: folder["one"])
            }
            return .proceed
        }.success()
        #expect(folder.text("one/two/moved") == "text")
        #expect(folder.names() == ["one"])
    }

    @Test func `a move that cannot remove its original reports its path and keeps the copy`() throws {
        try folder.write("text", to: "file")
        let move = FileMoveOperation(from: folder["file"], to: folder["moved"]).intercepted { call in
            call.kind == .remove ? .fail(EACCES) : Self.otherDevice(call)
        }
        move.expectFailure(.permissionDenied, .removing, at: folder["file"])
        #expect(folder.text("moved") == "text")
    }
}
