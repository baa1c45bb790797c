// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Server-sent events", .timeLimit(.minutes(3)))
struct ServerSentEventTests {
    private let bench: OperationBench

    init() throws {
        bench = try OperationBench()
    }

    private static let head = LoopbackStep.head(200, ["Content-Type": "text/event-stream"])

    /// Returns the events of connections that send these texts and end.
    ///
    /// The last connection gets status 204.
    private func events(_ texts: String..., bench: OperationBench) async throws -> [ServerSentEvent] {
        bench.server.route("GET", "/") { request in
            guard request.number < texts.count else { return .status(204) }
            return LoopbackAnswer(Self.head, .send(texts[request.number]), .close)
        }
        var events: [ServerSentEvent] = []
        let request = try NetworkRequest(url: bench.server.url("/"))
        let waits = EventRecorder<Duration>(), clock = hastyClock(waits)
        for try await event in ServerSentEvents(request, session: bench.session, clock: clock) { events.append(event) }
        return events
    }

    @Test func `the ID of an incomplete event is not used, and the event is requested again`() async throws {
        let got = try await events("id: 7\ndata: a\n\nid: 8\ndata: half", "id: 8\ndata: whole\n\n", bench: bench)
        #expect(got.map(\.data) == ["a", "whole"])
        #expect(bench.server.requests.map { $0["Last-Event-ID"] } == [nil, "7", "8"])
    }

    @Test func `a line without its end is ignored`() async throws {
        let got = try await events("id: 1\ndata: a\n\nid: 12", "data: b\n\n", bench: bench)
        #expect(got.map(\.id) == ["1", "1"])
        #expect(bench.server.requests.map { $0["Last-Event-ID"] } == [nil, "1", "1"])
    }

    @Test func `an ID that no request can contain is not sent, and the sequence continues`() async throws {
        let got = try await events("id: a\u{1}b\ndata: x\n\n", "data: y\n\nid: 7\n\n", bench: bench)
        #expect(got.map(\.data) == ["x", "y"])
        #expect(bench.server.requests.map { $0["Last-Event-ID"] } == [nil, nil, "7"])
    }

    @Test func `the ID of the user is sent until the server sends an ID, even an empty one`() async throws {
        bench.server.route("GET", "/") { request in
            switch request.number {
            case 0: LoopbackAnswer(Self.head, .send("data: a\n\n"), .close)
            case 1: LoopbackAnswer(Self.head, .send("id\ndata: b\n\n"), .close)
            default: .status(204)
            }
        }
        let request = try NetworkRequest(url: bench.server.url("/"), headers: ["Last-Event-ID": "42"])
        let waits = EventRecorder<Duration>(), clock = hastyClock(waits)
        for try await _ in ServerSentEvents(request, session: bench.session, clock: clock) {}
        #expect(bench.server.requests.map { $0["Last-Event-ID"] } == ["42", "42", nil])
    }

    @Test(arguments: [204, 401])
    func `an iterator sends no other request after its end or an error`(status: Int) async throws {
        let bench = try OperationBench { _ in .status(status) }
        let request = try NetworkRequest(url: bench.server.url("/"))
        let clock = hastyClock(EventRecorder<Duration>())
        var iterator = ServerSentEvents(request, session: bench.session, clock: clock).makeAsyncIterator()
        var errors = 0
        for _ in 0..<3 {
            do {
                let event = try await iterator.next()
                #expect(event == nil)
            } catch {
                errors += 1
            }
        }
        #expect(errors == (status == 204 ? 0 : 1))
        #expect(bench.server.counts.heads == 1)
    }

    @Test func `many lines without data need no more memory than their line feeds`() {
        var parser = ServerSentEventParser()
        let before = ResidentMemory.bytes
        let count = 400_000
        for _ in 0..<count { _ = parser.take("data:") }
        let growth = ResidentMemory.bytes - before
        #if !TSAN && !ASAN
            // A sanitizer uses additional memory for each byte.
            #expect(growth < 4 << 20, "\(growth >> 10) KiB")
        #else
            _ = growth
        #endif
        #expect(parser.take("")?.data.utf8.count == count - 1)
        #expect(parser.take("data:") == nil)
        #expect(parser.take("")?.data == "")
        #expect(parser.take("") == nil)
    }

