// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Expectations of outcomes", .timeLimit(.minutes(3)))
struct ExpectationTests {
    private enum Flaw: Error, Equatable { case first, second }

    private func started<Operation: ManagedOperation>(_ operation: Operation) -> Operation {
        operation.start()
        return operation
    }

    @Test func `an expectation returns the outcome if it is as expected`() async throws {
        let sum = started(ClosureOperation { 1 + 1 })
        #expect(try await sum.expectSuccess() == 2)
        try await sum.expectSuccess(2)
        let failing = started(ClosureOperation<Int, Flaw> { () throws(Flaw) in throw .first })
        #expect(try await failing.expectFailure() == .first)
        try await failing.expectFailure(.first)
        let cancelled = ClosureOperation { 1 }
        cancelled.cancel(because: .requested("enough"))
        #expect(try await cancelled.expectCancelled().message == "enough")
        try await cancelled.expectCancelled(.requested)
    }

    @Test func `an expectation waits for an operation that is still running`() async throws {
        let gate = Gate()
        let operation = TaskOperation {
            await gate.passage()
            return 3
        }
        operation.start()
        async let result = operation.expectSuccess()
        gate.open()
        #expect(try await result == 3)
    }

    @Test func `an unmet expectation reports the expected and found outcomes and the source location`() async throws {
        let sum = started(ClosureOperation { 2 })
        sum.name = "sum"
        let unmet = await #expect(throws: UnmetExpectation.self) { try await sum.expectSuccess(3) }
        #expect(unmet?.subject == "sum did not end as expected")
        #expect(unmet?.expected == "success 3")
        #expect(unmet?.found == "success 2")
        #expect(unmet?.place.hasPrefix("ExpectationTests.swift:") == true)
        let text = "\(try #require(unmet))"
        #expect(text.contains("\n  expected: success 3\n  found:    success 2"))
        let other = await #expect(throws: UnmetExpectation.self) { try await sum.expectCancelled(.timedOut) }
        #expect(other?.expected == "canceled (timedOut)")
    }

    @Test func `an unmet expectation reports an operation that was not started or is still waiting`() async throws {
        let forgotten = ClosureOperation { 2 }
        let unmet = await #expect(throws: UnmetExpectation.self) {
            try await forgotten.expectSuccess(within: .milliseconds(1))
        }
        #expect(unmet?.found == "no end within 1 ms, it was not started; start it, or add it to a queue")
        let waiting = ClosureOperation { 2 }
        waiting.addDependency(forgotten)
        let dependent = await #expect(throws: UnmetExpectation.self) {
            try await waiting.expectSuccess(within: .milliseconds(1))
        }
        #expect(dependent?.found == "no end within 1 ms, it waits for its dependencies or for its admission")
        forgotten.cancel()
    }

    @Test func `an expectation that times out does not keep the operation alive`() async throws {
        let census = LiveObjects()
        func giveUp() async {
            let forgotten = census.track(ClosureOperation { 2 })
            await #expect(throws: UnmetExpectation.self) {
                try await forgotten.expectSuccess(within: .milliseconds(1))
            }
        }
        await giveUp()
        #expect(try await TestThread.run { census.countAtRest(limit: .seconds(10)) } == 0)
    }

    @Test func `waitUntil polls a condition until it is true or the time is over`() async throws {
        let gate = Gate()
        Thread { gate.open() }.start()
        try await waitUntil("the gate is open") { gate.isOpen }
        let unmet = await #expect(throws: UnmetExpectation.self) {
            try await waitUntil("pigs fly", within: .milliseconds(5)) { false }
        }
        #expect(unmet?.expected == "pigs fly, within 5 ms" && unmet?.found == "false")
    }

    @Test func `canceling a test that awaits an expectation does not cancel the operation`() async throws {
        let gate = Gate()
        let operation = TaskOperation {
            await gate.passage()
            return 3
        }
        operation.start()
        let test = Task { try await operation.expectSuccess() }
        test.cancel()
        await #expect(throws: UnmetExpectation.self) { try await test.value }
        gate.open()
        try await operation.expectSuccess(3)
    }
}

@Suite("Expectations of attempts", .timeLimit(.minutes(3)))
struct AttemptExpectationTests {
    private let session = StubSession()
    private let clock = ManualClock()

    private func operation(_ first: StubAnswer, _ second: StubAnswer = .text("ok")) throws -> NetworkDataOperation<Int>
    {
        session.route("GET", "/songs", inTurn: first, second, .text("ok"))
        let url = try #require(URL(string: "https://example.com/songs?key=secret"))
        let operation = NetworkDataOperation(url: url, urlSession: session) { data, _ in data.count }
        var retry = Retry(budget: nil)
        retry.chance = { 1 }
        retry.backoff = .exponential(from: .seconds(1))
        operation.retry = retry
        operation.clock = clock
        return operation
    }

    @Test func `the story of an operation lists attempts, pauses and the end in one line`() async throws {
        let operation = try operation(.status(503), .failure(.connectionLost))
        operation.start()
        for _ in 0..<2 {
            await clock.pending(atLeast: 1)
            clock.advanceToNext()
        }
        try await operation.expectSuccess(2)
        #expect(operation.story == "503 → 1 s → connectionLost → 2 s → success")
        #expect(clock.pendingCount == 0)
    }

    @Test func `the story shows the reason for which the operation waited between two attempts`() async throws {
        let operation = try operation(.status(401)), gate = Gate()
        let authenticator = Authenticator("old") { token, request in
            try request.with("Authorization", token)
        } refresh: { _ in
            await gate.passage()
            return "new"
        }
        operation.realms = [authenticator.realm]
        operation.start()
        try await waitUntil("it waits for a credential") { operation.waitReason?.kind == .credential }
        gate.open()
        try await operation.expectSuccess(2)
        let reason = try #require(operation.failedAttempts.first?.putAside)
        #expect(reason.kind == .credential && operation.story == "401 → \(reason) → success")
    }

    @Test func `the description of a pause works for any length`() {
        #expect(!Described.time(.seconds(Int64.max)).isEmpty)
        let told: [(Duration, String)] = [
            (.microseconds(499), "0 ms"), (.microseconds(1_500), "2 ms"), (.milliseconds(999), "999 ms"),
            (.microseconds(999_500), "1 s"), (.seconds(90.25), "1 min 30.25 s"), (.seconds(120), "2 min"),
        ]
        for (pause, text) in told { #expect(Described.time(pause) == text) }
    }

    @Test func `expectFailure checks code and status, and its message contains no secrets`() async throws {
        let operation = try operation(.status(404))
        operation.start()
        let error = try await operation.expectFailure(.unacceptableStatus, status: 404)
        #expect(error.status == 404)
        #expect(operation.story == "404")
        let unmet = await #expect(throws: UnmetExpectation.self) {
            try await operation.expectFailure(.timedOut)
        }
        let text = "\(try #require(unmet))"
        #expect(text.contains("expected: failure timedOut"))
        #expect(text.contains("found:    failure unacceptableStatus 404"))
        #expect(text.contains("attempts: 404") && !text.contains("secret"))
    }

    @Test func `the story shows an operation that is still running or canceled during a pause`() async throws {
        let operation = try operation(.status(503))
        #expect(operation.story == "")
        operation.start()
        await clock.pending(atLeast: 1)
        #expect(operation.story.hasSuffix(" → …"))
        operation.cancel()
        try await operation.expectCancelled(.requested)
        #expect(operation.story.hasSuffix(" → canceled"))
        // The thread that set the timer may not have seen yet that the operation is over.
        try await waitUntil("no timer is left") { clock.pendingCount == 0 }
    }
}
