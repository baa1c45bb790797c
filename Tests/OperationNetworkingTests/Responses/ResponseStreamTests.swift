// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Responses as sequences", .timeLimit(.minutes(3)))
struct ResponseStreamTests {
    private let bench: OperationBench

    init() throws {
        bench = try OperationBench()
    }

    @Test func `lines end at every kind of line ending, wherever the chunks are cut`() async throws {
        let bench = try OperationBench { _ in .chunks(["one\r", "\ntwo\rthr", "ee\n\nfo", "ur é", "\r\nlast"]) }
        let stream = try await bench.session.stream(NetworkRequest(url: bench.server.url("/")))
        #expect(stream.head.status == 200)
        var lines: [String] = []
        for try await line in stream.lines { lines.append(line) }
        #expect(lines == ["one", "two", "three", "", "four é", "last"])
    }

    @Test func `bytes arrive once each and in order`() async throws {
        let bench = try OperationBench { LoopbackResource(.pattern(count: 300_000)).answer(to: $0) }
        let stream = try await bench.session.stream(NetworkRequest(url: bench.server.url("/")))
        var bytes: [UInt8] = []
        for try await byte in stream.bytes { bytes.append(byte) }
        #expect(bytes.count == 300_000 && TestPattern.matches(bytes))
    }

