// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Bodies in recordings", .timeLimit(.minutes(3)))
struct RecordedBodiesTests {
    private let bench: RecordingBench

    init() throws { bench = try RecordingBench() }

    private func form() throws -> RequestBody {
        var form = MultipartForm()
        form.add("title", "t")
        form.add("password", "hunter2")
        return try .multipart(form)
    }

    @Test(arguments: [LogRedaction.secrets, .none])
    func `multipart forms match regardless of their boundaries`(_ redaction: LogRedaction) async throws {
        let recording = try await bench.recorded(.text("ok"), form(), redaction: redaction)
        #expect(try recording.file.contains("hunter2") == redaction.keepsSecrets)
        var rules = PlaybackRules()
        rules.comparedHeaders = ["Content-Type"]
        let player = PlaybackSession(recording, rules: rules)
        #expect(await bench.end(player, try form()).body == Data("ok".utf8))
        try player.expectAllUsed()
    }

    @Test func `a form with a part that cannot be parsed is compared byte by byte`() async throws {
        func form(_ text: String) throws -> RequestBody {
            var form = MultipartForm()
            form.add("data", body: RequestBody.data(Data(text.utf8)).withContentType("application/json"))
            return try .multipart(form)
        }
        let recording = try await bench.recorded(.text("ok"), form("// a comment"))
        #expect(recording.exchanges.first?.requestBody.gap == .opaque)
        let player = PlaybackSession(recording)
        #expect(await bench.end(player, try form("// another")).error == .notRecorded)
        #expect(await bench.end(player, try form("// a comment")).error == nil)
    }

    @Test(arguments: [LogRedaction.secrets, .none])
    func `a played multipart response uses the boundary that its header names`(_ redaction: LogRedaction) async throws {
        let body = "--x9\r\nContent-Type: text/plain\r\n\r\na x9 b\r\n--x9--\r\n"
        let answer = StubAnswer.data(Data(body.utf8), type: "multipart/byteranges; boundary=x9")
        let recording = try await bench.recorded(answer, redaction: redaction)
        let end = await bench.end(PlaybackSession(recording))
        let boundary = try #require(end.type?.split(separator: "=").last)
        let played = String(decoding: try #require(end.body), as: UTF8.self)
        #expect(played == body.replacing("--x9", with: "--\(boundary)"))
    }

    @Test func `a file that is deleted before the response arrives is still recorded`() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("recorded-\(UUID())")
        let data = Data("a file that is deleted".utf8)
        func body() throws -> RequestBody {
            try data.write(to: file)
            return .file(try FileRegion(file, offset: 2))
        }
        let session = StubSession(), recorder = RecordingSession(over: session)
        session.route("PUT", "/x") { _ in
            try? FileManager.default.removeItem(at: file)
            return .text("ok")
        }
        #expect(await bench.end(recorder, try body()).error == nil)
        await recorder.settled()
        #expect(recorder.recording.exchanges.map(\.requestBody) == [RecordedBody(data.dropFirst(2) + Data())])
        let player = PlaybackSession(recorder.recording)
        #expect(await bench.end(player, try body()).error == nil)
        try FileManager.default.removeItem(at: file)
    }

