// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct StubSessionTests {
    private let session = StubSession()

    private func request(_ target: String = "/", _ method: String = "GET", _ body: RequestBody = .none) throws
        -> NetworkRequest
    {
        try NetworkRequest(method, url: try #require(URL(string: "https://example.com\(target)")), body: body)
    }

    private func start(
        _ request: NetworkRequest,
        _ react: @escaping @Sendable (RecordingReceiver.Event, any NetworkTask) -> Void = { _, _ in }
    ) -> Bench.Running {
        let receiver = RecordingReceiver(react)
        let task = session.makeTask(with: request, receiver: receiver)
        task.resume()
        return Bench.Running(task: task, receiver: receiver)
    }

    @Test func `a stub session returns the responses of its routes, and 404 otherwise`() async throws {
        session.route("GET", "/a/*") { .text("got \($0.url.path)") }
        let record = await start(try request("/a/b")).end()
        #expect(record.status == 200)
        #expect(record.text == "got /a/b")
        #expect(await start(try request("/c")).end().status == 404)
        #expect(session.requests.map(\.url.path) == ["/a/b", "/c"])
    }

    @Test func `a request without a path reaches the routes of the root path`() async throws {
        for route in ["/", "/*", "*", ""] {
            session.route("GET", route) { _ in .text("route \(route)") }
            for target in ["", "?x=1", "/"] {
                #expect(await start(try request(target)).end().text == "route \(route)")
            }
        }
    }

    @Test func `a stub session reads request bodies of every kind`() async throws {
        session.route("POST", "/") { .data($0.body, type: "x/y") }
        let bytes = TestPattern.bytes(count: 200_000)
        let bodies: [RequestBody] = [
            .data(Data(bytes)), .file(try FileRegion(try TemporaryFile(Data(bytes)).url)),
            .stream(canBeSentAgain: true) { PieceProducer(bytes, size: 9_000) },
            .stream(canBeSentAgain: true) { PieceProducer(bytes, size: 9_000, isLate: true) },
        ]
        for body in bodies {
            let record = await start(try request("/", "POST", body)).end()
            #expect(record.body == bytes)
            #expect(record.sent == 200_000)
        }
        let failing = RequestBody.stream(canBeSentAgain: true) { PieceProducer(bytes, size: 9_000, failsAt: 20_000) }
        #expect(await start(try request("/", "POST", failing)).end().error?.code == .bodyUnreadable)
    }

    @Test func `a stub session reports the errors of its routes`() async throws {
        session.route(nil, "/early") { _ in .failure(.cannotFindHost) }
        session.route(nil, "/late") { _ in StubAnswer(.head(103), .head(200), .bytes("hel"), .fail(.connectionLost)) }
        #expect(await start(try request("/early")).end().error?.code == .cannotFindHost)
        let late = await start(try request("/late")).end()
        #expect(late.error?.code == .connectionLost)
        #expect(late.text == "hel")
        #expect(late.informational.count == 1)
    }

    @Test func `after a stubbed failure to connect, a request counts as unsent`() async throws {
        session.route("POST", "/", inTurn: .failure(.cannotConnect), StubAnswer(.head(200), .fail(.cannotConnect)))
        let early = await start(try request("/", "POST")).end().error
        #expect(early?.phase == .connecting && early?.isUnsent == true)
        let late = await start(try request("/", "POST")).end().error
        #expect(late?.phase == .receiving && late?.isUnsent == false)
    }

    @Test func `suspend and hold stop a stub task, and pauses follow the clock`() async throws {
        let clock = ManualClock()
        let session = StubSession(clock: clock)
        session.route(nil, "/") { _ in StubAnswer(.head(200), .pause(.seconds(60)), .bytes("hello")) }
        let receiver = RecordingReceiver { event, task in if case .head = event { task.hold() } }
        let task = session.makeTask(with: try request(), receiver: receiver)
        task.resume()
        _ = await receiver.record { $0.head != nil }
        task.suspend()
        task.proceed()
        #expect(clock.pendingCount == 0)
        task.resume()
        try await TestThread.run { while clock.pendingCount == 0 { sched_yield() } }
        clock.advance(by: .seconds(60))
        #expect(await receiver.end().text == "hello")
    }

    @Test func `a stub task canceled at any step delivers only its end`() async throws {
        let gate = Gate()
        session.route(nil, "/") { _ in StubAnswer(.head(103), .head(200), .bytes("a"), .bytes("b"), .stall(until: gate))
        }
        for step in 0..<5 {
            let count = Locked(0)
            let run = start(try request()) { event, task in
                if count.withLock({
                    $0 += 1; return $0
                }) == step {
                    task.cancel()
                }
            }
            if step == 0 { run.task.cancel() }
            if step == 0 || step > 4 { continue }
            #expect(await run.end().error?.code == .cancelled)
            #expect(count.withLock { $0 } == step + 1)
        }
        let never = RecordingReceiver()
        session.makeTask(with: try request(), receiver: never).cancel()
        #expect(await never.end().error?.code == .cancelled)
        gate.open()
    }

    @Test func `a canceled stub task leaves no timer and no waiter at a gate`() async throws {
        let clock = ManualClock(), gate = Gate()
        let session = StubSession(clock: clock)
        session.route(nil, "/pause") { _ in .text("late").after(.seconds(60)) }
        session.route(nil, "/gate") { _ in .text("late").after(gate) }
        for target in ["/pause", "/gate"] {
            let receiver = RecordingReceiver()
            let task = session.makeTask(with: try request(target), receiver: receiver)
            task.resume()
            try await waitUntil("the response waits") { clock.pendingCount + gate.waitingCount == 1 }
            task.cancel()
            #expect(await receiver.end().error?.code == .cancelled)
            #expect(clock.pendingCount == 0 && gate.waitingCount == 0)
        }
    }

    @Test func `closing a stub session ends its tasks`() async throws {
        session.route(nil, "/") { _ in StubAnswer(.head(200), .stall(until: Gate())) }
        let run = start(try request())
        _ = await run.receiver.record { $0.head != nil }
        session.close()
        #expect(await run.end().error?.code == .sessionClosed)
        #expect(await start(try request()).end().error?.code == .sessionClosed)
    }

    @Test func `a stub task canceled while its body is read reports no further progress`() async throws {
        let bytes = TestPattern.bytes(count: 50_000)
        for number in [1, 3] {
            let count = Tally()
            let body = RequestBody.stream(canBeSentAgain: true) {
                PieceProducer(bytes, size: 9_000, isLate: number > 1)
            }
            let run = start(try request("/", "POST", body)) { event, task in
                if case .sent = event, count.add() == number - 1 { task.cancel() }
            }
            let record = await run.end()
            #expect(record.error?.code == .cancelled && record.sent == Int64(number * 9_000))
            #expect(count.count == number)
        }
        #expect(session.requests.isEmpty)
    }

    @Test func `a suspended stub task stops reading its body`() async throws {
        session.route(nil, "/") { .text("\($0.body.count)") }
        let bytes = TestPattern.bytes(count: 50_000)
        let body = RequestBody.stream(canBeSentAgain: true) { PieceProducer(bytes, size: 9_000) }
        let run = start(try request("/", "POST", body)) { event, task in
            if case .sent(9_000, _) = event { task.suspend() }
        }
        _ = await run.receiver.record { $0.sent > 0 }
        #expect(await start(try request()).end().text == "0")
        #expect(run.receiver.record.sent == 9_000)
        run.task.resume()
        #expect(await run.end().text == "50000")
    }

    @Test func `waking a finished upload does not resume a stalled stub response`() async throws {
        let gate = Gate()
        session.route(nil, "/") { _ in StubAnswer(.head(200), .stall(until: gate), .bytes("hello")) }
        let kept = Locked<BodyWaker?>(nil)
        let body = RequestBody.stream(canBeSentAgain: true) {
            ClosureProducer { _, waker, _ in
                kept.withLock { $0 = waker }
                return .end
            }
        }
        let run = start(try request("/", "POST", body))
        _ = await run.receiver.record { $0.head != nil }
        kept.withLock { $0 }?.wake()
        #expect(await start(try request("/none")).end().status == 404)
        #expect(run.receiver.record.bodyCount == 0)
        gate.open()
        #expect(await run.end().text == "hello")
        kept.withLock { $0 = nil }
    }
}
