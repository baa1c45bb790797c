// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Races during admission", .timeLimit(.minutes(Rounds.minutes)))
struct AdmissionRaceTests {
    @Test func `a dependency added during admission or cancellation is awaited or refused, never lost`() async throws {
        let rounds = Rounds.count(ci: 3_000, soak: 300_000)
        NoticeHub.install()
        let failure = try await TestThread.run { () -> String? in
            let stage = DependencyStage()
            for round in 0..<rounds {
                if let failure = stage.play(isCancelled: round % 4 == 0) { return "round \(round): \(failure)" }
            }
            return nil
        }
        #expect(failure == nil)
        if Rounds.isSoak { print("soak: admission race: \(rounds) rounds of 4 threads") }
    }

    @Test func `concurrent ends, starts, cancellations and clock ticks run one operation at a time`() async throws {
        let rounds = Rounds.count(ci: 3_000, soak: 300_000)
        NoticeHub.install()
        let failure = try await TestThread.run { () -> String? in
            let stage = ThrottleStage()
            for round in 0..<rounds {
                if let failure = stage.play() { return "round \(round): \(failure)" }
            }
            return nil
        }
        #expect(failure == nil)
        if Rounds.isSoak { print("soak: throttle race: \(rounds) rounds of 4 threads") }
    }
}

private struct DependencyStage: Sendable {
    private let team = ThreadTeam(count: 4)
    private let manager = QueueManager("raced", width: 2)
    private let category = OperationCategory("raced")

    @available(*, noasync)
    func play(isCancelled: Bool) -> String? {
        let upstream = HandDriven("upstream")
        let isDependent = Locked(false), hasUpstreamEnded = Locked(true)
        // For each evaluation of the condition: whether it knew of the dependency and the dependency had ended.
        let looks = EventRecorder<Bool>()
        let operation = ClosureOperation<Void, Never> {
            let isRight = upstream.isFinished || !isDependent.withLock { $0 }
            hasUpstreamEnded.withLock { $0 = isRight }
        }
        operation.addCondition("looks") { context in
            looks.record(context.dependencies.contains(upstream) && upstream.isFinished)
            return .satisfied
        }
        operation.categories = [category]
        team.run([
            { try? manager.add(operation) },
            {
                // Only after the dependency is added, because an earlier value could be outdated.
                let isIn = (try? operation.depend(on: upstream, otherwise: .runAnyway)) != nil
                isDependent.withLock { $0 = isIn && operation.dependencies.contains(upstream) }
            },
            {
                upstream.startAndFinish(withResult: 1)
            },
            { if isCancelled { operation.cancel() } },
        ])
        operation.waitUntilFinished()
        if !hasUpstreamEnded.withLock({ $0 }) { return "the body ran before its dependency ended" }
        let isSuccess = operation.outcome.map { if case .success = $0 { true } else { false } } ?? false
        if isSuccess, isDependent.withLock({ $0 }), !looks.events.contains(true) {
            return "the condition was not looked at after the dependency: \(looks.events)"
        }
        // Waits forever if the permit was lost.
        let probe = ClosureOperation<Void, Never> {}
        probe.categories = [category]
        probe.start()
        probe.waitUntilFinished()
        return nil
    }
}

private struct ThrottleStage: Sendable {
    private let team = ThreadTeam(count: 4)
    private let manager = QueueManager("raced", width: 2)
    private let clock = ManualClock()
    private let registry: OperationThrottle

    init() { registry = OperationThrottle(clock: clock) }

    @available(*, noasync)
    func play() -> String? {
        let running = Locked(0), excess = Locked(false)
        func operation(_ early: ThrottleRule.Early) -> ClosureOperation<Void, Never> {
            let operation = ClosureOperation<Void, Never> {
                let isAlone = running.withLock { running in
                    running += 1
                    return running == 1
                }
                if !isAlone { excess.withLock { $0 = true } }
                running.withLock { $0 -= 1 }
            }
            operation.throttle = .init(key: "raced", interval: .seconds(1), early: early, in: registry)
            return operation
        }
        let operations = [operation(.wait), operation(.wait), operation(.replace), operation(.drop)]
        team.run([
            {
                operations[0].start()
                operations[3].start()
            },
            {
                try? manager.add(operations[1])
                operations[0].cancel()
            },
            { operations[2].start() },
            { clock.advance(by: .seconds(1)) },
        ])
        // A waiting operation gets its turn when the clock advances, after the running operation ends.
        while !operations.allSatisfy(\.isFinished) {
            clock.advance(by: .seconds(1))
            sched_yield()
        }
        // The threads that ended the operations may still have to release their permits.
        let start = ContinuousClock.now
        while registry.runner(of: "raced") != nil || clock.pendingCount != 0 {
            if start.duration(to: .now) > .seconds(10) { return "a run or a timer was left behind" }
            sched_yield()
        }
        if excess.withLock({ $0 }) { return "two ran at once" }
        if registry.waitingCount(of: "raced") != 0 { return "somebody waits" }
        clock.advance(by: .seconds(1))
        return registry.nextRun(of: "raced") == nil ? nil : "the key is not free"
    }
}
