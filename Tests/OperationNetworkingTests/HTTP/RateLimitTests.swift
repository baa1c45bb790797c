// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@testable import OperationNetworking

/// Tests requests to a service with a rate limit.
///
/// The tests advance the clock.
@Suite("Rate limits", .timeLimit(.minutes(1)))
struct RateLimitTests {
    private let clock = ManualClock()
    private let stub = StubSession()
    private let callbacks = DispatchQueue(label: "RateLimitTests.callbacks")
    /// The path of each request and the second at which it was sent.
    private let sent = EventRecorder<String>()

    init() {
        let (clock, sent) = (clock, sent)
        stub.route(nil, "/*") { request in
            sent.record("\(request.url.lastPathComponent) \(clock.now.offset.components.seconds)")
            return .text("OK")
        }
    }

    private func limit(
        _ count: Int = 1, per period: Duration = .seconds(10), burst: Int = 1, perHost: Bool = false
    ) -> RateLimit {
        RateLimit(count, per: period, burst: burst, perHost: perHost, clock: clock)
    }

    private func session(_ change: (inout ExchangeConfiguration) -> Void = { _ in }) -> ExchangeSession {
        ExchangeSession.over(stub, change)
    }

    private func base(
        _ limit: RateLimit?, host: String = "api.example", _ change: (inout NetworkBase) -> Void = { _ in }
    ) throws -> NetworkBase {
        NetworkBase(try #require(URL(string: "http://\(host)/"))) { base in
            base.session = session()
            base.rateLimit = limit
            base.callbackQueue = callbacks
            change(&base)
        }
    }

    private func started(_ path: String, _ base: NetworkBase) -> EndpointOperation<Data> {
        let operation = base.get(path, as: Data.self)
        operation.clock = clock
        operation.start()
        return operation
    }

    /// Starts operations one after another.
    ///
    /// Each one waits for the rate limit.
    private func waiting(_ paths: [String], _ base: NetworkBase, _ limit: RateLimit) async -> [EndpointOperation<Data>]
    {
        var operations: [EndpointOperation<Data>] = []
        for path in paths {
            let operation = started(path, base)
            operations.append(operation)
            await until { operation.waitReason?.kind == .rateLimit }
        }
        return operations
    }

    @Test
    func `a burst is sent immediately, and later requests follow in order at the rate without a slot`() async throws {
        let limit = limit(burst: 2), base = try base(limit), queue = QueueManager("api", width: 1)
        let operations = ["a", "b", "c", "d"].map { base.get($0, as: Data.self) }
        for (index, operation) in operations.enumerated() {
            try queue.add(operation)
            if index < 2 { _ = try await operation.value }
            await until { index < 2 || operation.waitReason?.kind == .rateLimit }
        }
        #expect(queue.counts.resting == 2 && limit.waitingCount == 2)
        let explanation = queue.explain(operations[3])
        #expect(explanation.hasSuffix("waiting 20.0 s for the rate limit of 1 request per 10.0 seconds."))
        clock.advance(by: .milliseconds(9_999))
        #expect(limit.waitingCount == 2)
        clock.advance(by: .milliseconds(1))
        _ = try await operations[2].value
        #expect(sent.events == ["a 0", "b 0", "c 10"])
        clock.advance(by: .seconds(10))
        _ = try await operations[3].value
        await queue.drained()
        #expect(sent.events.last == "d 20")
        #expect(clock.pendingCount == 0 && limit.waitingCount == 0)
    }

    @Test func `an operation that is canceled while it waits takes no token and leaves no timer`() async throws {
        let limit = limit(), base = try base(limit)
        _ = try await started("first", base).value
        let operations = await waiting(["a", "b"], base, limit)
        operations[0].cancel()
        #expect(limit.waitingCount == 1)
        clock.advance(by: .seconds(10))
        _ = try await operations[1].value
        #expect(sent.events == ["first 0", "b 10"])
        let last = await waiting(["c"], base, limit)
        last[0].cancel()
        #expect(limit.waitingCount == 0 && clock.pendingCount == 0)
    }

