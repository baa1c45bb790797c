// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests retry against a real server, with a clock and random values that the test controls.
@Suite("Retry", .timeLimit(.minutes(3)))
struct RetryTests {
    private let clock = ManualClock()

    /// The default retry with its longest pauses and its own budget.
    private func standard(_ change: (inout Retry) -> Void = { _ in }) -> Retry {
        var retry = Retry(budget: RetryBudget(clock: clock))
        retry.chance = { 1 }
        change(&retry)
        return retry
    }

    /// Creates an operation with retry, whose pauses end as soon as they begin, and are recorded.
    private func operation(
        _ bench: OperationBench, _ retry: Retry, method: String = "GET", body: RequestBody = .none,
        pauses: EventRecorder<Duration>? = nil
    ) -> NetworkUploadOperation<String> {
        let operation = bench.upload(method: method, body: body)
        operation.clock = clock
        operation.retry = retry
        operation.endPauses(clock, pauses)
        return operation
    }

    @Test
    func `temporary failures are retried with growing pauses, and the last attempt has the result`() async throws {
        let bench = try OperationBench { $0.number < 2 ? .status($0.number == 0 ? 500 : 503) : .text("Hello") }
        let pauses = EventRecorder<Duration>()
        let told = EventRecorder<RetryEvent>()
        do {
            let operation = operation(bench, standard(), pauses: pauses)
            // The handler may hold the operation, and is released at the end.
            operation.retryHandler = { [operation] event in withExtendedLifetime(operation) { told.record(event) } }
            #expect(try await operation.run() == "Hello")
            await bench.settled()
            #expect(operation.attemptCount == 3)
        }
        // The pauses for an overloaded server are longer.
        #expect(pauses.events == [.milliseconds(500), .seconds(2)])
        #expect(told.events.map(\.reason) == [.mayPass, .mayPass])
        #expect(told.events.map(\.error.status) == [500, 503])
        #expect(told.events.map(\.budgetLeft) == [9, 8])
        try await bench.checkNothingIsLeft()
    }

    @Test func `after the last attempt, the error describes all attempts`() async throws {
        let bench = try OperationBench { $0.number == 1 ? .repeating([1], count: 1000).cut(at: 500) : .status(502) }
        let told = EventRecorder<RetryEvent>()
        let operation = operation(bench, standard())
        operation.retryHandler = { told.record($0) }
        let error = await failure(of: operation)
        await bench.settled()
        #expect(error?.status == 502)
        #expect(error?.attempts.map(\.number) == [1, 2, 3])
        #expect(error?.attempts.map(\.code) == [.unacceptableStatus, .truncatedBody, .unacceptableStatus])
        #expect(error?.attempts.map(\.status) == [502, 200, 502])
        #expect(error?.attempts.map(\.pause) == [.milliseconds(500), .seconds(1), nil])
        #expect(error?.attempts.map(\.began) == [.zero, .milliseconds(500), .milliseconds(1500)])
        #expect(told.events.last?.reason == .attemptsUsedUp)
        #expect(told.events.last?.pause == nil)
    }

    @Test(arguments: [
        (400, false), (401, false), (403, false), (404, false), (408, true), (409, false), (422, false),
        (425, true), (429, true), (500, true), (501, false), (502, true), (503, true), (504, true), (505, false),
        (511, false),
    ])
    func `statuses of temporary failures are retried, and others are not`(status: Int, isRepeated: Bool) async throws {
        let bench = try OperationBench { _ in .status(status) }
        let operation = operation(bench, standard { $0.policy.maximumAttempts = 2 })
        #expect(await failure(of: operation)?.status == status)
        #expect(bench.server.counts.heads == (isRepeated ? 2 : 1))
    }

    @Test func `status 425 is retried once, and 409 only with an idempotency key`() async throws {
        let bench = try OperationBench { _ in .status(425) }
        bench.server.route("POST", "/") { _ in .status(409) }
        _ = await failure(of: operation(bench, standard()))
        #expect(bench.server.counts.heads == 2)
        let keyed = operation(bench, standard(), method: "POST")
        keyed.idempotencyKey = .random()
        _ = await failure(of: keyed)
        #expect(bench.server.counts.heads == 5)
    }

