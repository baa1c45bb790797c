// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileRemoveTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `a file is removed`() throws {
        try folder.write("text", to: "file")
        #expect(try FileRemoveOperation(folder["file"]).success())
        #expect(folder.names() == [])
    }

    @Test func `removing a directory tree keeps the targets of its symbolic links`() throws {
        try folder.makeFolder("tree/sub/deeper")
        try folder.makeFolder("outside")
        try folder.write("text", to: "outside/file")
        try folder.write("text", to: "tree/sub/deeper/file")
        try folder.link("tree/outside", to: "../outside")
        try folder.link("tree/sub/file", to: folder["outside/file"].path)
        #expect(try FileRemoveOperation(folder["tree"]).success())
        #expect(folder.names() == ["outside"])
        #expect(folder.text("outside/file") == "text")
    }

    @Test func `removing a symbolic link keeps its target`() throws {
        try folder.makeFolder("outside")
        try folder.write("text", to: "outside/file")
        try folder.link("link", to: "outside")
        try folder.link("nowhere", to: "nothing")
        #expect(try FileRemoveOperation(folder["link"]).success())
        #expect(try FileRemoveOperation(folder["nowhere"]).success())
        #expect(folder.names() == ["outside"])
        #expect(folder.text("outside/file") == "text")
    }

    @Test func `a pipe is removed`() throws {
        #expect(mkfifo(folder["pipe"].path, 0o600) == 0)
        #expect(try FileRemoveOperation(folder["pipe"]).success())
    }

    @Test func `a missing file is an error, or the result false with ignoresMissing`() throws {
        for name in ["missing", "missing/below"] {
            FileRemoveOperation(folder[name]).expectFailure(.notFound, .removing, at: folder[name])
            #expect(try FileRemoveOperation(folder[name], ignoresMissing: true).success() == false)
        }
        try folder.write("", to: "file")
        #expect(try FileRemoveOperation(folder["file"], ignoresMissing: true).success())
        try folder.write("", to: "file")
        let error = FileRemoveOperation(folder["file/below"], ignoresMissing: true).failure()
        #expect(error?.code == .notADirectory)
    }

    @Test func `a failure inside a directory tree reports the path of the failed file`() throws {
        try folder.makeFolder("tree/sub")
        try folder.write("", to: "tree/sub/file")
        FileRemoveOperation(folder["tree"]).intercepted { call in
            call.kind == .remove && call.name?.description == "file" ? .fail(EACCES) : .proceed
        }.expectFailure(.permissionDenied, at: folder["tree/sub/file"])
    }

    @Test func `a removal succeeds although other code removes files at the same time`() throws {
        try folder.makeFolder("tree/sub")
        for number in 0..<10 { try folder.write("", to: "tree/sub/\(number)") }
        let folder = folder
        let remove = FileRemoveOperation(folder["tree"]).intercepted { call in
            if call.kind == .remove || call.kind == .status, let name = call.name?.description, "5" <= name, name <= "9"
            {
                try? FileManager.default.removeItem(at: folder["tree/sub/\(name)"])
            }
            return .proceed
        }
        #expect(try remove.success())
        #expect(folder.names() == [])
    }

    @Test func `a removal succeeds although a directory is removed before it is entered`() throws {
        try folder.makeFolder("tree/sub")
        for number in 0..<5 { try folder.write("", to: "tree/\(number)") }
        let folder = folder
        let remove = FileRemoveOperation(folder["tree"], ignoresMissing: true).intercepted { call in
            if call.kind == .open, call.name?.description == "sub" {
                try? FileManager.default.removeItem(at: folder["tree/sub"])
            }
            return .proceed
        }
        #expect(try remove.success())
        #expect(folder.names() == [])
    }

    @Test func `a directory that cannot be read is removed if it is empty`() throws {
        for name in ["tree", "sub"] {
            try folder.makeFolder("tree/sub")
            let remove = FileRemoveOperation(folder["tree"]).intercepted { call in
                call.kind == .open && call.name?.description == name ? .fail(EACCES) : .proceed
            }
            if name == "sub" {
                #expect(try remove.success())
                #expect(folder.names() == [])
            } else {
                remove.expectFailure(.permissionDenied, at: folder["tree"])
                #expect(folder.names(in: "tree") == ["sub"])
            }
        }
    }

    @Test func `a missing directory inside the tree is an error despite ignoresMissing`() throws {
        try folder.makeFolder("tree/sub")
        let lists = CallCounter()
        let remove = FileRemoveOperation(folder["tree"], ignoresMissing: true).intercepted { call in
            // Some systems report this error for a directory that was removed.
            call.kind == .list && lists.next() == 2 ? .fail(ENOENT) : .proceed
        }
        remove.expectFailure(.notFound, at: folder["tree/sub"])
        #expect(folder.names() == ["tree"])
    }

    @Test func `a removal fails and touches nothing else if its directory is moved elsewhere`() throws {
        try folder.makeFolder("tree/sub/deeper")
        try folder.makeFolder("elsewhere")
        try folder.write("text", to: "elsewhere/file")
        try folder.write("text", to: "tree/sub/deeper/file")
        let folder = folder
        let remove = FileRemoveOperation(folder["tree"]).intercepted { call in
            if call.kind == .remove, call.name?.description == "file" {
                try? FileManager.default.moveItem(at: folder["tree/sub/deeper"], to: folder["elsewhere/deeper"])
            }
            return .proceed
        }
        // The parent of the moved directory is now another one.
        #expect(remove.failure()?.code == .changedMeanwhile)
        #expect(folder.text("elsewhere/file") == "text")
    }

    @Test func `two concurrent removals of the same directory tree both end`() async throws {
        let folder = folder
        try await TestThread.run {
            let team = ThreadTeam(count: 2)
            for _ in 0..<20 {
                for number in 0..<20 {
                    try folder.makeFolder("tree/\(number)/sub")
                    try folder.write("", to: "tree/\(number)/sub/file")
                }
                let operations = (0..<2).map { _ in FileRemoveOperation(folder["tree"], ignoresMissing: true) }
                team.run(operations.map { operation in { operation.start() } })
                for operation in operations { #expect(operation.outcome?.cancellationCause == nil) }
                if !folder.names().isEmpty { #expect(try FileRemoveOperation(folder["tree"]).success()) }
            }
        }
    }
}