    @Test func `a file that was changed during the request is not recorded and matches any body`() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("recorded-\(UUID())")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data("one".utf8).write(to: file)
        let session = StubSession(), recorder = RecordingSession(over: session)
        session.route("PUT", "/x") { _ in
            let handle = try? FileHandle(forWritingTo: file)
            try? handle?.truncate(atOffset: 1)
            try? handle?.close()
            return .text("ok")
        }
        #expect(await bench.end(recorder, .file(try FileRegion(file))).error == nil)
        await recorder.settled()
        let recording = try SessionRecording(try recorder.recording.data())
        #expect(recording.exchanges.map(\.requestBody) == [RecordedBody(leftOut: 3, because: .unreadable)])
        #expect(await bench.end(PlaybackSession(recording), .data(Data("two".utf8))).error == nil)
    }

    @Test func `a stream that was not sent to its end is matched by order without its body`() async throws {
        let pieces = ["one", "two", "three"].map { Data($0.utf8) }
        let body = RequestBody.stream(canBeSentAgain: true) { PiecesProducer(pieces) }
        let recorder = RecordingSession(over: HastySession(readingPortions: [1, nil, 0]))
        var live: [NetworkError.Code?] = []
        for _ in 0..<3 { live.append(await bench.end(recorder, body).error) }
        await recorder.settled()
        let recording = try SessionRecording(try recorder.recording.data())
        let whole = RecordedBody(Data("onetwothree".utf8))
        #expect(
            recording.exchanges.map(\.requestBody) == [
                RecordedBody(brokenOff: pieces[0]), whole, RecordedBody(brokenOff: Data()),
            ])
        let player = PlaybackSession(recording)
        var played: [NetworkError.Code?] = []
        for _ in 0..<3 { played.append(await bench.end(player, body).error) }
        #expect(played == live && live == [.unacceptableStatus, nil, .unacceptableStatus])
        try player.expectAllUsed()
    }

    @Test func `a recording can be created manually`() async throws {
        let head = ResponseHead(url: bench.url, status: 200, headers: ["Content-Type": "text/plain"])
        var exchange = RecordedExchange(
            "PUT", url: bench.url.absoluteString, response: head, responseBody: RecordedBody(Data("one".utf8)))
        exchange.responseBody = RecordedBody(Data("another".utf8))
        let recording = try SessionRecording(try SessionRecording([exchange]).data())
        #expect(recording.exchanges == [exchange])
        #expect(await bench.end(PlaybackSession(recording)).body == Data("another".utf8))
    }

    @Test(arguments: [NetworkError.Phase.connecting, .awaitingResponse], [true, false])
    func `a recording file contains every part of a failure`(_ phase: NetworkError.Phase, _ isUnsent: Bool) throws {
        var error = NetworkError(
            code: .connectionLost, phase: phase, message: "It failed.",
            underlying: .init(domain: "own", number: 7, text: "The connection broke."))
        (error.isUnsent, error.status) = (isUnsent, 502)
        let exchange = RecordedExchange(url: bench.url.absoluteString, end: .failed(error))
        #expect(try SessionRecording(try SessionRecording([exchange]).data()).exchanges == [exchange])
    }

    /// A producer that reports wrong byte counts, including negative ones.
    private final class Boaster: BodyProducer {
        private let counts = Locked<[Int]>([-1, 3, .min])

        func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
            counts.withLock { $0.isEmpty ? .end : .bytes($0.removeFirst()) }
        }
    }

    @Test func `a session ignores wrong byte counts of a producer`() async throws {
        let bench = try RecordingBench()
        bench.session.route(nil, "*") { _ in .text("ok") }
        let body = RequestBody.stream(canBeSentAgain: true) { Boaster() }
        #expect(await bench.end(bench.session, body).error == nil)
        #expect(bench.session.requests.map(\.body) == [Data([0, 0, 0])])
        let recorder = RecordingSession(over: bench.session)
        #expect(await bench.end(recorder, body).error == nil)
        #expect(recorder.recording.exchanges.map(\.requestBody) == [RecordedBody(Data([0, 0, 0]))])
    }
}

@Suite("The end of a recording", .timeLimit(.minutes(3)))
struct RecordingSettlingTests {
    private let bench: RecordingBench

    init() throws { bench = try RecordingBench() }

    @Test func `settled() does not wait for tasks that were never started`() async throws {
        let recorder = RecordingSession(over: bench.session)
        await recorder.settled()
        _ = recorder.makeTask(with: try NetworkRequest(url: bench.url), receiver: Deaf())
        await recorder.settled()
        #expect(recorder.recording.exchanges.isEmpty)
    }

    @Test func `settled() waits for running tasks unless the test is canceled`() async throws {
        let gate = Gate(), recorder = RecordingSession(over: bench.session)
        bench.session.route(nil, "*") { _ in .text("ok").after(gate) }
        let operation = bench.operation(recorder)
        operation.start()
        _ = await bench.session.requests(atLeast: 1)
        let test = Task { await recorder.settled() }
        test.cancel()
        await test.value
        #expect(recorder.recording.exchanges.isEmpty)
        async let rest: Void = recorder.settled()
        gate.open()
        await rest
        #expect(recorder.recording.exchanges.count == 1)
    }
}

private final class Deaf: NetworkReceiver {
    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}
    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {}
}