    @Test func `an operation whose request is not sent returns its token`() async throws {
        let limit = limit(), base = try base(limit)
        // The operation is canceled after its task is created and before the exchange begins.
        let hooked = Withdrawn(url: base.url.appendingPathComponent("hooked"), urlSession: session())
        hooked.rateLimit = limit
        hooked.start()
        await hooked.ended()
        _ = try await started("next", base).value
        #expect(sent.events == ["next 0"])
    }

    @Test func `a download that fails before its request returns its token`() async throws {
        let limit = limit(), base = try base(limit), folder = try TemporaryFolder()
        let place = folder.url.appendingPathComponent("file")
        try Data().write(to: place)
        let download = NetworkDownloadOperation<URL>(
            url: base.url.appendingPathComponent("file"), urlSession: session())
        download.destination = .file(place)
        download.rateLimit = limit
        download.start()
        _ = try await download.expectFailure(.destinationExists)
        _ = try await started("next", base).value
        #expect(sent.events == ["next 0"])
    }

    @Test func `a download uses one token also if its session has no exchange`() async throws {
        let limit = limit(), base = try base(limit)
        let download = NetworkDownloadOperation<URL>(url: base.url.appendingPathComponent("file"), urlSession: stub)
        download.rateLimit = limit
        try FileManager.default.removeItem(at: try await download.run())
        let next = await waiting(["next"], base, limit)
        clock.advance(by: .seconds(10))
        _ = try await next[0].value
        #expect(sent.events == ["file 0", "next 10"])
    }

    @Test(arguments: [1, 2])
    func `a request takes one token, which returns if the request is canceled while it waits for a slot of its session`(
        exchanges: Int
    ) async throws {
        let limit = limit(), line = Locked<[@Sendable () -> Void]>([])
        let base = try base(limit) { [stub] base in
            base.session = LineSession(stub) { send in line.withLock { $0.append(send) } }
            for _ in 0..<exchanges { base.session = ExchangeSession(over: base.session) }
        }
        let first = started("first", base)
        await until { line.withLock(\.count) == 1 }
        first.cancel()
        let second = started("second", base)
        await until { line.withLock(\.count) == 2 }
        for send in line.withLock({ exchange(&$0, with: []) }) { send() }
        _ = try await second.value
        #expect(sent.events == ["second 0"])
    }

    @Test func `a redirected request that fails after its slot keeps its token, whatever its phase`() async throws {
        // A session that is closed while it sends a request reports this error.
        let closed = NetworkError(code: .sessionClosed, phase: .waiting, message: "The session is closed.")
        stub.route("GET", "/away") { _ in .status(302, ["Location": "/closed"]) }
        stub.route("GET", "/closed") { _ in StubAnswer(.fail(closed)) }
        let limit = limit(burst: 2)
        let base = try base(limit) { [stub] base in
            base.session = ExchangeSession(over: LineSession(stub) { $0() }, configuration: ExchangeConfiguration())
        }
        let operation = started("away", base)
        await operation.ended()
        #expect(operation.outcome?.error?.code == .sessionClosed && stub.requests.count == 2)
        let origin = try #require(RequestOrigin(ofPlain: "http://api.example/"))
        if case .granted = limit.take(for: origin, isAhead: false, { _ in }) {
            Issue.record("A token that a request used was returned.")
        }
    }

    @Test func `a suspended operation lets others go first and is next when it resumes`() async throws {
        let limit = limit(), base = try base(limit)
        _ = try await started("first", base).value
        let operations = await waiting(["a", "b", "c"], base, limit)
        operations[0].suspend()
        clock.advance(by: .seconds(10))
        _ = try await operations[1].value
        #expect(sent.events == ["first 0", "b 10"])
        operations[0].resume()
        await until { operations[0].waitReason?.kind == .rateLimit && limit.waitingCount == 2 }
        for (index, line) in [(0, "a 20"), (2, "c 30")] {
            clock.advance(by: .seconds(10))
            _ = try await operations[index].value
            #expect(sent.events.last == line)
        }
    }

