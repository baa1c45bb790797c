// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Synchronization
import Testing

@testable import OperationNetworking

/// Authentication together with retry, suspension, deadlines, bodies and queues.
@Suite("Authentication with retry, suspension, deadlines and queues", .timeLimit(.minutes(1)))
struct AuthenticationStoryTests {
    @Test func `waiting for a token costs neither a retry attempt nor budget, and appears in the log`() async throws {
        let bench = try TokenBench(), served = Locked(0)
        bench.server.route("GET", "/") { request in
            guard request["Authorization"] == "Bearer new" else { return .status(401) }
            let number = served.next()
            return .status(number < 3 ? 503 : 200)
        }
        let entries = EventRecorder<String>(), told = EventRecorder<RetryEvent>()
        func operation(_ most: Int) -> NetworkDataOperation<String> {
            served.withLock { $0 = 0 }
            let operation = bench.operation(bench.authenticatorForOneThatWaits())
            var retry = Retry(backoff: .constant(.zero), throttledBackoff: .constant(.zero))
            retry.policy.maximumAttempts = most
            retry.budget = RetryBudget(clock: bench.clock)
            operation.retry = retry
            operation.retryHandler = { told.record($0) }
            operation.addNetworkObserver(NetworkLog { entries.record($0) })
            return operation
        }
        let patient = operation(3)
        #expect(try await patient.run() == "")
        await bench.bench.settled()
        #expect(patient.attemptCount == 4)
        #expect(told.events.map(\.attempt) == [2, 3])
        #expect(told.events.map(\.budgetLeft) == [9, 8])
        #expect(entries.events.contains { $0.contains("paused, waiting for a credential") })
        let error = await failure(of: operation(2))
        #expect(error?.status == 503)
        #expect(error?.attempts.map(\.status) == [401, 503, 503])
        #expect(error?.attempts.map(\.putAside?.kind) == [.credential, nil, nil])
        #expect(error?.attempts.map(\.pause) == [nil, .zero, nil])
    }

