// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileDepthTests {
    private let depth = 2000
    private let files = FileSystem()

    /// Creates nested directories that are too deep for a path, with a file in the innermost one.
    private func makeDeepTree(at url: URL) throws {
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        var folder = try files.openFolder(FolderEntry(PathBytes(url.path))).get()
        for _ in 0..<depth {
            let entry = FolderEntry(PathBytes("directory"), in: folder)
            try files.makeDirectory(entry, permissions: 0o755).get()
            folder = try files.openFolder(entry).get()
        }
        _ = try files.createFile(FolderEntry(PathBytes("file"), in: folder), permissions: 0o644).get()
    }

    /// Returns the depth of the tree, or `nil` if the file is not in the innermost directory.
    private func depth(at url: URL) throws -> Int? {
        var folder = try files.openFolder(FolderEntry(PathBytes(url.path))).get()
        var depth = 0
        while case .success(let next) = files.openFolder(FolderEntry(PathBytes("directory"), in: folder)) {
            folder = next
            depth += 1
        }
        return try files.names(in: folder).get() == [PathBytes("file")] ? depth : nil
    }

    @Test func `a very deep tree is copied, moved and removed on a small stack`() async throws {
        let folder = try TemporaryFolder()
        try makeDeepTree(at: folder["tree"])
        try await TestThread.run(stackSize: 256 * 1024) {
            _ = try FileCopyOperation(
                from: folder["tree"], to: folder["copy"], options: .init(isDurable: false)
            ).success()
        }
        #expect(try depth(at: folder["copy"]) == depth)
        #expect(try depth(at: folder["tree"]) == depth)
        _ = try FileMoveOperation(from: folder["copy"], to: folder["moved"]).success()
        #expect(try depth(at: folder["moved"]) == depth)
        try await TestThread.run(stackSize: 256 * 1024) {
            for name in ["moved", "tree"] { _ = try FileRemoveOperation(folder[name]).success() }
        }
        #expect(folder.names() == [])
    }

    @Test func `a failure at the bottom of a deep copy leaves nothing behind and reports the path`() throws {
        let folder = try TemporaryFolder()
        try makeDeepTree(at: folder["tree"])
        let copy = FileCopyOperation(from: folder["tree"], to: folder["copy"], options: .init(isDurable: false))
        let error = copy.intercepted { call in
            call.kind == .open && call.name?.description == "file" ? .fail(EIO) : .proceed
        }.failure()
        let bottom = String(repeating: "/directory", count: depth) + "/file"
        #expect(error?.path == folder["tree"].path + bottom)
        #expect(error?.otherPath == folder["copy"].path + bottom)
        #expect(folder.names() == ["tree"])
    }

    @Test func `a directory with 3,000 files is copied and removed`() throws {
        let folder = try TemporaryFolder()
        try folder.makeFolder("tree")
        for number in 0..<3000 { try folder.write("", to: "tree/\(number)") }
        _ = try FileCopyOperation(from: folder["tree"], to: folder["copy"], options: .init(isDurable: false)).success()
        #expect(folder.names(in: "copy").count == 3000)
        #expect(try FileRemoveOperation(folder["tree"]).success())
        #expect(folder.names() == ["copy"])
    }

    /// Returns the number of files and directories in the folder that the process has open.
    private func openFiles(below folder: TemporaryFolder) -> Int {
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return numbers.count { number in
            let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
            return path?.hasPrefix(folder.url.path) == true
        }
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/proc/self/fd")))
    func `a failed copy leaves no file open`() throws {
        let folder = try TemporaryFolder()
        try folder.makeFolder("tree/sub")
        try folder.write("text", to: "tree/sub/file")
        for number in 1..<60 {
            let plan = FaultPlan(failing: number, with: EIO)
            FileCopyOperation(from: folder["tree"], to: folder["copy"], options: .replacing)
                .intercepted(plan.interceptor).start()
            #expect(openFiles(below: folder) == 0, "after a failed \(plan.name) call")
            FileRemoveOperation(folder["copy"], ignoresMissing: true).start()
        }
        let file = try files.open(FolderEntry(PathBytes(folder["tree/sub/file"].path)), O_RDONLY).get()
        #expect(openFiles(below: folder) == 1)
        withExtendedLifetime(file) {}
    }
}
