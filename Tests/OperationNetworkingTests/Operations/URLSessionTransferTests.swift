// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Tests downloads, forms and streams with a `URLSession`.
///
/// The server does nothing that Foundation cannot handle.
@Suite("Files and streams with a URLSession", .timeLimit(.minutes(3)))
struct URLSessionTransferTests {
    private let session = URLSession(configuration: .ephemeral)
    private let bench: DownloadBench
    private var url: URL { bench.server.url("/file") }

    init() throws {
        bench = try DownloadBench()
    }

    private func operation(
        to destination: DownloadDestination, _ options: DownloadOptions = .init()
    ) -> NetworkDownloadOperation<URL> {
        let operation = NetworkDownloadOperation<URL>(url: url, urlSession: session) { file, _ in file }
        operation.destination = destination
        operation.downloadOptions = options
        operation.callbackQueue = DispatchQueue(label: "callbacks")
        return operation
    }

    @Test func `a refusal to create a task fails with sessionClosed only if the session is invalidated`() {
        let closed = NetworkError.refusedTask(because: "Task created in a session that has been invalidated")
        #expect(closed.code == .sessionClosed)
        let other = NetworkError.refusedTask(because: "Cannot read file at /a")
        #expect(other.code == .preparationFailed && other.message.contains("Cannot read file at /a"))
    }

    @Test func `a download resumes from its partial file with Range and If-Range`() async throws {
        try await bench.leavePart()
        let operation = operation(to: .file(bench.url("file")))
        _ = try await operation.run()
        let resumed = try #require(operation.downloadedFile?.resumedBytes)
        #expect(resumed > 300_000)
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
        let request = bench.server.requests.last
        #expect(request?["Range"] == "bytes=\(resumed)-" && request?["If-Range"] == "\"one\"")
    }

    @Test func `a changed file or a refused range starts the download again`() async throws {
        try await bench.leavePart()
        bench.serve(DownloadBench.resource(from: 7, etag: "\"two\""))
        let changed = operation(to: .file(bench.url("file")))
        _ = try await changed.run()
        #expect(changed.downloadedFile?.resumedBytes == 0)
        #expect(bench.holds("file", from: 7))
        try FileManager.default.removeItem(at: bench.url("file"))
        try await bench.leavePart()
        let whole = DownloadBench.resource(300_000, etag: "\"three\"")
        bench.server.route("GET", "/file") { request in
            request["Range"] == nil ? whole.answer(to: request) : .status(416, ["Content-Range": "bytes */300000"])
        }
        let refused = operation(to: .file(bench.url("file")))
        _ = try await refused.run()
        #expect(refused.downloadedFile?.resumedBytes == 0)
        #expect(bench.holds("file", size: 300_000))
        #expect(bench.names() == ["file"])
    }

    @Test func `the checksum covers the new bytes and the bytes of the partial file`() async throws {
        let bytes = TestPattern.bytes(count: DownloadBench.size)
        var options = DownloadOptions()
        options.checksum = FileChecksum(
            algorithm: .sha256, bytes: SHA256.checksum(of: bytes, startingWith: SHA256()))
        try await bench.leavePart(options: options)
        _ = try await operation(to: .file(bench.url("file")), options).run()
        #expect(bench.holds("file"))
        bench.serve(DownloadBench.resource(from: 1))
        #expect(await failure(of: operation(to: .file(bench.url("other")), options))?.code == .checksumMismatch)
        #expect(bench.names() == ["file"])
    }

    @Test func `a temporary file is complete, and its progress grows to the total`() async throws {
        bench.serve(DownloadBench.resource())
        let operation = operation(to: .temporary)
        let told = EventRecorder<TransferProgress>()
        operation.downloadProgressHandler = { told.record($0) }
        let progress = operation.progress
        let ended = Gate()
        operation.successHandler = { _ in ended.open() }
        let file = try await operation.run()
        defer { try? FileManager.default.removeItem(at: file) }
        await ended.passage()
        let bytes = Array(try Data(contentsOf: file))
        #expect(bytes.count == DownloadBench.size && TestPattern.matches(bytes))
        let counts = told.events.map(\.completedBytes)
        #expect(counts == counts.sorted())
        let size = Int64(DownloadBench.size)
        #expect(told.events.last == TransferProgress(completedBytes: size, totalBytes: size))
        #expect(progress.isFinished && progress.totalUnitCount == size)
    }