    @Test func `a pause that is too long for a number is the longest one`() {
        var parser = ServerSentEventParser()
        _ = parser.take("retry: 99999999999999999999")
        #expect(parser.pause == Duration.milliseconds(Int64.max))
        _ = parser.take("retry: 9x")
        #expect(parser.pause == Duration.milliseconds(Int64.max))
    }

    @Test func `an empty event also sets the ID`() async throws {
        let got = try await events("id: 5\n\n", "data: b\n\n", bench: bench)
        #expect(got.map(\.id) == ["5"])
        #expect(bench.server.requests.map { $0["Last-Event-ID"] } == [nil, "5", "5"])
    }

    @Test(arguments: ["\u{301}", "\u{200D}", "\u{FE0F}"])
    func `data may begin with a combining character`(letter: String) async throws {
        let got = try await events("data:\(letter)x\ndata: \(letter)y\n\n", bench: bench)
        #expect(got.map { Array($0.data.utf8) } == [Array("\(letter)x\n\(letter)y".utf8)])
    }

    @Test func `a server that requests no pause gets a short pause, and longer ones after failures`() async throws {
        let waits = EventRecorder<Duration>(), clock = hastyClock(waits)
        bench.server.route("GET", "/") { request in
            switch request.number {
            case 0: LoopbackAnswer(Self.head, .send("retry: 0\ndata: a\n\n"), .close)
            case 1, 2: .reset
            default: .status(204)
            }
        }
        let request = try NetworkRequest(url: bench.server.url("/"))
        for try await _ in ServerSentEvents(request, session: bench.session, clock: clock) {}
        #expect(waits.events == [.milliseconds(100), .seconds(2), .seconds(4)])
    }

    @Test func `a connection that is silent for too long is opened again, if the silence is limited`() async throws {
        // The limit is so long that a delay of the machine between the headers and the event does not exceed it.
        let silence = Duration.seconds(5)
        bench.server.route("GET", "/") { request in
            request.number % 2 == 1
                ? .status(204) : LoopbackAnswer(Self.head, .send("id: 1\ndata: a\n\n"), .stallForever)
        }
        let plain = try NetworkRequest(url: bench.server.url("/"))
        let options = with(plain.options) { $0.timeouts.idle = silence }
        let limited = try NetworkRequest(url: plain.url, options: options)
        let waits = EventRecorder<Duration>(), clock = hastyClock(waits)
        for events in [
            ServerSentEvents(plain, silence: silence, session: bench.session, clock: clock),
            ServerSentEvents(limited, session: bench.session, clock: clock),
        ] {
            var got: [String] = []
            for try await event in events { got.append(event.data) }
            #expect(got == ["a"])
        }
        #expect(bench.server.requests.map { $0["Last-Event-ID"] } == [nil, "1", nil, "1"])
        let stub = StubSession()
        stub.route(nil, "*") { _ in .status(204) }
        for try await _ in ServerSentEvents(plain, session: stub, clock: clock) {}
        #expect(stub.requests.first?.options.timeouts.idle == nil)
    }

    @Test func `an event without end and a line without end are errors`() async throws {
        let line = "data: \(String(repeating: "x", count: 1 << 19))\n"
        bench.server.route("GET", "/event") { _ in
            LoopbackAnswer(Self.head, .send(String(repeating: line, count: 40)), .close)
        }
        bench.server.route("GET", "/line") { _ in
            LoopbackAnswer(Self.head, .send(String(repeating: "x", count: 3 << 20)), .close)
        }
        for target in ["/event", "/line"] {
            let request = try NetworkRequest(url: bench.server.url(target))
            await #expect { for try await _ in ServerSentEvents(request, session: bench.session) {} } throws: {
                ($0 as? NetworkError)?.code == .bodyTooLarge
            }
        }
        #expect(bench.server.counts.heads == 2)
    }

    @Test func `a permanent failure is an error without another attempt`() async throws {
        let bench = try OperationBench { _ in .redirect(to: "/") }
        let request = try NetworkRequest(url: bench.server.url("/"))
        await #expect { for try await _ in ServerSentEvents(request, session: bench.session) {} } throws: {
            ($0 as? NetworkError)?.code == .redirectLoop
        }
    }
}

/// A clock on which no time passes, and which records the requested times.
private func hastyClock(_ waits: EventRecorder<Duration>) -> ClosureClock {
    ClosureClock(
        over: ManualClock(),
        schedule: { instant, action in
            waits.record(instant.offset)
            action()
            return ClosureClock.Done()
        })
}
