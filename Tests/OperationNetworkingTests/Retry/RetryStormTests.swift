// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests retry when a server fails and all operations would send their requests again.
@Suite("Retry with a failing server", .timeLimit(.minutes(2)))
struct RetryStormTests {
    /// The counts of a second of the simulation.
    private struct Second {
        var requests = 0
        var successes = 0
    }

    /// Operations that start at regular intervals on a manual clock, against a server that fails at random.
    private final class Simulation: Sendable {
        let clock = ManualClock()
        let budget: RetryBudget
        let origin: RequestOrigin
        let retry: Retry
        private let failing: Range<Int64>
        private let state: Locked<(random: SeededGenerator, seconds: [Second])>

        init(seed: UInt64, failing: Range<Int64>, length: Int) throws {
            budget = RetryBudget(clock: clock)
            origin = try #require(RequestOrigin(ofPlain: "http://h.com"))
            self.failing = failing
            retry = Retry(budget: budget)
            state = Locked((SeededGenerator(seed: seed), Array(repeating: Second(), count: length)))
        }

        func run(perSecond: Int, seconds: Int) {
            for number in 0..<(perSecond * seconds) {
                let start = clock.now.advanced(by: .nanoseconds(Int64(number) * 1_000_000_000 / Int64(perSecond)))
                _ = clock.schedule(at: start) { [self] in
                    budget.earn(for: origin)
                    attempt(1, RetryMachine(), begun: start)
                }
            }
            clock.advance(by: .seconds(seconds + 120))
        }

        private func attempt(_ number: Int, _ machine: RetryMachine, begun: OperationInstant) {
            let now = clock.now
            let (fails, chance) = state.withLock { state in
                let second = min(Int(now.offset.components.seconds), state.seconds.count - 1)
                let isFailing = failing.contains(now.offset.components.seconds)
                let fails = isFailing && Int.random(in: 0..<100, using: &state.random) < 95
                state.seconds[second].requests += 1
                if !fails { state.seconds[second].successes += 1 }
                return (fails, Double.random(in: 0..<1, using: &state.random))
            }
            guard fails else { return }
            var error = NetworkError(code: .unacceptableStatus, phase: .evaluating, message: "")
            error.status = 503
            let failed = FailedAttempt(number: number, error: error)
            let evaluation = machine.evaluate(
                failed, .asPolicySays, of: retry, .init(elapsed: begun.duration(to: now), chance: chance))
            guard let pause = evaluation.pause, budget.spend(for: origin) else { return }
            var next = machine
            next.record(evaluation)
            let noted = next
            _ = clock.schedule(after: pause) { [self] in attempt(number + 1, noted, begun: begun) }
        }

        var seconds: [Second] { state.withLock { $0.seconds } }
    }

    @Test(arguments: [1, 2])
    func `if 95 % of requests fail for a minute, the load grows by a fifth and then recovers`(seed: UInt64) throws {
        let simulation = try Simulation(seed: seed, failing: 10..<70, length: 100)
        simulation.run(perSecond: 200, seconds: 100)
        let seconds = simulation.seconds
        let sick = seconds[10..<70].map(\.requests).reduce(0, +)
        // The retries are a fifth of the first attempts of that time and of the ten seconds before, ten in reserve, and
        // one per second that is refilled.
        #expect(sick <= 60 * 200 + 70 * 200 / 5 + 10 + 60)
        #expect(sick > 60 * 200 * 11 / 10)
        // The earnings of earlier operations are spent in the first seconds. No other second is worse.
        #expect(seconds[20..<70].map(\.requests).max() ?? 0 <= 200 * 14 / 10)
        for second in 72..<99 { #expect(seconds[second].successes >= 200, "second \(second)") }
        #expect(seconds[80..<99].allSatisfy { $0.requests == 200 })
    }

    @Test func `with a real failing server, retries add at most a fifth, and end when it recovers`() async throws {
        let bench = try OperationBench()
        let isHealed = Locked(false)
        let random = Locked(SeededGenerator(seed: 4))
        bench.server.route("GET", "/") { _ in
            let fails = random.withLock { Int.random(in: 0..<100, using: &$0) < 95 }
            return fails && !isHealed.withLock { $0 } ? .status(503) : .text("Hello")
        }
        let clock = ManualClock()
        var retry = Retry(
            backoff: .exponential(from: .milliseconds(5)), throttledBackoff: .exponential(from: .milliseconds(5)),
            // The clock does not advance, so nothing is refilled and nothing expires.
            budget: RetryBudget(clock: clock))
        retry.policy.maximumAttempts = 5
        let count = 300
        let reasons = EventRecorder<RetryReason>()
        let failures = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<count {
                let operation = bench.text()
                operation.retry = retry
                operation.retryHandler = { reasons.record($0.reason) }
                group.addTask { (try? await operation.run()) == nil }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        await bench.settled()
        #expect(bench.server.counts.heads <= count * 12 / 10 + 10)
        #expect(bench.server.counts.heads >= count)
        #expect(failures > count * 8 / 10)
        #expect(reasons.events.contains(.budgetUsedUp))
        isHealed.withLock { $0 = true }
        let before = bench.server.counts.heads
        for _ in 0..<20 {
            let operation = bench.text()
            operation.retry = retry
            #expect(try await operation.run() == "Hello")
        }
        #expect(bench.server.counts.heads == before + 20)
    }
}