    @Test func `each waiting operation runs its whole adaptation again after the refresh`() async throws {
        let bench = try TokenBench(), refreshes = Gate()
        let authenticator = bench.authenticator(refresh: refreshes.opening("new"))
        let counts = [Tally(), Tally()]
        let operations = counts.map { count in
            let operation = Hooked(bench.bench, method: "GET") { try $0.with("X-Round", "\(count.add() + 1)") }
            operation.authenticate(by: authenticator)
            return operation
        }
        operations[0].start()
        await until { authenticator.postponedCount == 1 }
        operations[1].start()
        await until { authenticator.postponedCount == 2 }
        refreshes.open()
        for operation in operations { #expect(try await operation.value == "Hello") }
        #expect(counts.map(\.count) == [2, 2])
        let rounds = bench.server.requests.map { $0["X-Round"] }
        #expect(rounds == ["1", "2", "2"])
    }

    @Test
    func `an upload with a one-shot body fails after a rejection, and the token is still refreshed`() async throws {
        let bench = try TokenBench()
        bench.server.route("PUT", "/") { _ in .status(401) }
        let body = RequestBody.stream(InputStream(data: Data("once".utf8)))
        let operation = bench.bench.upload(method: "PUT", body: body)
        let authenticator = bench.authenticator()
        operation.authenticate(by: authenticator)
        let error = await failure(of: operation)
        #expect(error?.code == .bodyNotRepeatable && error?.status == 401)
        #expect((error?.cause as? NetworkError)?.code == .unacceptableStatus)
        #expect(await bench.asked.events(atLeast: 1) == ["old"])
        #expect(bench.server.counts.heads == 1)
        #expect(try await bench.operation(authenticator).run() == "Hello")
        #expect(bench.server.requests.last?["Authorization"] == "Bearer new")
    }

    #if OPERATIONKIT_LIBCURL
        @Test(arguments: [true, false])
        func `a one-shot body that was not read before a rejection is sent afterwards`(isPaused: Bool) async throws {
            let bench = try TokenBench(), accepts = Shared(false), made = Locked(0)
            bench.server.routeEarly("PUT", "/") { request in
                accepts.value || request["Authorization"] == "Bearer new"
                    ? LoopbackAnswer(.head(100), .awaitBody, .head(204))
                    : LoopbackAnswer(.head(isPaused ? 402 : 401, ["Content-Length": "0"]), .close)
            }
            let body = RequestBody.stream(length: 100_000, canBeSentAgain: false) {
                made.withLock { $0 += 1 }
                return PieceProducer(TestPattern.bytes(count: 100_000), size: 10_000)
            }
            let operation = bench.bench.upload(method: "PUT", body: body)
            operation.transferOptions.expectsContinue = true
            let unpaid = PostponedOperations { $0.error.status == 402 }
            operation.postponed = unpaid
            if !isPaused { operation.authenticate(by: bench.authenticator()) }
            operation.start()
            if isPaused {
                await until { unpaid.count == 1 }
                accepts.value = true
                unpaid.runAll()
            }
            #expect(try await operation.value == "")
            #expect(made.withLock { $0 } == 1 && bench.server.counts.heads == 2)
        }
    #endif

    @Test func `the idempotency key stays the same when a rejected request is sent again`() async throws {
        let bench = try TokenBench()
        bench.server.route("POST", "/") { $0["Authorization"] == "Bearer new" ? .text("Hello") : .status(401) }
        let operation = bench.bench.upload(body: .data(Data("x".utf8)))
        operation.idempotencyKey = .random()
        operation.authenticate(by: bench.authenticator())
        #expect(try await operation.run() == "Hello")
        let keys = bench.server.requests.map { $0["Idempotency-Key"] }
        #expect(keys.count == 2 && keys[0] != nil && keys[0] == keys[1])
        #expect(bench.server.requests.allSatisfy { $0.text == "x" })
    }

    @Test func `an operation that waits for a token respects suspension and its deadline`() async throws {
        let bench = try TokenBench(), refreshes = Gate()
        let authenticator = bench.authenticator(
            "old", change: { $0.refreshTimeout = .seconds(1000) },
            refresh: refreshes.opening("new"))
        do {
            let (suspended, late, free) = (
                bench.operation(authenticator), bench.operation(authenticator), bench.operation(authenticator)
            )
            late.deadline = bench.clock.now.advanced(by: .seconds(60))
            for operation in [suspended, late, free] { operation.start() }
            await until { authenticator.postponedCount == 3 }
            #expect(suspended.suspend())
            bench.clock.advance(by: .seconds(60))
            await late.ended()
            #expect(late.outcome?.cancellationCause?.code == .deadlinePassed)
            await until { authenticator.postponedCount == 2 }
            refreshes.open()
            #expect(try await free.value == "Hello")
            #expect(suspended.outcome == nil)
            let heads = bench.server.counts.heads
            #expect(suspended.resume())
            #expect(try await suspended.value == "Hello")
            #expect(bench.server.counts.heads == heads + 1)
        }
        try await bench.bench.checkNothingIsLeft()
    }

    @Test func `the end of a wait is reported before the next attempt, also after a suspension`() async throws {
        let bench = try TokenBench(), refreshes = Gate()
        let authenticator = bench.authenticator("old", refresh: refreshes.opening("new"))
        let operation = bench.operation(authenticator)
        let delaying = DelayedDecision()
        operation.networkAttempts.state.withLock { $0.observation = delaying }
        operation.networkAttempts.isObserved.store(true, ordering: .relaxed)
        operation.start()
        await until { authenticator.postponedCount == 1 }
        operation.suspend()
        refreshes.open()
        await delaying.entered.passage()
        operation.resume()
        delaying.leave.open()
        #expect(try await operation.value == "Hello")
        #expect(delaying.steps.events == ["begins 1", "pauses 1", "decided 1", "begins 2"])
    }

    @Test func `the end of a wait is reported before the next attempt, also if a suspension follows`() async throws {
        let bench = try TokenBench(), refreshes = Gate(), occupied = Gate(), leave = Gate()
        let authenticator = bench.authenticator("old", refresh: refreshes.opening("new"))
        let (operation, queue) = (bench.operation(authenticator), QueueManager("one", width: 1))
        let delaying = DelayedDecision()
        operation.networkAttempts.state.withLock { $0.observation = delaying }
        operation.networkAttempts.isObserved.store(true, ordering: .relaxed)
        try queue.add(operation)
        await until { authenticator.postponedCount == 1 }
        // Another operation takes the slot, so the wait for a slot ends after the suspension.
        try queue.add(
            ClosureOperation {
                occupied.open()
                leave.wait()
            })
        await occupied.passage()
        refreshes.open()
        await delaying.entered.passage()
        operation.suspend()
        leave.open()
        await until { operation.networkAttempts.state.withLock { $0.machine.phase == .preparing } }
        operation.resume()
        delaying.leave.open()
        #expect(try await operation.value == "Hello")
        #expect(delaying.steps.events == ["begins 1", "pauses 1", "decided 1", "begins 2"])
    }

    @Test func `the attempt timeout does not run while the request waits for a token`() async throws {
        let bench = try TokenBench(), refreshes = Gate()
        let authenticator = bench.authenticator(
            nil, change: { $0.refreshTimeout = .seconds(1000) },
            refresh: refreshes.opening("new"))
        let operation = bench.operation(authenticator)
        let retry = with(Retry(budget: nil)) { $0.attemptTimeout = .seconds(5) }
        operation.retry = retry
        operation.start()
        await until { operation.networkAttempts.isResting && bench.clock.pendingCount == 1 }
        bench.clock.advance(by: .seconds(100))
        refreshes.open()
        #expect(try await operation.value == "Hello")
        #expect(operation.attemptCount == 1)
    }

    @Test func `an operation that waits before its next attempt frees its slot`() async throws {
        let bench = try OperationBench { $0.number == 0 ? .status(503) : .text("Hello") }, clock = ManualClock()
        let queue = QueueManager("api", width: 1)
        let (first, second) = (bench.text(), bench.text())
        first.clock = clock
        var retry = Retry(budget: nil)
        retry.throttledBackoff = .constant(.milliseconds(3_250))
        retry.chance = { 1 }
        first.retry = retry
        first.name = "first"
        try queue.add(first)
        await until { first.networkAttempts.isWaitingForTime }
        try queue.add(second)
        #expect(try await second.value == "Hello")
        #expect(queue.explain(first) == "first runs in queue api: waiting 3.2 s before attempt 2.")
        clock.advance(by: .seconds(4))
        #expect(try await first.value == "Hello")
    }
}

/// Records the decisions and preparations of an operation, and delays the report of the end of a wait.
private final class DelayedDecision: AttemptObservation {
    let (entered, leave) = (Gate(), Gate())
    let steps = EventRecorder<String>()

    func record(_ step: AttemptStep, _ number: Int, by operation: any AnyNetworkOperation) {
        switch step {
        case .begins: steps.record("begins \(number)")
        case .decided(let answer):
            if case .pause = answer.decision { return steps.record("pauses \(number)") }
            entered.open()
            leave.wait()
            steps.record("decided \(number)")
        default: break
        }
    }
}
