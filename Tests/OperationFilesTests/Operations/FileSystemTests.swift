// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileSystemTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Interrupts each call once, and shortens reads and writes.
    private func nuisance() -> FileSystem.Interceptor {
        let calls = CallCounter(), transfers = CallCounter()
        return { call in
            guard calls.next().isMultiple(of: 2) else { return .fail(EINTR) }
            guard call.kind == .read || call.kind == .write else { return .proceed }
            return .shorten(transfers.next() * 7919 % 40_000 + 1)
        }
    }

    @Test func `interrupted system calls are repeated, and short reads and writes are continued`() throws {
        let data = Data.patterned(500_000)
        try folder.makeFolder("tree/sub")
        _ = try FileWriteOperation(data, to: folder["tree/file"]).intercepted(nuisance()).success()
        #expect(try areSame(FileReadOperation(folder["tree/file"]).intercepted(nuisance()).success(), data))
        let part = FileReadOperation(folder["tree/file"], options: .init(range: 100..<400_000))
        #expect(try areSame(part.intercepted(nuisance()).success(), data[100..<400_000]))
        let sum = try FileChecksumOperation(folder["tree/file"]).success()
        #expect(try FileChecksumOperation(folder["tree/file"]).intercepted(nuisance()).success() == sum)
        _ = try FileCopyOperation(from: folder["tree"], to: folder["copy"]).intercepted(nuisance()).success()
        #expect(try areSame(Data(contentsOf: folder["copy/file"]), data))
        _ = try FileMoveOperation(from: folder["copy"], to: folder["moved"]).intercepted(nuisance()).success()
        #expect(try FileRemoveOperation(folder["moved"]).intercepted(nuisance()).success())
        #expect(folder.names() == ["tree"])
    }

    @Test(
        arguments: [
            (EACCES, .permissionDenied), (EPERM, .permissionDenied), (EROFS, .readOnlyVolume),
            (EMFILE, .tooManyOpenFiles),
            (ENFILE, .tooManyOpenFiles), (EDQUOT, .noSpace), (EBUSY, .busy), (EIO, .ioFailed), (9999, .ioFailed),
        ] as [(Int32, FileOperationError.Code)])
    func `system errors are mapped to error codes`(number: Int32, code: FileOperationError.Code) throws {
        try folder.write("old", to: "file")
        let refuse: FileSystem.Interceptor = { $0.kind == .open ? .fail(number) : .proceed }
        let errors = [
            FileReadOperation(folder["file"]).intercepted(refuse).failure(),
            FileWriteOperation(Data(), to: folder["file"]).intercepted(refuse).failure(),
            FileCopyOperation(from: folder["file"], to: folder["copy"]).intercepted(refuse).failure(),
            FileMoveOperation(from: folder["file"], to: folder["copy"]).intercepted(refuse).failure(),
            FileRemoveOperation(folder["file"]).intercepted(refuse).failure(),
            FileChecksumOperation(folder["file"]).intercepted(refuse).failure(),
        ]
        for error in errors {
            #expect(error?.code == code)
            #expect(error?.systemErrorNumber == number)
            #expect(error?.path == folder["file"].path)
        }
        #expect(folder.text("file") == "old")
    }

    @Test func `a write that makes no progress is not repeated`() throws {
        // No known system does this, but a write of zero bytes must not block a thread forever.
        let write = FileWriteOperation(Data("x".utf8), to: folder["file"])
        let writes = CallCounter()
        _ = write.intercepted { call in
            guard call.kind == .write else { return .proceed }
            return writes.next() < 1000 ? .shorten(0) : .fail(EIO)
        }.failure()
        #expect(writes.count == 1)
    }

    @Test func `opened files are not inherited by child processes`() throws {
        guard FileManager.default.fileExists(atPath: "/proc/self/fdinfo") else { return }
        let entry = FolderEntry(PathBytes(try folder.write("", to: "file").path))
        let file = try FileSystem().open(entry, O_RDONLY).get()
        let flags = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { name -> Int32? in
            let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")
            guard path == folder["file"].path, let number = Int32(name) else { return nil }
            return fcntl(number, F_GETFD)
        }
        #expect(flags == [FD_CLOEXEC])
        withExtendedLifetime(file) {}
    }
}