    @Test func `canceled within a file, a download keeps its partial file, and the next one resumes`() async throws {
        bench.server.route("GET", "/file") { _ in
            LoopbackAnswer(
                .head(200, ["Content-Length": "\(DownloadBench.size)", "ETag": "\"one\""]),
                .send(TestPattern.bytes(count: 300_000)), .stallForever)
        }
        let first = operation(to: .file(bench.url("file")))
        let received = Gate()
        first.progressPacing = ProgressPacing(smallestStep: 1)
        first.downloadProgressHandler = { if $0.completedBytes == 300_000 { received.open() } }
        first.start()
        await received.passage()
        first.cancel()
        await bench.server.counts { $0.openConnections == 0 }
        bench.serve(DownloadBench.resource())
        let second = operation(to: .file(bench.url("file")))
        _ = try await second.run()
        #expect(second.downloadedFile?.resumedBytes == 300_000)
        #expect(bench.holds("file"))
    }

    @Test func `a form of fields, files and streams is sent with its length and its boundary`() async throws {
        bench.server.route("POST", "/form") { request in
            let head = "\(request["Content-Type"] ?? "") \(request["Content-Length"] ?? "")"
            return .text("\(head) \(request.bodyCount)\n\(request.text)")
        }
        let file = try TemporaryFile(Data("file's bytes".utf8))
        var form = MultipartForm(boundary: "limit")
        form.add("title", "One")
        form.add("photo", file: try FileRegion(file.url, offset: 7, length: 5), fileName: "a.jpeg")
        form.add(
            .init(
                name: "stream", fileName: "s.txt",
                body: .stream(length: 4, canBeSentAgain: true) { PieceProducer(Array("abcd".utf8), size: 3) }))
        let body = try RequestBody.multipart(form)
        let length = try #require(body.length)
        let operation = NetworkUploadOperation(url: bench.server.url("/form"), body: body, urlSession: session) {
            data, _ in String(decoding: data, as: UTF8.self)
        }
        let text = try await operation.run()
        #expect(text.hasPrefix("multipart/form-data; boundary=limit \(length) \(length)\n--limit\r\n"))
        #expect(text.contains("\r\n\r\nOne\r\n--limit") && text.contains("\r\n\r\nbytes\r\n--limit"))
        #expect(text.hasSuffix("\r\n\r\nabcd\r\n--limit--\r\n"))
    }

    @Test func `lines and bytes arrive as a sequence, and releasing the stream ends the transfer`() async throws {
        bench.server.route("GET", "/open") { _ in .stalling(after: "01234") }
        do { _ = try await session.stream(NetworkRequest(url: bench.server.url("/open"))) }
        await bench.server.counts { $0.openConnections == 0 }
        bench.server.route("GET", "/lines") { _ in .chunks(["one\r", "\ntwo\nthr", "ee"]) }
        var lines: [String] = []
        for try await line in try await session.stream(NetworkRequest(url: bench.server.url("/lines"))).lines {
            lines.append(line)
        }
        #expect(lines == ["one", "two", "three"])
        bench.serve(DownloadBench.resource(100_000))
        var bytes: [UInt8] = []
        for try await byte in try await session.stream(NetworkRequest(url: url)).bytes { bytes.append(byte) }
        #expect(bytes.count == 100_000 && TestPattern.matches(bytes))
    }

    @Test func `events of a server arrive with their IDs, and the connection is opened again`() async throws {
        bench.server.route("GET", "/events") { request in
            guard request.number == 0 else { return .status(204) }
            return .bytes(
                Array("retry: 1\nid: 7\ndata: one\n\ndata: two\n\n".utf8),
                fields: [LoopbackField("Content-Type", "text/event-stream")])
        }
        var events: [ServerSentEvent] = []
        let request = try NetworkRequest(url: bench.server.url("/events"))
        for try await event in ServerSentEvents(request, session: session) { events.append(event) }
        #expect(events.map(\.data) == ["one", "two"] && events.map(\.id) == ["7", "7"])
        #expect(bench.server.requests.map { $0["Last-Event-ID"] } == [nil, "7"])
    }
}