    @Test func `a request that is not idempotent is sent again only with a key, which stays the same`() async throws {
        let bench = try OperationBench()
        bench.server.route("POST", "/") { _ in .status(503) }
        let told = EventRecorder<RetryEvent>()
        let plain = operation(bench, standard(), method: "POST", body: .data(Data("x".utf8)))
        plain.retryHandler = { told.record($0) }
        _ = await failure(of: plain)
        await bench.settled()
        #expect(bench.server.counts.heads == 1)
        #expect(told.events.map(\.reason) == [.notIdempotent])
        let keyed = operation(bench, standard(), method: "POST", body: .data(Data("x".utf8)))
        keyed.idempotencyKey = .random()
        _ = await failure(of: keyed)
        let keys = bench.server.requests.map { $0["Idempotency-Key"] }
        #expect(keys.count == 4 && keys[0] == nil && keys[1] != nil && Set(keys.dropFirst()).count == 1)
        #expect(bench.server.requests.allSatisfy { $0.text == "x" })
        let any = operation(bench, standard { $0.policy = .anyMethod }, method: "POST")
        _ = await failure(of: any)
        #expect(bench.server.counts.heads == 7)
    }

    @Test func `a request that never reached a server is sent again, whatever its method`() async throws {
        let bench = try OperationBench()
        // No server listens on this port.
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let operation = bench.watched(
            NetworkUploadOperation(url: url, body: .data(Data("x".utf8)), urlSession: bench.session) { _, _ in 0 })
        operation.retry = standard {
            $0.backoff = .constant(.zero)
            $0.budget = nil
        }
        let error = await failure(of: operation)
        #expect(error?.code == .cannotConnect)
        #expect(error?.attempts.count == 3)
    }

