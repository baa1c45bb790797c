// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Throttling", .timeLimit(.minutes(3)))
struct ThrottleTests {
    private let clock = ManualClock()
    private let registry: OperationThrottle

    init() { registry = OperationThrottle(clock: clock) }

    private func driven(_ name: String, _ early: ThrottleRule.Early, interval: Int = 60) -> HandDriven {
        let operation = HandDriven(name)
        operation.throttle = .init(key: "feed", interval: .seconds(interval), early: early, in: registry)
        return operation
    }

    private func at(_ seconds: Int) -> OperationInstant { OperationInstant(offset: .seconds(seconds)) }

    /// Starts an operation and waits until its body has started.
    private func run(_ operation: HandDriven, _ starter: Starter) async throws {
        try starter.start(operation)
        _ = await operation.calls.events(atLeast: 1)
    }

    private func finish(_ operation: HandDriven) async {
        await operation.finishAndEnd(withResult: 1)
        #expect(await eventually { registry.runner(of: "feed") !== operation })
    }

    @Test(arguments: StartingWay.allCases)
    func `an early operation is dropped with the time from which it may run`(way: StartingWay) async throws {
        let starter = Starter(way)
        let first = driven("first", .drop), second = driven("second", .drop), third = driven("third", .drop)
        #expect(first.nextRun == nil)
        try await run(first, starter)
        clock.advance(to: at(100))
        await finish(first)
        #expect(registry.nextRun(of: "feed") == at(160) && first.nextRun == at(160) && second.nextRun == at(160))
        clock.advance(to: at(130))
        try starter.start(second)
        await second.ended()
        #expect(second.calls.events == [] && second.cancellationCause?.code == .throttled)
        #expect(
            second.cancellationCause?.message.contains("the key may run again at 160.0 seconds, in 30.0 seconds")
                == true)
        clock.advance(to: at(160))
        #expect(third.nextRun == nil)
        try await run(third, starter)
        await finish(third)
    }

    @Test(arguments: StartingWay.allCases)
    func `while an operation runs, no other operation with its key starts`(way: StartingWay) async throws {
        let starter = Starter(way)
        let first = driven("first", .wait), dropped = driven("dropped", .drop), second = driven("second", .wait)
        try await run(first, starter)
        #expect(second.nextRun == .distantFuture)
        clock.advance(to: at(1_000))
        try starter.start(dropped)
        await dropped.ended()
        #expect(dropped.cancellationCause?.message.contains("the key is running") == true)
        try starter.start(second)
        #expect(await eventually { registry.waitingCount(of: "feed") == 1 })
        clock.advance(to: at(2_000))
        #expect(second.calls.events == [])
        await finish(first)
        clock.advance(to: at(2_059))
        #expect(second.calls.events == [] && clock.pendingCount == 1)
        clock.advance(to: at(2_060))
        #expect(await second.calls.events(atLeast: 1) == ["main"])
        #expect(clock.pendingCount == 0)
        await finish(second)
    }

    @Test(arguments: StartingWay.allCases)
    func `waiting operations run in order, each after the interval of the previous one`(way: StartingWay) async throws {
        let starter = Starter(way)
        let operations = (0..<4).map { driven("\($0)", .wait) }
        for (number, operation) in operations.enumerated() {
            try starter.start(operation)
            #expect(
                await eventually { registry.runner(of: "feed") != nil && registry.waitingCount(of: "feed") == number })
        }
        for (number, operation) in operations.enumerated() {
            #expect(await operation.calls.events(atLeast: 1) == ["main"])
            #expect(registry.waiters(of: "feed") == Array(operations[(number + 1)...]))
            await finish(operation)
            clock.advance(by: .seconds(60))
        }
        #expect(registry.nextRun(of: "feed") == nil && clock.pendingCount == 0)
    }

    @Test(arguments: StartingWay.allCases)
    func `a replacing operation replaces the waiting operation`(way: StartingWay) async throws {
        let starter = Starter(way)
        let first = driven("first", .replace), second = driven("second", .replace), third = driven("third", .replace)
        try await run(first, starter)
        await finish(first)
        try starter.start(second)
        #expect(await eventually { registry.waiters(of: "feed") == [second] })
        try starter.start(third)
        await second.ended()
        #expect(second.cancellationCause?.code == .replaced)
        #expect(second.cancellationCause?.message.contains("third replaced it") == true)
        #expect(registry.waiters(of: "feed") == [third])
        clock.advance(by: .seconds(60))
        #expect(await third.calls.events(atLeast: 1) == ["main"])
        await finish(third)
    }

    @Test(arguments: StartingWay.allCases)
    func `canceling a waiting operation leaves no timer behind`(way: StartingWay) async throws {
        let starter = Starter(way)
        let first = driven("first", .wait), second = driven("second", .wait)
        try await run(first, starter)
        await finish(first)
        try starter.start(second)
        #expect(await eventually { clock.pendingCount == 1 })
        await second.cancelAndEnd()
        #expect(await eventually { clock.pendingCount == 0 && registry.waitingCount(of: "feed") == 0 })
        clock.advance(by: .seconds(100))
        #expect(second.calls.events == [])
    }

    @Test func `a child that waits for a key of a group around it is canceled`() async throws {
        for isNested in [false, true] {
            let child = driven("child", .wait, interval: 0)
            let inner = GroupOperation.all([child])
            let group = isNested ? GroupOperation.all([inner], combine: { $0[0] }) : inner
            group.throttle = child.throttle
            await #expect(throws: OperationFailure<GroupFailure>.self) { try await group.run() }
            #expect(child.calls.events == [] && child.cancellationCause?.code == .waitsForItself)
            #expect(await eventually { registry.runner(of: "feed") == nil && registry.waitingCount(of: "feed") == 0 })
        }
    }

    @Test func `an operation that never started does not count as a run`() async throws {
        let category = OperationCategory("held")
        let holder = HandDriven("holder"), first = driven("first", .drop), second = driven("second", .drop)
        holder.categories = [category]
        first.categories = [category]
        holder.start()
        first.start()
        #expect(registry.runner(of: "feed") === first && category.waiters == [first])
        first.cancel()
        #expect(second.nextRun == nil)
        second.start()
        #expect(second.calls.events == ["main"])
        holder.finish(withResult: 1)
        second.finish(withError: .first)
        // A failed run counts.
        #expect(registry.nextRun(of: "feed") == at(60))
    }

    @Test func `an operation that is canceled while executing counts as a run`() {
        let first = driven("first", .drop)
        first.start()
        clock.advance(to: at(10))
        first.cancel()
        #expect(registry.nextRun(of: "feed") == at(70))
    }

    @Test func `keys and throttles are independent, and operations without a rule are not throttled`() {
        let first = driven("first", .drop), other = HandDriven(), elsewhere = HandDriven(), plain = HandDriven()
        other.throttle = .init(key: "other", interval: .seconds(60), in: registry)
        elsewhere.throttle = .init(key: "feed", interval: .seconds(60), in: OperationThrottle(clock: clock))
        for operation in [first, other, elsewhere, plain] {
            operation.start()
            #expect(operation.calls.events == ["main"])
            operation.finish(withResult: 1)
        }
        #expect(plain.nextRun == nil && plain.throttle == nil)
        // The rule stays readable after the end.
        #expect(other.throttle?.interval == .seconds(60) && other.nextRun == at(60))
    }

    @Test func `the shared throttle of the process works with the system clock`() async {
        let key = "ThrottleTests.systemClock"
        let first = ClosureOperation<Int, Never> { 1 }, second = ClosureOperation<Int, Never> { 2 }
        first.throttle = .init(key: key, interval: .milliseconds(20), early: .wait)
        second.throttle = .init(key: key, interval: .milliseconds(20), early: .wait)
        let begin = SystemClock.shared.now
        first.start()
        await second.startAndEnd()
        #expect(begin.duration(to: SystemClock.shared.now) >= .milliseconds(20))
        #expect(second.outcome?.word == "success 2")
    }
}
