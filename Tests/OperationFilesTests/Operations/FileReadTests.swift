// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileReadTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test(arguments: [0, 1, 262_143, 262_144, 262_145, 3_000_000]) func `a file is read completely`(size: Int) throws {
        let url = try folder.write(bytes: size, to: "file")
        #expect(try areSame(FileReadOperation(url).success(), Data.patterned(size)))
    }

    @Test func `a read follows a symbolic link`() throws {
        try folder.write("content", to: "file")
        try folder.link("link", to: "file")
        #expect(try FileReadOperation(folder["link"]).success() == Data("content".utf8))
    }

    @Test func `a file whose reported length is wrong is read to its end`() throws {
        let url = URL(fileURLWithPath: "/proc/self/status")
        guard FileManager.default.fileExists(atPath: url.path) else { return }
        #expect(try FileReadOperation(url).success().count > 100)
    }

    @Test(arguments: [0..<5, 2..<2, 3..<7, 9..<10, 5..<500, 10..<20, 0..<Int64.max] as [Range<Int64>])
    func `a range is read up to the end of the file`(range: Range<Int64>) throws {
        let url = try folder.write("0123456789", to: "file")
        let expected = Data("0123456789".utf8)[min(Int(range.lowerBound), 10)..<Int(min(range.upperBound, 10))]
        let read = FileReadOperation(url, options: FileReadOptions(range: range))
        #expect(try read.success() == Data(expected))
    }

    @Test func `a range that spans several chunks is read`() throws {
        let url = try folder.write(bytes: 1_000_000, to: "file")
        let read = FileReadOperation(url, options: FileReadOptions(range: 99_999..<900_001))
        #expect(try areSame(read.success(), Data.patterned(1_000_000)[99_999..<900_001]))
    }

    @Test(arguments: [11..<12, -1..<3, Int64.min..<0] as [Range<Int64>])
    func `a range that begins outside the file is refused`(range: Range<Int64>) throws {
        let url = try folder.write("0123456789", to: "file")
        FileReadOperation(url, options: FileReadOptions(range: range)).expectFailure(.rangeOutsideFile, at: url)
    }

    @Test func `a range of an empty file or of a file of unknown length is in its bytes`() throws {
        let url = try folder.write("", to: "empty")
        #expect(try FileReadOperation(url, options: FileReadOptions(range: 0..<2)).success().isEmpty)
        FileReadOperation(url, options: FileReadOptions(range: 1..<2)).expectFailure(.rangeOutsideFile, at: url)
        #if os(Linux)
            let status = URL(fileURLWithPath: "/proc/self/status")
            #expect(try FileReadOperation(status, options: FileReadOptions(range: 5..<20)).success().count == 15)
            let range = 1_000_000..<1_000_001 as Range<Int64>
            FileReadOperation(status, options: FileReadOptions(range: range))
                .expectFailure(.rangeOutsideFile, at: status)
        #endif
    }

    @Test func `a file that is larger than maximumSize is refused`() throws {
        let url = try folder.write(bytes: 500_000, to: "file")
        #expect(try FileReadOperation(url, options: .init(maximumSize: 500_000)).success().count == 500_000)
        let error = FileReadOperation(url, options: .init(maximumSize: 499_999)).failure()
        #expect(error?.code == .tooLarge)
        #expect(error?.message.contains("maximumSize") == true)
        #expect(try FileReadOperation(url, options: .init(range: 0..<9, maximumSize: 9)).success().count == 9)
        #expect(FileReadOperation(url, options: .init(range: 0..<9, maximumSize: 8)).failure()?.code == .tooLarge)
        #expect(FileReadOperation(url, options: .init(maximumSize: -1)).failure()?.code == .tooLarge)
    }

    @Test(arguments: ["/dev/zero", "/dev/urandom"]) func `an endless file is refused because of maximumSize`(
        path: String
    ) {
        let read = FileReadOperation(URL(fileURLWithPath: path), options: .init(maximumSize: 1_000_000))
        #expect(read.failure()?.code == .tooLarge)
    }

    @Test func `a range of an endless file is read`() throws {
        let read = FileReadOperation(URL(fileURLWithPath: "/dev/zero"), options: .init(range: 0..<300_000))
        #expect(try read.success() == Data(count: 300_000))
    }

    @Test func `a read of a missing file fails with its path`() {
        let error = FileReadOperation(folder["missing"]).expectFailure(.notFound, .reading, at: folder["missing"])
        #expect(error?.systemErrorNumber == ENOENT)
    }

    @Test func `a read of a directory is refused`() {
        #expect(FileReadOperation(folder.url).failure()?.code == .isDirectory)
        #expect(FileReadOperation(URL(fileURLWithPath: "/")).failure()?.code == .isDirectory)
    }

    @Test func `a read of a pipe is refused without waiting for a writer`() throws {
        #expect(mkfifo(folder["pipe"].path, 0o600) == 0)
        #expect(FileReadOperation(folder["pipe"]).failure()?.code == .unsupportedKind)
    }

    @Test func `a path that uses a file as a directory is refused`() throws {
        try folder.write("", to: "file")
        #expect(FileReadOperation(folder["file/below"]).failure()?.code == .notADirectory)
    }

    @Test func `a loop of symbolic links is refused`() throws {
        try folder.link("one", to: "two")
        try folder.link("two", to: "one")
        #expect(FileReadOperation(folder["one"]).failure()?.code == .tooManySymbolicLinks)
    }

    @Test func `names and paths that are too long are refused`() throws {
        #expect(FileReadOperation(folder[String(repeating: "x", count: 300)]).failure()?.code == .nameTooLong)
        let long = folder[Array(repeating: "directory", count: 1000).joined(separator: "/")]
        #expect(FileReadOperation(long).failure()?.code == .nameTooLong)
    }

    @Test func `a failure in the middle of a read gives an error and no partial data`() throws {
        let url = try folder.write(bytes: 1_000_000, to: "file")
        let reads = CallCounter()
        let read = FileReadOperation(url).intercepted { call in
            guard call.kind == .read,
                reads.next() == 3
            else { return .proceed }
            return .fail(EIO)
        }
        let error = read.expectFailure(.ioFailed, at: url)
        #expect(error?.message.contains("5") == true)
    }
}