    @Test("Bases that share a limit respect it together, and a per-host limit counts each host separately")
    func sharing() async throws {
        let shared = limit(), perHost = limit(perHost: true)
        let bases = try ["a.example", "b.example"].map { try base(shared, host: $0) }
        _ = try await started("a", bases[0]).value
        let second = await waiting(["b"], bases[1], shared)
        clock.advance(by: .seconds(10))
        _ = try await second[0].value
        #expect(sent.events == ["a 0", "b 10"])
        for host in ["b.example", "a.example"] {
            _ = try await started(host, base(perHost, host: host)).value
            clock.advance(by: .seconds(3))
        }
        #expect(sent.events.suffix(2) == ["b.example 10", "a.example 13"])
        // The second host gets its token first, and the timer of both moves.
        let third = await waiting(["c"], try base(perHost, host: "a.example"), perHost)
        let fourth = await waiting(["d"], try base(perHost, host: "b.example"), perHost)
        let reason = third[0].waitReason?.description
        #expect(reason == "waiting 7.0 s for the rate limit of 1 request per 10.0 seconds and host")
        clock.advance(by: .seconds(4))
        _ = try await fourth[0].value
        #expect(sent.events.last == "d 20" && clock.pendingCount == 1)
        clock.advance(by: .seconds(3))
        _ = try await third[0].value
        #expect(sent.events.last == "c 23" && clock.pendingCount == 0)
    }

    @Test func `retries, redirects and responses to challenges also take tokens`() async throws {
        let (clock, sent) = (clock, sent)
        let turns = Shared(0)
        for path in ["/busy", "/away", "/locked"] {
            stub.route("GET", path) { request in
                sent.record("\(request.url.lastPathComponent) \(clock.now.offset.components.seconds)")
                turns.value += 1
                switch path {
                case "/busy": return turns.value == 1 ? .status(503) : .text("OK")
                case "/away": return .status(302, ["Location": "/target"])
                default:
                    return request["Authorization"] == nil
                        ? .status(401, ["WWW-Authenticate": "Basic realm=\"shop\""]) : .text("OK")
                }
            }
        }
        let retry = Retry(budget: RetryBudget(clock: clock))
        let limit = limit()
        let base = try base(limit) { base in
            base.retry = retry
            base.session = session {
                $0.challenges = ChallengePolicy { _ in .password(user: "anna", password: "secret") }
            }
        }
        for (path, last) in [("busy", "busy"), ("away", "target"), ("locked", "locked")] {
            turns.value = 0
            sent.forget()
            let start = clock.now.offset.components.seconds
            let operation = started(path, base)
            // The clock advances from timer to timer: to the end of the retry delay, and to the next token.
            while !operation.isFinished {
                clock.advanceToNext()
                await Task.yield()
            }
            _ = try await operation.value
            #expect(sent.events == ["\(path) \(start)", "\(last) \(start + 10)"])
            clock.advance(by: .seconds(10))
        }
    }

    @Test func `a session's limit applies to all its requests unless a base has its own limit`() async throws {
        let ofSession = limit(), ofBase = limit(burst: 5)
        let session = session { $0.rateLimit = ofSession }
        let plain = try base(nil) { $0.session = session }, limited = try base(ofBase) { $0.session = session }
        _ = try await started("a", plain).value
        let operation = await waiting(["b"], plain, ofSession)
        for path in ["c", "d"] { _ = try await started(path, limited).value }
        #expect(sent.events == ["a 0", "c 0", "d 0"])
        // A stream has no operation, so it waits in the session.
        let stream = Task { try await plain.stream("stream") }
        await until { ofSession.waitingCount == 2 }
        clock.advance(by: .seconds(10))
        _ = try await operation[0].value
        clock.advance(by: .seconds(10))
        for try await _ in try await stream.value.lines {}
        #expect(sent.events.suffix(2) == ["b 10", "stream 20"])
        let canceled = Task { try await plain.stream("canceled") }
        await until { ofSession.waitingCount == 1 }
        canceled.cancel()
        await #expect(throws: (any Error).self) { try await canceled.value }
        #expect(ofSession.waitingCount == 0 && clock.pendingCount == 0)
    }

