// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("NetworkDownloadOperation and NetworkUploadOperation", .timeLimit(.minutes(3)))
struct NetworkDownloadOperationTests {
    private let bench: OperationBench

    init() throws {
        bench = try OperationBench()
    }

    @Test func `an evaluator can move the complete downloaded file`() async throws {
        bench.server.route("GET", "/file") { LoopbackResource(.pattern(count: 3 << 20)).answer(to: $0) }
        let url = bench.server.url("/file")
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("download-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: place) }
        let operation = NetworkDownloadOperation<URL>(url: url, urlSession: .shared) { temporaryURL, response in
            try FileManager.default.moveItem(at: temporaryURL, to: place)
            return place
        }
        #expect(try await operation.run() == place)
        let data = try Data(contentsOf: place)
        #expect(data.count == 3 << 20)
        #expect(data.withUnsafeBytes { TestPattern.matches($0, from: 0) })
        #expect(operation.downloadProgress == TransferProgress(completedBytes: 3 << 20, totalBytes: 3 << 20))
    }

    @Test func `the temporary file is deleted unless it was moved or its URL is the result`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        let url = bench.server.url("/")
        let read = NetworkDownloadOperation<(URL, Int)>(url: url, urlSession: bench.session) { file, _ in
            (file, try Data(contentsOf: file).count)
        }
        let (file, count) = try await read.run()
        #expect(count == 5)
        #expect(!FileManager.default.fileExists(atPath: file.path))
        let kept = NetworkDownloadOperation<URL>(url: bench.server.url("/"), urlSession: bench.session) { file, _ in
            file
        }
        let result = try await kept.run()
        #expect(try Data(contentsOf: result) == Data("Hello".utf8))
        try FileManager.default.removeItem(at: result)
    }

    @Test func `onCompletion gets the operation in its own type, with the file`() async throws {
        let bench = try OperationBench(), folder = try TemporaryFolder()
        bench.server.route("GET", "/file") { _ in .text("Hello") }
        bench.server.route("GET", "/none") { _ in .text("no", status: 404) }
        let files = EventRecorder<String>()
        for target in ["/file", "/none"] {
            let operation = bench.watched(
                NetworkDownloadOperation<URL>(url: bench.server.url(target), urlSession: bench.session))
            operation.destination = .folder(folder.url)
            operation.onCompletion { operation, error in
                let file = operation.downloadedFile
                files.record(
                    "\(file?.url.lastPathComponent ?? "none") \(file?.length ?? 0) \(error?.code.description ?? "")")
            }
            await operation.startAndEnd()
            await bench.settled()
        }
        #expect(files.events == ["file 5 ", "none 0 unacceptableStatus"])
    }

