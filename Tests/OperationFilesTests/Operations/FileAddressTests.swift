// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileAddressTests {
    private static let bad: [(URL?, FileOperationError.Code)] = [
        (URL(string: "https://user:secret@example.com/file?token=secret"), .notAFileURL),
        (URL(string: "data:,x"), .notAFileURL),
        (URL(string: "relative"), .notAFileURL),
        (URL(string: "file://elsewhere.example/tmp/file"), .notAFileURL),
        (URL(string: "file:"), .invalidPath),
        (URL(string: "file:///tmp/a%00b"), .invalidPath),
        (URL(fileURLWithPath: "/tmp/a\0b"), .invalidPath),
    ]

    @Test(arguments: bad) func `every file operation refuses a URL that is not a valid file URL`(
        url: URL?, code: FileOperationError.Code
    ) throws {
        let url = try #require(url), good = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID())")
        let errors = [
            FileReadOperation(url).failure(), FileChecksumOperation(url).failure(),
            FileWriteOperation(Data(), to: url).failure(), FileRemoveOperation(url, ignoresMissing: true).failure(),
            FileCopyOperation(from: url, to: good).failure(), FileCopyOperation(from: good, to: url).failure(),
            FileMoveOperation(from: url, to: good).failure(), FileMoveOperation(from: good, to: url).failure(),
        ]
        #expect(errors.map(\.?.code) == Array(repeating: code, count: 8))
        for error in errors { #expect(error?.description.contains("secret") == false) }
        #expect(!FileManager.default.fileExists(atPath: good.path))
    }

    @Test(arguments: ["/", "/.", "/..", "/tmp/.", "/tmp/..", "//"])
    func `a path without a file name cannot be written, removed, moved or copied`(path: String) {
        let url = URL(fileURLWithPath: path), good = URL(fileURLWithPath: "/tmp/good-\(UUID())")
        #expect(FileWriteOperation(Data(), to: url).failure()?.code == .invalidPath)
        #expect(FileWriteOperation(Data(), to: url, options: .init(mode: .inPlace)).failure()?.code == .invalidPath)
        #expect(FileRemoveOperation(url).failure()?.code == .invalidPath)
        #expect(FileMoveOperation(from: url, to: good).failure()?.code == .invalidPath)
        #expect(FileCopyOperation(from: url, to: good).failure()?.code == .invalidPath)
    }

    @Test(arguments: ["a name with spaces", "100%", "%41", "ünï", "e\u{301}", "new\nline", "-rf", "q?x#y", "\u{7F}"])
    func `unusual file names are used unchanged`(name: String) throws {
        let folder = try TemporaryFolder()
        _ = try FileWriteOperation(Data("text".utf8), to: folder[name]).success()
        #expect(folder.names() == [name])
        #expect(try FileReadOperation(folder[name]).success() == Data("text".utf8))
        _ = try FileMoveOperation(from: folder[name], to: folder[name + "2"]).success()
        #expect(folder.names() == [name + "2"])
        #expect(try FileRemoveOperation(folder[name + "2"]).success())
    }

    @Test func `file operations accept relative URLs and directory URLs`() throws {
        let folder = try TemporaryFolder()
        let base = URL(fileURLWithPath: folder.url.path, isDirectory: true)
        let relative = URL(fileURLWithPath: "file", relativeTo: base)
        _ = try FileWriteOperation(Data("text".utf8), to: relative).success()
        #expect(folder.text("file") == "text")
        try folder.makeFolder("sub/below")
        #expect(try FileRemoveOperation(folder.url.appendingPathComponent("sub", isDirectory: true)).success())
        #expect(folder.names() == ["file"])
    }
}
