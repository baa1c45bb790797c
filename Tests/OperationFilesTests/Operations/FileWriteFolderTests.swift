// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileWriteFolderTests {
    let folder: TemporaryFolder
    let new = Data("new".utf8)

    init() throws { folder = try TemporaryFolder() }

    @Test func `missing directories are created only with createsDirectories`() throws {
        let url = folder["one/two/three/file"]
        let error = FileWriteOperation(new, to: url).failure()
        #expect(error?.code == .folderNotFound)
        #expect(error?.path == url.path)
        #expect(folder.names() == [])
        _ = try FileWriteOperation(new, to: url, options: .init(createsDirectories: true)).success()
        #expect(folder.text("one/two/three/file") == "new")
    }

    @Test(arguments: [FileWriteOptions.Mode.replacing, .creatingNew, .inPlace])
    func `a failed write removes the directories that it created`(mode: FileWriteOptions.Mode) throws {
        try folder.makeFolder("one")
        let options = FileWriteOptions(mode: mode, createsDirectories: true)
        let write = FileWriteOperation(new, to: folder["one/two/three/file"], options: options)
        let error = write.intercepted { $0.kind == .write ? .fail(ENOSPC) : .proceed }.failure()
        #expect(error?.code == .noSpace)
        #expect(folder.names() == ["one"])
        #expect(folder.names(in: "one") == [])
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