    @Test func `a stream waits for the limit of its base with any session`() async throws {
        let limit = limit(), base = try base(limit) { [stub] in $0.session = stub }
        _ = try await base.stream("first")
        let second = Task { try await base.stream("second") }
        await until { [sent] in limit.waitingCount == 1 || sent.count == 2 }
        clock.advance(by: .seconds(10))
        _ = try await second.value
        #expect(sent.events == ["first 0", "second 10"])
    }

    @Test func `a request suspended while it waits in a session takes no token until it resumes`() async throws {
        let limit = limit(), session = session { $0.rateLimit = limit }
        let done = EventRecorder<String>()
        func task(_ path: String) throws -> any NetworkTask {
            let url = try #require(URL(string: "http://api.example/\(path)"))
            let receiver = RecordingReceiver { event, _ in if case .end = event { done.record(path) } }
            return try session.begin(url, receiver)
        }
        let tasks = try ["a", "b", "c"].map { try task($0) }
        #expect(limit.waitingCount == 2)
        #expect(await done.events(atLeast: 1) == ["a"])
        tasks[1].suspend()
        clock.advance(by: .seconds(10))
        #expect(await done.events(atLeast: 2) == ["a", "c"])
        tasks[1].resume()
        await until { limit.waitingCount == 1 }
        clock.advance(by: .seconds(10))
        #expect(await done.events(atLeast: 3) == ["a", "c", "b"])
        #expect(sent.events == ["a 0", "c 10", "b 20"])
    }

    @Test func `a response from the cache takes no token and does not wait`() async throws {
        let folder = CacheFolderFixture(), limit = limit()
        stub.route("GET", "/kept") { _ in
            StubAnswer(.head(200, ["Cache-Control": "max-age=3600", "Content-Length": "2"]), .bytes("OK"))
        }
        let base = try base(limit) { base in
            base.session = session { $0.cache = HTTPCache(folder: folder.url) }
        }
        _ = try await started("kept", base).value
        for _ in 0..<3 { _ = try await started("kept", base).value }
        #expect(stub.requests.count == 1)
        clock.advance(by: .seconds(10))
        _ = try await started("other", base).value
        #expect(sent.events == ["other 10"])
    }

    @Test func `a request that the cache cannot serve waits as an operation, not in the session`() async throws {
        let folder = CacheFolderFixture(), limit = limit()
        let base = try base(limit) { base in
            base.session = session { $0.cache = HTTPCache(folder: folder.url) }
        }
        _ = try await base.delete("first", as: Data.self).run()
        let second = base.delete("second", as: Data.self)
        second.clock = clock
        second.start()
        await until { limit.waitingCount == 1 }
        #expect(second.waitReason?.kind == .rateLimit)
        clock.advance(by: .seconds(10))
        _ = try await second.value
        #expect(sent.events == ["first 0", "second 10"])
    }

    @Test func `a request that is withdrawn before it is sent returns its token and keeps its priority`() async throws {
        let limit = limit(), open = Locked<[@Sendable () -> Void]>([])
        let base = try base(limit) { [stub] base in
            base.session = ExchangeSession(
                over: LineSession(stub) { send in open.withLock { $0.append(send) } },
                configuration: ExchangeConfiguration())
        }
        let gate = RefusesFirst(), first = base.get("first", as: Data.self)
        first.clock = clock
        first.networkAttempts.changePolicies { $0[.manual] = gate }
        first.start()
        await until { open.withLock(\.count) == 1 }
        let others = await waiting(["a", "b"], base, limit)
        // The token goes to "a", and the repeated request waits before "b". If the request is repeated before it
        // returns its token, it keeps the token.
        for send in open.withLock({ exchange(&$0, with: []) }) { send() }
        await until { open.withLock(\.count) == 1 && limit.waitingCount == 2 }
        let keepsToken = others[0].waitReason?.kind == .rateLimit
        for operation in keepsToken ? [first] + others : [others[0], first, others[1]] {
            await until { open.withLock(\.count) == 1 }
            for send in open.withLock({ exchange(&$0, with: []) }) { send() }
            _ = try await operation.value
            clock.advance(by: .seconds(10))
        }
        #expect(sent.events == (keepsToken ? ["first 0", "a 10", "b 20"] : ["a 0", "first 10", "b 20"]))
    }

