// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct DownloadTests {
    @Test func `a download to a temporary file hands the file over`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        let file = try #require(try await bench.download(to: .temporary).file)
        defer { try? FileManager.default.removeItem(at: file.url) }
        #expect(TestPattern.matches(Array(try Data(contentsOf: file.url))))
        #expect(file.length == Int64(DownloadBench.size))
        #expect(file.isLengthKnown)
        #expect(file.resumedBytes == 0)
        let attributes = try FileManager.default.attributesOfItem(atPath: file.url.path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        #expect(bench.server.requests.first?["Accept-Encoding"] == "identity")
        #expect(bench.server.violations == [])
    }

    @Test func `a download creates missing folders and leaves no other files`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        let conclusion = try await bench.download(to: .file(bench.url("a/b/file")))
        #expect(conclusion.file?.url == bench.url("a/b/file"))
        #expect(bench.names("a/b") == ["file"])
        #expect(bench.bytes("a/b/file").map { TestPattern.matches($0) && $0.count == DownloadBench.size } == true)
    }

    @Test func `an empty body is saved as an empty file`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource(0))
        #expect(try await bench.download(to: .file(bench.url("file"))).file?.length == 0)
        #expect(bench.bytes("file") == [])
        #expect(bench.names() == ["file"])
    }

    @Test func `an existing file stays, and no request is sent`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        try Data("old".utf8).write(to: bench.url("file"))
        let conclusion = try await bench.download(to: .file(bench.url("file")))
        #expect(conclusion.error?.code == .destinationExists)
        #expect(bench.bytes("file") == Array("old".utf8))
        #expect(bench.names() == ["file"])
        #expect(bench.server.counts.heads == 0)
    }

    @Test func `an existing file is replaced in one step, and a link is replaced instead of its target`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        try Data("victim".utf8).write(to: bench.url("victim"))
        try FileManager.default.createSymbolicLink(at: bench.url("file"), withDestinationURL: bench.url("victim"))
        let options = with(DownloadOptions()) { $0.existingItem = .replace }
        #expect(try await bench.download(to: .file(bench.url("file")), options: options).file != nil)
        #expect(bench.bytes("victim") == Array("victim".utf8))
        #expect(bench.bytes("file")?.count == DownloadBench.size)
        try FileManager.default.createDirectory(at: bench.url("folder"), withIntermediateDirectories: false)
        let onFolder = try await bench.download(to: .file(bench.url("folder")), options: options)
        #expect(onFolder.error?.code == .fileUnwritable)
        #expect(bench.names() == ["file", "folder", "victim"])
    }

    @Test func `a second download to the same destination fails, and the first one continues`() async throws {
        let bench = try DownloadBench()
        let gate = Gate()
        let whole = DownloadBench.resource()
        bench.server.route("GET", "/file") { whole.answer(to: $0).after(gate) }
        async let first = bench.download(to: .file(bench.url("file")))
        _ = await bench.server.heads(atLeast: 1)
        let second = try await bench.download(to: .file(bench.url("file")))
        #expect(second.error?.code == .destinationBusy)
        gate.open()
        #expect(try await first.file != nil)
        #expect(bench.names() == ["file"])
    }

    @Test func `expected lengths, maximum lengths and checksums are verified`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        let bytes = TestPattern.bytes(count: DownloadBench.size)
        var options = DownloadOptions()
        options.expectedLength = 5
        #expect(try await bench.download(to: .file(bench.url("a")), options: options).error?.code == .unexpectedLength)
        options.expectedLength = Int64(DownloadBench.size)
        options.checksum = FileChecksum(algorithm: .sha256, bytes: SHA256.checksum(of: bytes, startingWith: SHA256()))
        #expect(try await bench.download(to: .file(bench.url("b")), options: options).file != nil)
        options.checksum = FileChecksum(algorithm: .md5, bytes: [UInt8](repeating: 0, count: 16))
        #expect(try await bench.download(to: .file(bench.url("c")), options: options).error?.code == .checksumMismatch)
        options.checksum = nil
        options.expectedLength = nil
        options.maximumLength = 899_999
        #expect(try await bench.download(to: .file(bench.url("d")), options: options).error?.code == .bodyTooLarge)
        #expect(bench.names() == ["b"])
    }

    @Test func `a body that ends with its connection is of unknown length`() async throws {
        let bench = try DownloadBench()
        bench.server.route("GET", "/file") { _ in .raw("HTTP/1.1 200 OK\r\n\r\nsome bytes") }
        let file = try await bench.download(to: .file(bench.url("file"))).file
        #expect(file?.isLengthKnown == false)
        #expect(file?.length == 10)
    }
}