    @Test
    func `a file whose URL is the result is deleted if the operation is canceled during the evaluation`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        let folder = try TemporaryFolder()
        let (entered, goOn) = (Gate(), Gate())
        let operation = DownloadTo(folder.url, bench, "/") { file, _ in
            entered.open()
            goOn.wait()
            return file
        }
        operation.start()
        await entered.passage()
        operation.cancel()
        goOn.open()
        #expect(await operation.finalOutcome.cancellationCause == .requested)
        #expect(try await folder.contentAtRest() == [])
    }

    @Test func `a file is deleted if the operation is canceled while a suspended result waits`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        let folder = try TemporaryFolder()
        let (entered, goOn, did) = (Gate(), Gate(), Gate())
        let operation = DownloadTo(folder.url, bench, "/") { file, _ in
            entered.open()
            goOn.wait()
            return file
        }
        operation.addNetworkObserver(Watcher { if $0.kind == .attemptEnded { did.open() } })
        operation.start()
        await entered.passage()
        #expect(operation.suspend())
        goOn.open()
        await did.passage()
        #expect(folder.content.count == 1)
        operation.cancel()
        #expect(await operation.finalOutcome.cancellationCause == .requested)
        #expect(try await folder.contentAtRest() == [])
        withExtendedLifetime(operation) {}
    }

    @Test func `a NetworkRequest is uploaded with its own body, or with another one`() async throws {
        bench.server.route("POST", "/") { .text("\($0["X-One"] ?? "") \($0.text)") }
        let request = try NetworkRequest(
            "POST", url: bench.server.url("/"), headers: ["X-One": "1"], body: .data(Data("own".utf8)))
        let read: NetworkUploadOperation<String>.Evaluator = { data, _ in String(decoding: data, as: UTF8.self) }
        let other = RequestBody.data(Data("other".utf8))
        let (session, foundation) = (bench.session, URLRequest(url: request.url))
        #expect(
            try await NetworkUploadOperation(request: request, urlSession: session, evaluator: read).run() == "1 own")
        #expect(try await NetworkUploadOperation(request: request, evaluator: read).run() == "1 own")
        let replaced = NetworkUploadOperation(request: request, body: other, urlSession: session, evaluator: read)
        #expect(try await replaced.run() == "1 other")
        #expect(try await NetworkUploadOperation(request: request, body: other, evaluator: read).run() == "1 other")
        var posted = foundation
        posted.httpMethod = "POST"
        posted.httpBody = Data("theirs".utf8)
        #expect(
            try await NetworkUploadOperation(request: posted, urlSession: session, evaluator: read).run() == " theirs")
    }

    @Test func `a URLRequest can contain the length of the operation's body`() async throws {
        bench.server.route("PUT", "/") { .text("\($0["Content-Length"] ?? "none") \($0.text)") }
        let hello = Data("hello".utf8)
        let stream = RequestBody.stream(canBeSentAgain: true) { PieceProducer(Array(hello), size: .max) }
        var request = URLRequest(url: bench.server.url("/"))
        request.httpMethod = "PUT"
        for body in [RequestBody.data(hello), .file(try FileRegion(TemporaryFile(hello).url)), stream] {
            request.setValue("5", forHTTPHeaderField: "Content-Length")
            let right = NetworkUploadOperation<String>(request: request, body: body, urlSession: bench.session)
            #expect(try await right.run() == "5 hello")
            request.setValue("6", forHTTPHeaderField: "Content-Length")
            let wrong = NetworkUploadOperation<String>(request: request, body: body, urlSession: bench.session)
            #expect(await failure(of: wrong)?.code == .bodyLengthMismatch)
        }
    }

    @Test func `an operation's body replaces that of its URLRequest, and a hook's body replaces both`() async throws {
        final class Hooked: NetworkUploadOperation<String>, @unchecked Sendable {
            let seen = EventRecorder<Int?>()
            let intervals = EventRecorder<TimeInterval>()
            let own: Data?

            init(_ request: URLRequest, _ bench: OperationBench, own: Data?) {
                self.own = own
                let body = RequestBody.data(Data("ours".utf8))
                super.init(request: request, body: body, urlSession: bench.session) { data, _ in
                    String(decoding: data, as: UTF8.self)
                }
            }

            override func prepareRequest(_ request: URLRequest) -> URLRequest {
                seen.record(request.httpBody?.count)
                intervals.record(request.timeoutInterval)
                var request = request
                if let own { request.httpBody = own }
                return request
            }
        }
        bench.server.route("POST", "/") { .text($0.text) }
        var inMemory = URLRequest(url: bench.server.url("/"))
        inMemory.httpMethod = "POST"
        var streamed = inMemory
        inMemory.httpBody = Data("theirs".utf8)
        streamed.httpBodyStream = InputStream(data: Data("theirs".utf8))
        for request in [inMemory, streamed] {
            let plain = NetworkUploadOperation(
                request: request, body: .data(Data("ours".utf8)), urlSession: bench.session
            ) { data, _ in String(decoding: data, as: UTF8.self) }
            #expect(try await plain.run() == "ours")
        }
        let hooked = Hooked(inMemory, bench, own: nil)
        #expect(try await hooked.run() == "ours")
        #expect(hooked.seen.events == [4])
        #expect(try await Hooked(inMemory, bench, own: Data("hook".utf8)).run() == "hook")
        #expect(try await Hooked(inMemory, bench, own: Data()).run() == "")
        inMemory.timeoutInterval = 7
        let patient = Hooked(inMemory, bench, own: nil)
        #expect(try await patient.run() == "ours")
        #expect(patient.intervals.events == [7])
    }

    @Test func `a download with a request body reports both, and its progress is that of the file`() async throws {
        let (gate, half) = (Gate(), Gate())
        bench.server.route("POST", "/") { _ in .pattern(600_000, stallingAfter: 300_000, until: gate) }
        let request = try NetworkRequest(
            "POST", url: bench.server.url("/"), body: .data(Data(repeating: 7, count: 200_000)))
        let operation = bench.watched(
            NetworkDownloadOperation<Int>(request: request, urlSession: bench.session) { file, _ in
                try Data(contentsOf: file).count
            })
        let progress = operation.progress
        operation.progressPacing = ProgressPacing(smallestStep: 1)
        operation.downloadProgressHandler = { if $0.completedBytes == 300_000 { half.open() } }
        operation.start()
        await half.passage()
        await bench.settled()
        #expect(progress.totalUnitCount == 600_000 && progress.completedUnitCount == 300_000, "\(progress)")
        gate.open()
        #expect(try await operation.value == 600_000)
        await bench.settled()
        #expect(operation.uploadProgress == TransferProgress(completedBytes: 200_000, totalBytes: 200_000))
        #expect(progress.isFinished && progress.totalUnitCount == 600_000)
    }

    @Test func `a download that fails leaves no file, whatever the failure`() async throws {
        struct Mine: Error {}
        bench.server.route("GET", "/status") { _ in .text("gone", status: 410) }
        bench.server.route("GET", "/cut") { _ in .repeating([1, 2, 3], count: 1_000_000).cut(at: 500_000, by: .reset) }
        bench.server.route("GET", "/well") { _ in .text("Hello") }
        let folder = try TemporaryFolder()
        let status = DownloadTo(folder.url, bench, "/status") { file, _ in file }
        #expect(await failure(of: status)?.bodyPrefix == Data("gone".utf8))
        #expect(await failure(of: DownloadTo(folder.url, bench, "/cut") { file, _ in file })?.code == .connectionLost)
        #expect(await failure(of: DownloadTo(folder.url, bench, "/well") { _, _ in throw Mine() })?.cause is Mine)
        #expect(try await folder.contentAtRest() == [])
        let nowhere = DownloadTo(folder.url.appendingPathComponent("no"), bench, "/well") { file, _ in file }
        #expect(await failure(of: nowhere)?.code == .fileUnwritable)
        #expect(await failure(of: nowhere)?.underlying?.number == 2)
    }

    @Test func `a body from data or from a file is sent completely, and its progress is reported`() async throws {
        bench.server.route("POST", "/") { .text("\($0.bodyCount)") }
        bench.server.route("PUT", "/") { .text("\($0.bodyCount)") }
        let bytes = Data(repeating: 7, count: 2 << 20)
        let fromData = bench.upload(body: .data(bytes))
        #expect(try await fromData.run() == "\(bytes.count)")
        #expect(fromData.uploadProgress == TransferProgress(completedBytes: 2 << 20, totalBytes: 2 << 20))
        let file = try TemporaryFile(bytes)
        let fromFile = bench.upload(method: "PUT", body: .file(try FileRegion(file.url)))
        #expect(try await fromFile.run() == "\(bytes.count)")
        #expect(bench.server.requests.map(\.method) == ["POST", "PUT"])
    }
}

/// A download whose temporary file is in a folder of the test.
final class DownloadTo<Value: Sendable>: NetworkDownloadOperation<Value>, @unchecked Sendable {
    private let folder: URL

    init(
        _ folder: URL, _ bench: OperationBench, _ target: String,
        _ evaluator: @escaping Evaluator
    ) {
        self.folder = folder
        super.init(url: bench.server.url(target), urlSession: bench.session, evaluator: evaluator)
        callbackQueue = bench.callbacks
        bench.census.track(self)
    }

    override var temporaryFolder: URL { folder }
}

/// A folder that is deleted when the object is released.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("folder-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// Returns the content after pending deletions had time to complete.
    func contentAtRest() async throws -> [String] {
        try await TestThread.run { [self] in
            let start = ContinuousClock.now
            while content != [], start.duration(to: .now) < .seconds(30) { sched_yield() }
            return content
        }
    }

    var content: [String] { (try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? [] }
}