    @Test func `many suspended operations pass on a token without recursion`() async throws {
        let limit = limit(), base = try base(limit), count = 2_000
        _ = try await started("first", base).value
        let operations = (0..<count).map { started("\($0)", base) }
        await until { limit.waitingCount == count }
        for operation in operations { operation.suspend() }
        let last = await waiting(["last"], base, limit)
        // The thread has the smallest possible stack.
        let clock = clock
        try await TestThread.run(stackSize: 65_536) { clock.advance(by: .seconds(10)) }
        _ = try await last[0].value
        #expect(sent.events == ["first 0", "last 10"])
        for operation in operations { operation.cancel() }
    }

    @Test func `a thousand waiting requests are granted in order, and requests that leave take no token`() throws {
        let limit = limit(10, per: .seconds(1), burst: 10)
        let origin = try #require(RequestOrigin(ofPlain: "http://api.example/"))
        let granted = EventRecorder<Int>()
        var tickets: [RateLimit.Ticket] = []
        for number in 0..<1_010 {
            let admission = limit.take(for: origin, isAhead: false) { _ in granted.record(number) }
            if case .waits(let ticket, let time) = admission {
                tickets.append(ticket)
                #expect(time == .milliseconds(100 * tickets.count))
            }
        }
        #expect(tickets.count == 1_000 && limit.waitingCount == 1_000 && clock.pendingCount == 1)
        for ticket in tickets.enumerated().filter({ $0.offset % 2 == 1 }).map(\.element) { #expect(ticket.leave()) }
        clock.advance(by: .seconds(25))
        #expect(granted.events == (0..<250).map { 10 + 2 * $0 })
        clock.advance(by: .seconds(25))
        #expect(granted.events == (0..<500).map { 10 + 2 * $0 })
        #expect(limit.waitingCount == 0 && clock.pendingCount == 0)
    }

    @Test func `a per-host limit discards hosts that are no longer used`() throws {
        let limit = limit(perHost: true)
        for number in 0..<1_000 {
            let origin = try #require(RequestOrigin(ofPlain: "http://host\(number).example/"))
            if case .waits = limit.take(for: origin, isAhead: false, { _ in }) { Issue.record("Host \(number) waits.") }
            clock.advance(by: .seconds(1))
        }
        #expect(limit.laneCount < 200)
    }
}

/// An operation that is canceled after its task is created and before the task is resumed.
private final class Withdrawn: NetworkDataOperation<String>, @unchecked Sendable {
    override func createTask(
        with request: NetworkRequest, using session: any NetworkSession
    ) throws -> any NetworkTask {
        let task = try super.createTask(with: request, using: session)
        cancel()
        return task
    }
}

/// A gate that refuses the first request when its turn comes.
private final class RefusesFirst: AttemptPolicy, @unchecked Sendable {
    // Sendable: all mutable state is behind a lock.

    private let refused = Locked(false)

    override func maySend(_ number: Int) -> Bool { refused.withLock { exchange(&$0, with: true) } }
}

/// A session in which each request waits for its turn and then asks whether it may still be sent.
private final class LineSession: NetworkSession {
    private final class InLine: WrappingTask {
        let task: any NetworkTask
        let receiver: any NetworkReceiver
        let wait: @Sendable (@escaping @Sendable () -> Void) -> Void

        init(_ task: any NetworkTask, _ receiver: any NetworkReceiver, _ line: LineSession) {
            (self.task, self.receiver, wait) = (task, receiver, line.wait)
        }

        func resume() {
            wait { [self] in receiver.taskMaySend(self) ? task.resume() : task.cancel() }
        }
    }

    private let session: any NetworkSession
    private let wait: @Sendable (@escaping @Sendable () -> Void) -> Void

    /// - Parameter wait: A closure that stores the closure that sends a request.
    init(_ session: any NetworkSession, _ wait: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        (self.session, self.wait) = (session, wait)
    }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        InLine(session.makeTask(with: request, receiver: receiver), receiver, self)
    }
}