    @Test func `a session that ends without headers causes an error`() async throws {
        let request = try NetworkRequest(url: #require(URL(string: "http://hasty.test")))
        let code = Locked<NetworkError.Code?>(nil)
        let isOver = Gate()
        Task {
            // The tasks of this session end without headers as soon as they are resumed.
            let session = ClosureSession { _, receiver in ClosureTask { receiver.task($0, didEndWith: nil) } }
            do { _ = try await session.stream(request) } catch {
                code.withLock { $0 = (error as? NetworkError)?.code }
            }
            isOver.open()
        }
        try await isOver.passage(within: .seconds(10))
        #expect(code.withLock { $0 } == .invalidResponse)
    }

    @Test func `a reader that takes nothing stops the server, and later gets each byte once`() async throws {
        let options = with(LoopbackServer.Options()) { $0.sendBufferSize = 64 << 10 }
        let bench = try OperationBench(options)
        let size = 64 << 20
        bench.server.route("GET", "/") { LoopbackResource(.pattern(count: size)).answer(to: $0) }
        let stream = try await bench.session.stream(NetworkRequest(url: bench.server.url("/")))
        await bench.server.counts { $0.sentBytes > 64 << 10 }
        // The buffers of the system and of the session limit the amount of sent data.
        #expect(bench.server.counts.sentBytes < 32 << 20)
        var count = 0
        for try await piece in stream {
            #expect(piece.withUnsafeBytes { TestPattern.matches($0, from: count) })
            count += piece.count
        }
        #expect(count == size)
    }

    @Test func `releasing a stream, or canceling its task, cancels the transfer`() async throws {
        bench.server.route("GET", "/") { _ in .stalling(after: "01234") }
        do { _ = try await bench.session.stream(NetworkRequest(url: bench.server.url("/"))) }
        await bench.server.counts { $0.connections == 1 && $0.openConnections == 0 }
        let began = Gate()
        let task = Task {
            for try await _ in try await bench.session.stream(NetworkRequest(url: bench.server.url("/"))) {
                began.open()
            }
        }
        await began.passage()
        task.cancel()
        await #expect(throws: NetworkError.self) { try await task.value }
        await bench.server.counts { $0.connections == 2 && $0.openConnections == 0 }
    }

    @Test func `an unacceptable status and an interrupted body are thrown as errors`() async throws {
        bench.server.route("GET", "/cut") { _ in .repeating([1], count: 1000).cut(at: 500) }
        await #expect { _ = try await bench.session.stream(NetworkRequest(url: bench.server.url("/no"))) } throws: {
            ($0 as? NetworkError)?.status == 404
        }
        bench.server.route("GET", "/gone") { _ in .text("It is gone.", status: 410) }
        await #expect { _ = try await bench.session.stream(NetworkRequest(url: bench.server.url("/gone"))) } throws: {
            ($0 as? NetworkError)?.bodyPrefix == Data("It is gone.".utf8)
        }
        let stream = try await bench.session.stream(NetworkRequest(url: bench.server.url("/cut")))
        await #expect { for try await _ in stream {} } throws: { ($0 as? NetworkError)?.code == .truncatedBody }
    }

    @Test func `if two tasks await the next piece, one gets it and the other gets an error`() async throws {
        let gate = Gate()
        bench.server.route("GET", "/") { _ in
            LoopbackAnswer(.head(200, ["Content-Length": "5"]), .stall(until: gate), .send("Hello"))
        }
        let stream = try await bench.session.stream(NetworkRequest(url: bench.server.url("/")))
        let outcomes = EventRecorder<String>()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    var pieces = stream.makeAsyncIterator()
                    do {
                        outcomes.record(String(decoding: try await pieces.next() ?? Data(), as: UTF8.self))
                    } catch {
                        outcomes.record("\((error as? NetworkError)?.code ?? .transferFailed)")
                        gate.open()
                    }
                }
            }
        }
        #expect(outcomes.events == ["awaitedTwice", "Hello"])
    }

    @Test func `the body of a rejected response is awaited for at most two seconds`() async throws {
        bench.server.route("GET", "/") { _ in
            LoopbackAnswer(.head(503, ["Content-Length": "100"]), .send("wait"), .stallForever)
        }
        let clock = ManualClock()
        let request = try NetworkRequest(url: bench.server.url("/"))
        let asked = Task { try await bench.session.stream(request, rules: ResponseRules(), clock: clock) }
        try await TestThread.run { while clock.pendingCount == 0 { sched_yield() } }
        clock.advance(by: .seconds(2))
        await #expect {
            _ = try await asked.value
        } throws: { error in
            guard let error = error as? NetworkError else { return false }
            return error.status == 503 && Data("wait".utf8).starts(with: error.bodyPrefix ?? Data([0]))
        }
        await bench.server.counts { $0.connections == 1 && $0.openConnections == 0 }
    }

    @Test func `server-sent events have a kind, data and an ID, and reconnect after the last ID`() async throws {
        bench.server.route("GET", "/") { request in
            switch request.number {
            case 0:
                LoopbackAnswer(
                    .head(200, ["Content-Type": "text/event-stream; charset=utf-8"]),
                    .send("\u{FEFF}: hello\nretry: 1\nid: 7\nevent: news\ndata: one\ndata:two\n\ndata: half"), .close)
            case 1: .reset
            case 2:
                LoopbackAnswer(
                    .head(200, ["Content-Type": "text/event-stream"]), .send("data\r\n\r\ndata: last\r\r"), .close)
            default: .status(204)
            }
        }
        var events: [ServerSentEvent] = []
        let request = try NetworkRequest(url: bench.server.url("/"))
        for try await event in ServerSentEvents(request, session: bench.session) { events.append(event) }
        #expect(events.map(\.kind) == ["news", "message", "message"])
        #expect(events.map(\.data) == ["one\ntwo", "", "last"])
        #expect(events.map(\.id) == ["7", "7", "7"])
        #expect(bench.server.requests.map { $0["Last-Event-ID"] } == [nil, "7", "7", "7"])
    }

    @Test func `a response that is not an event stream is rejected, and requested only once`() async throws {
        let bench = try OperationBench { _ in .text("data: x\n\n") }
        let events = ServerSentEvents(try NetworkRequest(url: bench.server.url("/")), session: bench.session)
        await #expect { for try await _ in events {} } throws: {
            ($0 as? NetworkError)?.code == .unacceptableContentType
        }
        #expect(bench.server.counts.heads == 1)
    }
}
