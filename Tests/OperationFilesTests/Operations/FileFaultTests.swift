// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import Testing

/// Fails the first system call, then the second, and so on, until an operation runs without a fault.
@Suite(.timeLimit(.minutes(2)))
struct FileFaultTests {
    private static let writing: Set<FileSystemCall.Kind> = [
        .write, .synchronize, .makeDirectory, .makeLink, .makeSymbolicLink, .rename, .renameExclusively,
    ]

    /// Runs `round` with one plan after another, and returns the kinds of the calls that failed.
    private func failEachCall(
        otherDevice: Bool = false, _ round: (FaultPlan) throws -> Void
    ) throws -> [FileSystemCall.Kind] {
        var failed: [FileSystemCall.Kind] = []
        for lasting in [[], Self.writing] {
            for number in 1...1000 {
                let errorNumber = lasting.isEmpty ? EIO : ENOSPC
                let plan = FaultPlan(
                    failing: number, with: errorNumber, lasting: lasting, isOtherDevice: otherDevice)
                try round(plan)
                guard let kind = plan.failed else { break }
                failed.append(kind)
                try #require(number < 1000, "The operation makes too many calls.")
            }
        }
        return failed
    }

    /// Checks the properties of every error, whatever call failed.
    private func check(_ error: FileOperationError, _ plan: FaultPlan, in folder: TemporaryFolder) {
        #expect(error.code == .ioFailed || error.code == .noSpace)
        #expect(error.systemErrorNumber == EIO || error.systemErrorNumber == ENOSPC)
        #expect(error.path.hasPrefix(folder.url.path), "\(error) names another path (\(plan.name))")
        #expect(!error.path.contains(".operationkit-"), "\(error) names a temporary file")
        #expect(error.message.contains(error.path))
    }

