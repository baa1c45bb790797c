// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileWriteTests {
    let folder: TemporaryFolder
    let new = Data("new".utf8)

    init() throws { folder = try TemporaryFolder() }

    @Test(arguments: [0, 1, 262_144, 3_000_001]) func `data is written completely`(size: Int) throws {
        let data = Data.patterned(size)
        #expect(try FileWriteOperation(data, to: folder["file"]).success() == folder["file"])
        #expect(try areSame(Data(contentsOf: folder["file"]), data))
        #expect(folder.names() == ["file"])
    }

    @Test func `a slice of data is written`() throws {
        _ = try FileWriteOperation(Data.patterned(600_000)[5..<599_000], to: folder["file"]).success()
        #expect(try areSame(Data(contentsOf: folder["file"]), Data.patterned(600_000)[5..<599_000]))
    }

    @Test func `an existing file is replaced, and open file handles still read the old content`() throws {
        let reader = try FileHandle(forReadingFrom: folder.write("old", to: "file"))
        _ = try FileWriteOperation(new, to: folder["file"]).success()
        #expect(folder.text("file") == "new")
        #expect(try reader.readToEnd() == Data("old".utf8))
    }

    @Test func `creatingNew refuses an existing file and a broken symbolic link`() throws {
        try folder.write("old", to: "file")
        try folder.link("link", to: "nowhere")
        for name in ["file", "link"] {
            FileWriteOperation(new, to: folder[name], options: .init(mode: .creatingNew))
                .expectFailure(.alreadyExists, at: folder[name])
        }
        _ = try FileWriteOperation(new, to: folder["other"], options: .init(mode: .creatingNew)).success()
        #expect(folder.text("file") == "old")
        #expect(folder.names() == ["file", "link", "other"])
    }

    @Test(arguments: [nil, ENOSYS, EINVAL, ENOTSUP] as [Int32?])
    func `one of eight concurrent writes that create the same file succeeds`(refusal: Int32?) async throws {
        let folder = folder
        try await TestThread.run {
            let team = ThreadTeam(count: 8)
            for round in 0..<40 {
                let url = folder["file-\(round)"]
                let operations = (0..<8).map { number in
                    FileWriteOperation(
                        Data("\(number)".utf8), to: url, options: .init(mode: .creatingNew, isDurable: false)
                    ).intercepted { call in
                        // If the system cannot rename exclusively, a hard link is used.
                        guard let refusal, call.kind == .renameExclusively else { return .proceed }
                        return .fail(refusal)
                    }
                }
                team.run(operations.map { operation in { operation.start() } })
                let winners = operations.indices.filter { operations[$0].outcome?.result != nil }
                #expect(winners.count == 1)
                #expect(operations.filter { $0.outcome?.error?.code == .alreadyExists }.count == 7)
                #expect(folder.text("file-\(round)") == winners.first.map { "\($0)" })
            }
        }
        #expect(folder.names().count == 40)
    }

    @Test func `a write replaces a symbolic link and keeps its target`() throws {
        try folder.write("target", to: "target")
        try folder.link("link", to: "target")
        _ = try FileWriteOperation(new, to: folder["link"]).success()
        #expect(!folder.isLink("link"))
        #expect(folder.text("link") == "new")
        #expect(folder.text("target") == "target")
    }

    @Test func `a write in place follows a symbolic link and keeps the identity of the file`() throws {
        try folder.write("a long old text", to: "target")
        try folder.link("link", to: "target")
        let before = folder.attribute(.systemFileNumber, of: "target") as? NSNumber
        _ = try FileWriteOperation(new, to: folder["link"], options: .init(mode: .inPlace)).success()
        #expect(folder.isLink("link"))
        #expect(folder.text("target") == "new")
        #expect(folder.attribute(.systemFileNumber, of: "target") as? NSNumber == before)
        _ = try FileWriteOperation(new, to: folder["made"], options: .init(mode: .inPlace)).success()
        #expect(folder.text("made") == "new")
    }

    @Test func `a write in place through a broken symbolic link creates the target of the link`() throws {
        try folder.link("link", to: "target")
        let options = FileWriteOptions(mode: .inPlace, permissions: 0o600)
        _ = try FileWriteOperation(new, to: folder["link"], options: options).success()
        #expect(folder.isLink("link") && !folder.isLink("target"))
        #expect(folder.text("target") == "new")
        #expect(folder.permissions(of: "target") == 0o600)
        // The operation creates no directory of a target.
        try folder.link("other", to: "missing/target")
        let error = FileWriteOperation(new, to: folder["other"], options: options).failure()
        #expect(error?.code == .notFound)
        #expect(folder.names() == ["link", "other", "target"])
    }

    @Test func `a failed write in place does not remove a file that replaced its own file`() throws {
        try folder.write("other", to: "other")
        let folder = folder
        let write = FileWriteOperation(new, to: folder["file"], options: .init(mode: .inPlace)).intercepted { call in
            guard call.kind == .write else { return .proceed }
            rename(folder["other"].path, folder["file"].path)
            return .fail(ENOSPC)
        }
        #expect(write.failure()?.code == .noSpace)
        #expect(folder.names() == ["file"])
        #expect(folder.text("file") == "other")
    }

    @Test func `a written file has the requested permissions, or those of the replaced file`() throws {
        _ = try FileWriteOperation(new, to: folder["secret"], options: .init(permissions: 0o600)).success()
        #expect(folder.permissions(of: "secret") == 0o600)
        _ = try FileWriteOperation(new, to: folder["secret"]).success()
        #expect(folder.permissions(of: "secret") == 0o600)
        try folder.write("old", to: "open")
        try folder.setPermissions(0o666, of: "open")
        _ = try FileWriteOperation(new, to: folder["open"]).success()
        #expect(folder.permissions(of: "open") == 0o666)
        _ = try FileWriteOperation(new, to: folder["plain"]).success()
        let plain = try #require(folder.permissions(of: "plain"))
        #expect(plain & ~0o644 == 0 && plain & 0o600 == 0o600)
    }

    @Test func `new content never has wider permissions than the file that it replaces`() throws {
        try folder.write("old", to: "file")
        try folder.setPermissions(0o600, of: "file")
        let folder = folder, seen = EventRecorder<Int?>()
        _ = try FileWriteOperation(new, to: folder["file"]).intercepted { call in
            if call.kind == .write, let name = folder.names().first(where: { $0 != "file" }) {
                seen.record(folder.permissions(of: name))
            }
            return .proceed
        }.success()
        #expect(seen.events == [0o600])
    }

    @Test(arguments: [(0o640, 0o600), (0o664, 0o644), (0o604, 0o600), (0o755, 0o755)])
    func `a replaced file keeps its group, or no user gets more access`(permissions: Int, reduced: Int) throws {
        for isRefused in [false, true] {
            try folder.write("old", to: "file")
            guard chown(folder["file"].path, geteuid(), 54321) == 0 else {
                return print("SKIPPED: this process may not set the group of a file.")
            }
            try folder.setPermissions(permissions, of: "file")
            let folder = folder, seen = EventRecorder<Int?>()
            let write = FileWriteOperation(new, to: folder["file"]).intercepted { call in
                if call.kind == .write, let name = folder.names().first(where: { $0 != "file" }) {
                    seen.record(folder.permissions(of: name))
                }
                return call.kind == .setGroup && isRefused ? .fail(EPERM) : .proceed
            }
            _ = try write.success()
            let group = (folder.attribute(.groupOwnerAccountID, of: "file") as? NSNumber)?.intValue
            #expect((group == 54321) == !isRefused)
            #expect(folder.permissions(of: "file") == (isRefused ? reduced : permissions))
            // While the file is written, it has the group of a new file.
            let added = seen.events.map { ($0 ?? 0o777) & ~reduced }
            #expect(!added.isEmpty && added.allSatisfy { $0 == 0 })
            #expect(folder.text("file") == "new")
        }
    }

    @Test(arguments: [FileWriteOptions.Mode.replacing, .creatingNew, .inPlace])
    func `a write never replaces a directory`(mode: FileWriteOptions.Mode) throws {
        try folder.makeFolder("directory")
        let error = FileWriteOperation(new, to: folder["directory"], options: .init(mode: mode)).failure()
        #expect(error?.code == (mode == .creatingNew ? .alreadyExists : .isDirectory))
        #expect(folder.names() == ["directory"])
    }

    @Test func `a file with the longest possible name is written`() throws {
        let name = String(repeating: "x", count: 255)
        _ = try FileWriteOperation(new, to: folder[name]).success()
        #expect(folder.text(name) == "new")
        #expect(FileWriteOperation(new, to: folder[name + "x"]).failure()?.code == .nameTooLong)
        #expect(folder.names() == [name])
    }

    @Test(arguments: [FileWriteOptions.Mode.replacing, .inPlace])
    func `a write to a pipe is refused without waiting for a reader`(mode: FileWriteOptions.Mode) throws {
        #expect(mkfifo(folder["pipe"].path, 0o600) == 0)
        let write = FileWriteOperation(new, to: folder["pipe"], options: .init(mode: mode))
        #expect(write.failure()?.code == .unsupportedKind)
        #expect(folder.names() == ["pipe"])
        #expect(folder.attribute(.type, of: "pipe") as? FileAttributeType != .typeRegular)
    }

    @Test func `a write, copy or move never replaces a device`() throws {
        // The test creates its own device, because a failure would replace the device of the system.
        guard mknod(folder["null"].path, S_IFCHR | 0o600, 0x103) == 0 else { return }
        try folder.write("text", to: "file")
        let null = folder["null"]
        #expect(FileWriteOperation(new, to: null).failure()?.code == .unsupportedKind)
        let copy = FileCopyOperation(from: folder["file"], to: null, options: .replacing)
        #expect(copy.failure()?.code == .unsupportedKind)
        let move = FileMoveOperation(from: folder["file"], to: null, options: .replacing)
        #expect(move.failure()?.code == .unsupportedKind)
        #expect(folder.attribute(.type, of: "null") as? FileAttributeType == .typeCharacterSpecial)
        #expect(folder.names() == ["file", "null"])
    }

    @Test func `a write receives data from another operation and releases it at the end`() async throws {
        let source = try folder.write("from elsewhere", to: "source")
        let read = FileReadOperation(source), write = FileWriteOperation(to: folder["file"])
        try write.receive(from: read, otherwise: .cancel) { write, data in write.data = data }
        let queue = OperationQueue()
        for operation in [write, read] { queue.addOperation(operation) }
        _ = try await write.value
        #expect(folder.text("file") == "from elsewhere")
        // The task that awaits the result continues before the operation ends.
        try await TestThread.run { write.waitUntilFinished() }
        #expect(write.data.isEmpty)
    }

    @Test func `a durable write synchronizes the file and then its directory`() throws {
        for isDurable in [true, false] {
            let calls = EventRecorder<FileSystemCall.Kind>()
            let write = FileWriteOperation(new, to: folder["file"], options: .init(isDurable: isDurable))
            _ = try write.intercepted { call in
                calls.record(call.kind)
                return .proceed
            }.success()
            let order = calls.events.filter { [.write, .synchronize, .close, .rename].contains($0) }
            #expect(
                order
                    == (isDurable ? [.write, .synchronize, .close, .rename, .synchronize] : [.write, .close, .rename]))
        }
    }

    @Test func `missing directories are created only with createsDirectories`() throws {
        let url = folder["one/two/three/file"]
        FileWriteOperation(new, to: url).expectFailure(.folderNotFound, at: url)
        #expect(folder.names() == [])
        _ = try FileWriteOperation(new, to: url, options: .init(createsDirectories: true)).success()
        #expect(folder.text("one/two/three/file") == "new")
    }

    @Test(arguments: 1...3, [FileWriteOptions.Mode.replacing, .inPlace])
    func `a write creates its directories again if another operation removes them`(
        number: Int, mode: FileWriteOptions.Mode
    ) throws {
        let folder = folder, opened = CallCounter()
        let options = FileWriteOptions(mode: mode, createsDirectories: true)
        let write = FileWriteOperation(new, to: folder["one/two/file"], options: options).intercepted { call in
            // The worst moments are before a new directory is opened, and while it is open and empty.
            guard call.kind == .open,
                opened.next() == number
            else { return .proceed }
            try? FileManager.default.removeItem(at: folder["one"])
            return .proceed
        }
        _ = try write.success()
        #expect(folder.text("one/two/file") == "new")
        #expect(folder.names(in: "one/two") == ["file"])
    }

    @Test func `concurrent writes that create the same directory succeed although others fail`() async throws {
        let folder = folder
        try await TestThread.run {
            let team = ThreadTeam(count: 4)
            let options = FileWriteOptions(createsDirectories: true, isDurable: false)
            for round in 0..<200 {
                let operations = (0..<4).map { number in
                    FileWriteOperation(Data(), to: folder["\(round)/sub/\(number)"], options: options)
                        .intercepted { call in
                            // Half of the writes fail as late as possible, and remove their directories.
                            let isCancelledByGroup = number % 2 == 0 && call.kind == .rename
                            return isCancelledByGroup ? .fail(EIO) : .proceed
                        }
                }
                team.run(operations.map { operation in { operation.start() } })
                #expect(operations.map { $0.outcome?.error?.code } == [.ioFailed, nil, .ioFailed, nil])
                #expect(folder.names(in: "\(round)/sub") == ["1", "3"])
            }
        }
    }

    @Test func `a path that uses a file as a directory is refused`() throws {
        try folder.write("", to: "file")
        for creates in [false, true] {
            let options = FileWriteOptions(createsDirectories: creates)
            for name in ["file/below", "file/below/it"] {
                let error = FileWriteOperation(new, to: folder[name], options: options).failure()
                #expect(error?.code == .notADirectory)
            }
        }
    }
}