    @Test(
        "A valid Retry-After header sets the pause, and an invalid header is ignored",
        arguments: [
            ("7", Duration.milliseconds(7700)), ("0", .seconds(1)), ("soon", .seconds(1)), ("-3", .seconds(1)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", .seconds(11)), ("Sun, 06 Nov 1994 08:00:00 GMT", .seconds(1)),
        ])
    func retryAfter(text: String, pause: Duration) async throws {
        let bench = try OperationBench()
        bench.server.route("GET", "/") { request in
            request.number > 0
                ? .text("Hello")
                : .status(503).with("Retry-After", text).with("Date", "Sun, 06 Nov 1994 08:49:37 GMT")
        }
        let pauses = EventRecorder<Duration>()
        #expect(try await operation(bench, standard(), pauses: pauses).run() == "Hello")
        #expect(pauses.events == [pause])
    }

    @Test
    func `if a server requests a pause that is too long, the operation fails and reports the pause`() async throws {
        let bench = try OperationBench()
        for text in ["3600", "99999999999999999999999"] {
            bench.server.route("GET", "/") { _ in .status(429).with("Retry-After", text) }
            let told = EventRecorder<RetryEvent>()
            let operation = operation(bench, standard())
            operation.retryHandler = { told.record($0) }
            let error = await failure(of: operation)
            await bench.settled()
            #expect(error?.status == 429)
            #expect((error?.retryAfter ?? .zero) >= .seconds(3600))
            #expect(told.events.map(\.reason) == [.askedToWaitTooLong])
        }
        #expect(bench.server.counts.heads == 2)
    }

    @Test("With a Retry-After of zero, an operation still pauses, and stops after the maximum of attempts")
    func comeAtOnce() async throws {
        let bench = try OperationBench { _ in .status(503).with("Retry-After", "0") }
        let pauses = EventRecorder<Duration>()
        let error = await failure(of: operation(bench, standard(), pauses: pauses))
        #expect(error?.attempts.count == 3 && error?.retryEnd == .attemptsUsedUp)
        #expect(pauses.events == [.seconds(1), .seconds(2)])
    }

    @Test func `no attempt begins after the window, or too late for the deadline`() async throws {
        let bench = try OperationBench { _ in .status(500) }
        let told = EventRecorder<RetryReason>()
        let narrow = operation(
            bench,
            standard {
                $0.policy.maximumAttempts = 50
                $0.policy.window = .seconds(4)
            })
        narrow.retryHandler = { told.record($0.reason) }
        #expect(await failure(of: narrow)?.attempts.count == 4)
        let hurried = operation(bench, standard { $0.policy.maximumAttempts = 50 })
        hurried.deadline = clock.now.advanced(by: .seconds(4))
        hurried.retryHandler = { told.record($0.reason) }
        #expect(await failure(of: hurried)?.attempts.count == 3)
        await bench.settled()
        #expect(told.events.filter { $0 != .mayPass } == [.windowOver, .deadlineTooNear])
    }

    @Test func `when the budget is used up, the operation fails with its last error`() async throws {
        let bench = try OperationBench { _ in .status(500) }
        let retry = standard { [clock] in $0.budget = RetryBudget(reserve: 3, refillPerSecond: 0, clock: clock) }
        let told = EventRecorder<RetryReason>()
        for _ in 0..<4 {
            let operation = operation(bench, retry)
            operation.retryHandler = { told.record($0.reason) }
            #expect(await failure(of: operation)?.status == 500)
        }
        await bench.settled()
        // There are three in reserve, and four first attempts earn less than one.
        #expect(bench.server.counts.heads == 4 + 3)
        #expect(told.events.count { $0 == .budgetUsedUp } == 3)
    }

    @Test func `a custom decision sees the attempt, may take time, and is bound by the limits`() async throws {
        let bench = try OperationBench { _ in .status(404) }
        let seen = EventRecorder<(number: Int, earlier: Int, status: Int?)>()
        let pauses = EventRecorder<Duration>()
        let retry = standard {
            $0.policy.decide = { attempt in
                await Task.yield()
                seen.record((attempt.number, attempt.earlier.count, attempt.head?.status))
                return attempt.number == 1 ? .again(after: .seconds(9)) : .again
            }
        }
        #expect(await failure(of: operation(bench, retry, pauses: pauses))?.attempts.count == 3)
        #expect(seen.events.map(\.number) == [1, 2, 3])
        #expect(seen.events.map(\.earlier) == [0, 1, 2])
        #expect(seen.events.map(\.status) == [404, 404, 404])
        #expect(pauses.events == [.seconds(9), .seconds(1)])
        bench.server.route("GET", "/") { _ in .status(500) }
        #expect(await failure(of: operation(bench, standard { $0.policy.decide = { _ in .fail } }))?.status == 500)
        #expect(bench.server.counts.heads == 4)
    }

    @Test func `canceled during a custom decision or a pause, an operation ends and sends nothing`() async throws {
        let bench = try OperationBench { _ in .status(500) }
        let (asked, wasCancelled) = (Gate(), Gate())
        do {
            let asking = operation(
                bench,
                standard {
                    $0.policy.decide = { _ in
                        asked.open()
                        await wasCancelled.openedByCancellation()
                        return .again
                    }
                })
            asking.start()
            await asked.passage()
            asking.cancel()
            #expect(asking.isFinished)
            await wasCancelled.passage()
        }
        do {
            let waiting = bench.text()
            waiting.clock = clock
            waiting.retry = standard()
            waiting.start()
            try await TestThread.run { while !waiting.networkAttempts.isWaitingForTime { sched_yield() } }
            waiting.cancel()
            #expect(waiting.isFinished)
            #expect(clock.pendingCount == 0)
        }
        clock.advance(by: .seconds(100))
        await bench.settled()
        #expect(bench.server.counts.heads == 2)
        try await bench.checkNothingIsLeft()
    }

    @Test func `an attempt that exceeds its time is repeated, and suspensions do not count`() async throws {
        let bench = try OperationBench { $0.number == 0 ? .silence : .text("Hello") }
        let operation = operation(
            bench,
            standard {
                $0.attemptTimeout = .seconds(5)
                $0.policy.window = nil
            })
        await bench.server.isReached(by: operation)
        clock.advance(by: .seconds(4))
        #expect(operation.suspend())
        clock.advance(by: .seconds(100))
        #expect(operation.attemptCount == 1)
        #expect(operation.resume())
        #expect(clock.nextDue == clock.now.advanced(by: .seconds(1)))
        clock.advance(by: .seconds(1))
        #expect(try await operation.value == "Hello")
        #expect(operation.attemptCount == 2)
        // The value is available before the timer of the attempts is released.
        try await TestThread.run { [clock] in while clock.pendingCount > 0 { sched_yield() } }
        await bench.server.counts { $0.openConnections <= 1 }
    }

    @Test func `all operations of a base use its retry, and its log names the reason`() async throws {
        let bench = try OperationBench()
        bench.server.route("GET", "/album") { $0.number == 0 ? .status(500) : .json("[1]") }
        let entries = EventRecorder<String>()
        var base = NetworkBase(bench.server.url("/"))
        base.session = bench.session
        base.retry = standard { $0.backoff = .constant(.zero) }
        base.log = NetworkLog { entries.record($0) }
        #expect(try await base.get("album", as: [Int].self).run() == [1])
        #expect(entries.events.contains { $0.contains("next attempt in") && $0.contains("mayPass") })
    }

    @Test func `without retry nothing is repeated, and the error lists no attempts`() async throws {
        let bench = try OperationBench { _ in .status(500) }
        #expect(await failure(of: bench.text())?.attempts == [])
        #expect(bench.server.counts.heads == 1)
    }
}
