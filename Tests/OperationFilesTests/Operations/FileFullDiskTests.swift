// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if os(Linux) || os(macOS)
    import Foundation
    import OperationCore
    import OperationFiles
    import Testing

    @Suite(.timeLimit(.minutes(3)), .serialized)
    struct FileFullDiskTests {
        /// A file system of 64 KiB, if this process may mount one.
        private final class SmallDisk {
            let folder: TemporaryFolder
            var url: URL { folder.url }

            init?() throws {
                folder = try TemporaryFolder()
                guard Self.run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder.url.path) else { return nil }
            }

            deinit { _ = Self.run("umount", folder.url.path) }

            private static func run(_ arguments: String...) -> Bool {
                let process = Process()
                process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
                process.arguments = arguments
                process.standardError = FileHandle.nullDevice
                guard (try? process.run()) != nil else { return false }
                process.waitUntilExit()
                return process.terminationStatus == 0
            }
        }

        private func smallDisk() throws -> SmallDisk? {
            let disk = try SmallDisk()
            if disk == nil {
                print("SKIPPED: this process may not mount a file system, so no disk was filled for real.")
            }
            return disk
        }

        @Test(arguments: [FileWriteOptions.Mode.replacing, .creatingNew, .inPlace])
        func `a write that fills the disk leaves nothing behind`(mode: FileWriteOptions.Mode) throws {
            guard let disk = try smallDisk() else { return }
            let options = FileWriteOptions(mode: mode, createsDirectories: true)
            let url = disk.folder["sub/file"]
            let error = FileWriteOperation(Data.patterned(200_000), to: url, options: options)
                .expectFailure(.noSpace, at: url)
            #expect(error?.systemErrorNumber == ENOSPC)
            #expect(disk.folder.names() == [])
            // The space is free again.
            _ = try FileWriteOperation(Data.patterned(40_000), to: url, options: options).success()
        }

        @Test func `a write that does not fit keeps the old content`() throws {
            guard let disk = try smallDisk() else { return }
            try disk.folder.write("old", to: "file")
            #expect(FileWriteOperation(Data.patterned(200_000), to: disk.folder["file"]).failure()?.code == .noSpace)
            #expect(disk.folder.text("file") == "old")
            #expect(disk.folder.names() == ["file"])
        }

        @Test(arguments: [false, true])
        func `a copy or move that does not fit leaves nothing behind and keeps the source`(moves: Bool) throws {
            guard let disk = try smallDisk() else { return }
            let folder = try TemporaryFolder()
            try folder.makeFolder("tree/sub")
            try folder.write(bytes: 30_000, to: "tree/one")
            try folder.write(bytes: 90_000, to: "tree/sub/two")
            try folder.write(bytes: 30_000, to: "tree/three")
            let destination = disk.folder["copy"]
            let error =
                moves
                ? FileMoveOperation(from: folder["tree"], to: destination).failure()
                : FileCopyOperation(from: folder["tree"], to: destination).failure()
            #expect(error?.code == .noSpace)
            #expect(error?.path.hasPrefix(destination.path) == true)
            #expect(disk.folder.names() == [])
            #expect(folder.names(in: "tree") == ["one", "sub", "three"])
            #expect(try areSame(Data(contentsOf: folder["tree/sub/two"]), Data.patterned(90_000)))
        }

        @Test func `a directory tree can be moved to another mounted file system`() throws {
            guard let disk = try smallDisk() else { return }
            let folder = try TemporaryFolder()
            try folder.makeFolder("tree/sub")
            try folder.write(bytes: 10_000, to: "tree/sub/file")
            try folder.link("tree/link", to: "sub/file")
            _ = try FileMoveOperation(from: folder["tree"], to: disk.folder["tree"]).success()
            #expect(folder.names() == [])
            #expect(try areSame(Data(contentsOf: disk.folder["tree/sub/file"]), Data.patterned(10_000)))
            #expect(disk.folder.isLink("tree/link"))
            #expect(disk.folder.names() == ["tree"])
        }

        @Test func `a write to the device that is always full fails with the code noSpace`() {
            let url = URL(fileURLWithPath: "/dev/full")
            guard FileManager.default.fileExists(atPath: url.path) else { return }
            let error = FileWriteOperation(Data("x".utf8), to: url, options: .init(mode: .inPlace)).failure()
            #expect(error?.code == .noSpace)
            #expect(error?.path == "/dev/full")
            #expect(FileManager.default.fileExists(atPath: url.path))
        }
    }
#endif
