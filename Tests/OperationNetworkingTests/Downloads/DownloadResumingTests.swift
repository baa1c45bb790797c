// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct DownloadResumingTests {
    private let whole = DownloadBench.resource()
    private let bench: DownloadBench

    init() throws {
        bench = try DownloadBench()
    }

    @Test func `an interrupted download resumes from its bytes`() async throws {
        let resource = DownloadBench.resource()
        let file = try await bench.resumed(first: resource, then: { resource.answer(to: $0) }).file
        let offset = try #require(file?.resumedBytes)
        #expect(offset > 300_000)
        let request = try #require(bench.server.requests.last)
        #expect(request["Range"] == "bytes=\(offset)-")
        #expect(request["If-Range"] == "\"one\"")
        #expect(bench.server.requests.count == 2)
        #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == DownloadBench.size } == true)
        #expect(bench.names() == ["file"])
        #expect(bench.server.violations == [])
    }

    @Test func `a file with a Last-Modified date is resumed only if the date is old enough`() async throws {
        for (sent, continues) in [("Sun, 06 Nov 1994 09:49:37 GMT", true), ("Sun, 06 Nov 1994 08:49:38 GMT", false)] {
            let bench = try DownloadBench()
            var resource = DownloadBench.resource(etag: nil, date: "Sun, 06 Nov 1994 08:49:37 GMT")
            resource.fields = [LoopbackField("Date", sent)]
            let served = resource
            let file = try await bench.resumed(first: served, then: { served.answer(to: $0) }).file
            #expect((file?.resumedBytes ?? 0 > 0) == continues)
            #expect((bench.server.requests.last?["If-Range"] == "Sun, 06 Nov 1994 08:49:37 GMT") == continues)
            #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == DownloadBench.size } == true)
        }
    }

    @Test func `a server that does not support ranges sends the complete file`() async throws {
        let whole = with(DownloadBench.resource()) { $0.acceptsRanges = false }
        let served = whole
        let file = try await bench.resumed(first: DownloadBench.resource(), then: { served.answer(to: $0) }).file
        #expect(file?.resumedBytes == 0)
        #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == DownloadBench.size } == true)
    }

    @Test(arguments: [
        "bytes 0-899999/900000", "bytes 7-899999/900000", "bytes 300000-899999/*", "bytes 300000-899999/900001", "x",
        nil,
    ])
    func `a 206 response that does not match leads to one request for the complete file`(range: String?) async throws {
        let file = try await bench.resumed(
            first: whole,
            then: { request in
                guard request["Range"] != nil else { return whole.answer(to: request) }
                let fields = range.map { [LoopbackField("Content-Range", $0)] } ?? []
                return .bytes([UInt8](repeating: 0, count: 5000), status: 206, fields: fields)
            }
        ).file
        #expect(file?.resumedBytes == 0)
        #expect(bench.server.requests.count == 3)
        #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == DownloadBench.size } == true)
        #expect(bench.names() == ["file"])
    }

    @Test func `after a refused range, the download starts again because the file is a different one`() async throws {
        let small = DownloadBench.resource(1000, etag: "\"two\"")
        let file = try await bench.resumed(
            first: DownloadBench.resource(),
            then: { request in
                guard request["Range"] != nil else { return small.answer(to: request) }
                return .status(416, ["Content-Range": "bytes */1000"])
            }
        ).file
        #expect(file?.length == 1000)
        #expect(bench.server.requests.count == 3)
    }

    @Test func `a server that sends small pieces is asked for each, which writes no metadata`() async throws {
        let bytes = TestPattern.bytes(count: DownloadBench.size), renames = Locked(0)
        let files = FileSystem { call in
            if call.kind == .rename { renames.withLock { $0 += 1 } }
            return .proceed
        }
        let options = with(DownloadOptions()) { $0.checkpointInterval = .seconds(3600) }
        try await bench.leavePart()
        bench.server.route("GET", "/file") { request in
            let start = Int(request["Range"]?.dropFirst(6).dropLast() ?? "") ?? 0
            let end = min(start + 200_000, bytes.count)
            return .bytes(
                Array(bytes[start..<end]), status: 206,
                fields: [
                    LoopbackField("Content-Range", "bytes \(start)-\(end - 1)/\(bytes.count)"),
                    LoopbackField("ETag", "\"one\""),
                ])
        }
        let file = try await bench.download(to: .file(bench.url("file")), options: options, files: files).file
        #expect(renames.withLock { $0 } == 0)
        #expect(file?.length == Int64(DownloadBench.size))
        // Only the first piece resumes from bytes of an earlier download.
        #expect((300_000...400_000).contains(file?.resumedBytes ?? 0))
        #expect(bench.server.requests.count >= 4)
        let isSame = bench.bytes("file") == bytes
        #expect(isSame)
    }

    @Test func `a response that is not the file keeps the partial file`() async throws {
        let conclusion = try await bench.resumed(first: whole, then: { _ in .text("busy", status: 503) })
        guard case .answered(let head, let body) = conclusion else { return unmet("\(conclusion)") }
        #expect(head.status == 503)
        #expect(body == Array("busy".utf8))
        #expect(bench.names().count == 2)
        bench.serve(whole)
        let file = try await bench.download(to: .file(bench.url("file"))).file
        #expect((file?.resumedBytes ?? 0) > 0)
        #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == DownloadBench.size } == true)
        let missing = try await bench.download("/none", to: .file(bench.url("other/none")))
        guard case .answered = missing else { return unmet("\(missing)") }
        #expect(bench.names() == ["file"])
    }

    @Test func `a download object can resume its temporary file`() async throws {
        bench.server.route("GET", "/file") { request in
            request["Range"] == nil ? whole.answer(to: request).cut(at: 400_000) : whole.answer(to: request)
        }
        let work = Download(to: .temporary)
        let request = try bench.bench.request("GET", "/file")
        #expect(await bench.run(request, work).error != nil)
        let file = try #require(await bench.run(request, work).file)
        defer { try? FileManager.default.removeItem(at: file.url) }
        #expect(file.resumedBytes > 300_000)
        #expect(TestPattern.matches(Array(try Data(contentsOf: file.url))))
    }

    @Test func `the bytes that arrived before a continuation failed count as resumed`() throws {
        let work = DownloadWork(to: .temporary(in: bench.folder))
        let url = bench.server.url("/file"), bytes = TestPattern.bytes(count: 900)
        func request(_ range: Range<Int>?, endingWith error: NetworkError? = nil) throws -> DownloadConclusion {
            _ = try work.prepare(NetworkRequest(url: url))
            if let range {
                let isWhole = range.lowerBound == 0
                let place = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(bytes.count)"
                var fields: HeaderFields = ["ETag": "\"one\""]
                fields[isWhole ? "Content-Length" : "Content-Range"] = isWhole ? "\(bytes.count)" : place
                let isAccepted = work.receive(ResponseHead(url: url, status: isWhole ? 200 : 206, headers: fields))
                let isWritten = bytes[range].withUnsafeBytes { work.receive($0) }
                #expect(isAccepted && isWritten)
            }
            return work.end(error)
        }
        let lost = NetworkError(code: .connectionLost, phase: .receiving, message: "The connection was lost.")
        #expect(try request(0..<300, endingWith: lost).error?.code == .connectionLost)
        // The server sends only a part of the missing bytes.
        guard case .again = try request(300..<600) else { return unmet("The download did not request the rest.") }
        #expect(try request(nil, endingWith: lost).error?.code == .connectionLost)
        let file = try #require(try request(600..<900).file)
        #expect(file.resumedBytes == 600)
        #expect(TestPattern.matches(Array(try Data(contentsOf: file.url))))
    }

    @Test func `another URL starts again, unless both have the same resume key`() async throws {
        for key in [nil, "the film"] {
            let bench = try DownloadBench()
            let whole = DownloadBench.resource()
            let options = with(DownloadOptions()) { $0.resumeKey = key }
            bench.server.route("GET", "/file") { request in
                request.query == "sign=1" ? whole.answer(to: request).cut(at: 400_000) : whole.answer(to: request)
            }
            _ = try await bench.download("/file?sign=1", to: .file(bench.url("file")), options: options)
            #expect(try String(contentsOf: try #require(bench.metadataURL), encoding: .utf8).contains("sign") == false)
            let file = try await bench.download("/file?sign=2", to: .file(bench.url("file")), options: options).file
            #expect((file?.resumedBytes ?? 0 > 0) == (key != nil))
            #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == DownloadBench.size } == true)
            #expect(bench.names() == ["file"])
        }
    }

    @Test func `the checksum of a resumed file covers all of its bytes`() async throws {
        let bytes = TestPattern.bytes(count: DownloadBench.size)
        for isRight in [true, false] {
            let bench = try DownloadBench()
            let whole = DownloadBench.resource()
            var options = DownloadOptions()
            let sum = SHA256.checksum(of: isRight ? bytes : [1], startingWith: SHA256())
            options.checksum = FileChecksum(algorithm: .sha256, bytes: sum)
            let conclusion = try await bench.resumed(
                first: whole, then: { whole.answer(to: $0) }, options: options)
            #expect((conclusion.file?.resumedBytes ?? 0 > 0) == isRight)
            #expect(conclusion.error?.code == (isRight ? nil : .checksumMismatch))
            #expect(bench.names() == (isRight ? ["file"] : []))
        }
    }

    @Test func `metadata without its partial file is never combined with the bytes of another version`() async throws {
        let old = DownloadBench.resource()
        try await bench.leavePart(of: old)
        // The file is missing if the process is killed after the final rename or another program removes large files.
        try FileManager.default.removeItem(at: try #require(bench.partURL))
        let (half, gate) = (Gate(), Gate())
        let new = TestPattern.bytes(from: 5, count: DownloadBench.size)
        bench.server.route("GET", "/file") { _ in
            LoopbackAnswer(
                .head(200, ["Content-Length": "\(new.count)"]), .send(Array(new[..<100_000])), .stall(until: gate),
                .send(Array(new[100_000...])))
        }
        let calls = Locked<[FileSystemCall.Kind]>([])
        let files = FileSystem { call in
            let counts = call.kind != .remove || call.name?.description.hasSuffix(".metadata") == true
            if counts { calls.withLock { $0.append(call.kind) } }
            return .proceed
        }
        let download = try bench.start(to: .file(bench.url("file")), files: files) { progress in
            if progress.received == 100_000 { half.open() }
        }
        await half.passage()
        #expect(bench.metadataURL == nil)
        // A kill would leave exactly these files.
        try FileManager.default.createDirectory(at: bench.url("killed"), withIntermediateDirectories: false)
        for url in [bench.partURL, bench.metadataURL].compactMap({ $0 }) {
            try FileManager.default.copyItem(at: url, to: bench.url("killed/\(url.lastPathComponent)"))
        }
        gate.open()
        #expect(await download.conclusion().file?.resumedBytes == 0)
        bench.serve(old)
        #expect(try await bench.download(to: .file(bench.url("killed/file"))).file?.resumedBytes == 0)
        #expect(bench.holds("killed/file"))
        let order = calls.withLock { $0.filter { [.remove, .synchronize, .write].contains($0) } }
        #expect(order.prefix(3) == [.remove, .synchronize, .write])
    }

    @Test func `bytes after the synchronized length are never used`() async throws {
        let bytes = TestPattern.bytes(count: 400_000)
        // The length of the body is unknown, so all bytes may have arrived.
        bench.server.route("GET", "/file") { _ in
            LoopbackAnswer(
                .head(200, ["Transfer-Encoding": "chunked", "ETag": "\"one\""]), .chunk(bytes), .close)
        }
        #expect(try await bench.download(to: .file(bench.url("file"))).error != nil)
        // Simulates a power failure after which the file system has extended the file but not written its content.
        try bench.changeMetadata { metadata in
            #expect(metadata.synchronized == 400_000)
            metadata.boot = "before"
        }
        let part = try FileHandle(forUpdating: try #require(bench.partURL))
        try part.truncate(atOffset: 500_000)
        bench.serve(DownloadBench.resource(400_000))
        let file = try await bench.download(to: .file(bench.url("file"))).file
        #expect(file?.length == 400_000)
        // The last byte is requested, so that the server says which version it has.
        #expect(file?.resumedBytes == 399_999)
        #expect(bench.holds("file", size: 400_000))
    }
}