    @Test(arguments: [FileWriteOptions.Mode.replacing, .creatingNew], [false, true])
    func `a failed write leaves the old or the new content and no other file`(
        mode: FileWriteOptions.Mode, hasOld: Bool
    ) throws {
        let data = Data.patterned(600_000)
        let failed = try failEachCall { plan in
            let folder = try TemporaryFolder()
            if hasOld { try folder.write("old", to: "file") }
            let write = FileWriteOperation(data, to: folder["file"], options: .init(mode: mode))
            let error = write.intercepted(plan.interceptor).failure()
            let content = try? Data(contentsOf: folder["file"])
            let isOld = content == (hasOld ? Data("old".utf8) : nil)
            #expect(isOld || content == data)
            #expect(folder.names() == (content == nil ? [] : ["file"]), "files left after a failed \(plan.name)")
            guard let error else { return #expect(areSame(content, data)) }
            if hasOld && mode == .creatingNew && plan.failed == nil {
                #expect(error.code == .alreadyExists && isOld)
            } else {
                check(error, plan, in: folder)
            }
        }
        if hasOld && mode == .creatingNew { return #expect(failed.count > 1) }
        let expected: Set<FileSystemCall.Kind> = [.open, .status, .write, .synchronize, .close]
        #expect(expected.isSubset(of: failed))
        let publishing: FileSystemCall.Kind = mode == .replacing ? .rename : .renameExclusively
        #expect(failed.contains(publishing))
    }

    @Test(arguments: [FileWriteOptions.Mode.replacing, .creatingNew, .inPlace])
    func `a failed write removes the directories that it created`(mode: FileWriteOptions.Mode) throws {
        let failed = try failEachCall { plan in
            let folder = try TemporaryFolder()
            try folder.makeFolder("one")
            let options = FileWriteOptions(mode: mode, createsDirectories: true)
            let write = FileWriteOperation(Data("new".utf8), to: folder["one/a/b/file"], options: options)
            let error = write.intercepted(plan.interceptor).failure()
            #expect(folder.names() == ["one"])
            guard let error else { return #expect(folder.text("one/a/b/file") == "new") }
            check(error, plan, in: folder)
            // The last call that can fail synchronizes a complete file to the disk.
            #expect(folder.names(in: "one") == [] || folder.text("one/a/b/file") == "new")
            #expect(folder.names(in: "one") == [] || folder.names(in: "one/a/b") == ["file"])
        }
        #expect(failed.contains(.makeDirectory))
    }

    @Test func `a failed write in place removes the file that it created`() throws {
        _ = try failEachCall { plan in
            let folder = try TemporaryFolder()
            let write = FileWriteOperation(Data("new".utf8), to: folder["file"], options: .init(mode: .inPlace))
            let error = write.intercepted(plan.interceptor).failure()
            if let error { check(error, plan, in: folder) }
            #expect(folder.text("file") == "new" || folder.names() == [])
            #expect(error != nil || folder.text("file") == "new")
        }
    }

    private func makeTree(in folder: TemporaryFolder, permissions: Int = 0o750) throws {
        try folder.makeFolder("tree/sub/empty")
        try folder.write(bytes: 300_000, to: "tree/sub/file")
        try folder.link("tree/link", to: "sub/file")
        try folder.setPermissions(permissions, of: "tree/sub")
    }

    private func isWhole(_ name: String, in folder: TemporaryFolder, permissions: Int = 0o750) -> Bool {
        folder.names(in: name) == ["link", "sub"] && folder.names(in: name + "/sub") == ["empty", "file"]
            && folder.isLink(name + "/link") && folder.permissions(of: name + "/sub") == permissions
            && (try? Data(contentsOf: folder[name + "/sub/file"])) == Data.patterned(300_000)
    }

    @Test func `a failed copy of a directory tree is complete or absent`() throws {
        let failed = try failEachCall { plan in
            let folder = try TemporaryFolder()
            // The directory is read-only, but its incomplete copy must be removable.
            try makeTree(in: folder, permissions: 0o555)
            let copy = FileCopyOperation(from: folder["tree"], to: folder["copy"])
            let error = copy.intercepted(plan.interceptor).failure()
            if let error { check(error, plan, in: folder) }
            #expect(isWhole("tree", in: folder, permissions: 0o555))
            let isThere = folder.names() == ["copy", "tree"] && isWhole("copy", in: folder, permissions: 0o555)
            #expect(isThere || folder.names() == ["tree"], "files left after a failed \(plan.name)")
            #expect(isThere || error != nil)
        }
        let expected: Set<FileSystemCall.Kind> = [
            .open, .status, .list, .read, .write, .synchronize, .close, .setPermissions, .setTimes, .makeDirectory,
            .makeSymbolicLink, .readSymbolicLink, .renameExclusively,
        ]
        #expect(expected.isSubset(of: failed))
    }

    @Test func `a failed copy that replaces a file leaves the old or the new file`() throws {
        _ = try failEachCall { plan in
            let folder = try TemporaryFolder()
            try folder.write(bytes: 300_000, to: "file")
            try folder.write("old", to: "copy")
            let copy = FileCopyOperation(from: folder["file"], to: folder["copy"], options: .replacing)
            let error = copy.intercepted(plan.interceptor).failure()
            if let error { check(error, plan, in: folder) }
            #expect(folder.names() == ["copy", "file"])
            let content = try Data(contentsOf: folder["copy"])
            #expect(content == Data.patterned(300_000) || (error != nil && content == Data("old".utf8)))
        }
    }

    @Test(arguments: [false, true]) func `a failed move leaves a complete source or a complete destination`(
        otherDevice: Bool
    ) throws {
        let failed = try failEachCall(otherDevice: otherDevice) { plan in
            let folder = try TemporaryFolder()
            try makeTree(in: folder)
            let move = FileMoveOperation(from: folder["tree"], to: folder["moved"])
            let error = move.intercepted(plan.interceptor).failure()
            if let error { check(error, plan, in: folder) }
            #expect(error != nil || folder.names() == ["moved"])
            // On another file system, the original may be partly removed, but only after the copy is complete.
            let isMoved = isWhole("moved", in: folder)
            #expect(isMoved || (isWhole("tree", in: folder) && folder.names() == ["tree"]))
            #expect(folder.names().allSatisfy { ["tree", "moved"].contains($0) })
        }
        if otherDevice { #expect(failed.contains(.remove)) }
        #expect(failed.contains(.renameExclusively) || otherDevice)
    }

    @Test(arguments: [ENOSYS, ENOTSUP]) func `a failed move without exclusive renames loses no data`(
        refusal: Int32
    ) throws {
        for isFolder in [false, true] {
            _ = try failEachCall { plan in
                let folder = try TemporaryFolder()
                if isFolder { try makeTree(in: folder) } else { try folder.write(bytes: 1000, to: "tree") }
                let move = FileMoveOperation(from: folder["tree"], to: folder["moved"]).intercepted { call in
                    let verdict = plan.interceptor(call)
                    return call.kind == .renameExclusively && verdict == .proceed ? .fail(refusal) : verdict
                }
                let error = move.failure()
                if let error { check(error, plan, in: folder) }
                #expect(folder.names() == ["moved"] || (error != nil && folder.names() == ["tree"]))
                if isFolder { #expect(isWhole(folder.names().first ?? "", in: folder)) }
            }
        }
    }

    @Test func `a failed removal reports a path in the directory tree`() throws {
        let failed = try failEachCall { plan in
            let folder = try TemporaryFolder()
            try makeTree(in: folder)
            let error = FileRemoveOperation(folder["tree"]).intercepted(plan.interceptor).failure()
            if let error { check(error, plan, in: folder) }
            #expect(error != nil || folder.names() == [])
        }
        #expect(failed.count > 20)
    }

    @Test func `a read returns the whole file or an error`() throws {
        _ = try failEachCall { plan in
            let folder = try TemporaryFolder()
            try folder.write(bytes: 600_000, to: "file")
            let read = FileReadOperation(folder["file"]).intercepted(plan.interceptor)
            if let error = read.failure() { return check(error, plan, in: folder) }
            #expect(areSame(read.outcome?.result, Data.patterned(600_000)))
        }
    }
}
