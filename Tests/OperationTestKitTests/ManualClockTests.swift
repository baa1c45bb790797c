// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct ManualClockTests {
    private let clock = ManualClock(start: OperationInstant(offset: .seconds(10)))
    private let calls = EventRecorder<String>()

    private func second(_ second: Int) -> OperationInstant { OperationInstant(offset: .seconds(second)) }

    @Test func `it shows its start and stands still`() {
        #expect(clock.now == second(10))
        #expect(clock.now == second(10))
        #expect(ManualClock().now == second(0))
    }

    @Test func `it moves by durations and to moments and never back`() {
        clock.advance(by: .seconds(5))
        #expect(clock.now == second(15))
        clock.advance(to: second(20))
        #expect(clock.now == second(20))
        clock.advance(to: second(3))
        clock.advance(by: .seconds(-30))
        #expect(clock.now == second(20))
        clock.advance(by: .seconds(Int64.max))
        clock.advance(by: .seconds(Int64.max))
        #expect(clock.now == .distantFuture)
    }

    @Test func `actions are called in the order of their moments and then of their coming`() {
        for (name, due) in [("c", 13), ("a", 11), ("b1", 12), ("b2", 12), ("d", 14)] {
            _ = clock.schedule(at: second(due)) { [calls] in calls.record(name) }
        }
        #expect(clock.nextDue == second(11))
        clock.advance(to: second(13))
        #expect(calls.events == ["a", "b1", "b2", "c"])
        #expect(clock.pendingCount == 1)
        #expect(clock.nextDue == second(14))
    }

    @Test func `an action sees its own moment and is called once`() {
        _ = clock.schedule(after: .seconds(2)) { [calls, clock] in calls.record("\(clock.now)") }
        _ = clock.schedule(after: .seconds(4)) { [calls, clock] in calls.record("\(clock.now)") }
        clock.advance(by: .seconds(100))
        clock.advance(by: .seconds(100))
        #expect(calls.events == ["12.0 seconds", "14.0 seconds"])
        #expect(clock.now == second(210))
    }

    @Test func `an action in the past is called at the next move and sees the present`() {
        _ = clock.schedule(at: second(3)) { [calls, clock] in calls.record("\(clock.now)") }
        #expect(calls.events == [])
        clock.advance(by: .zero)
        #expect(calls.events == ["10.0 seconds"])
    }

    @Test func `what an action schedules is called in the same move if it falls due`() {
        let (clock, calls) = (clock, calls)
        @Sendable func tick() {
            calls.record("\(clock.now.offset.components.seconds)")
            _ = clock.schedule(after: .seconds(2), tick)
        }
        _ = clock.schedule(after: .seconds(1), tick)
        clock.advance(by: .seconds(6))
        #expect(calls.events == ["11", "13", "15"])
        #expect(clock.pendingCount == 1)
        #expect(clock.nextDue == second(17))
    }

    @Test func `a cancelled action is not called and let go of at once`() {
        let census = LiveObjects()
        let timer = clock.schedule(after: .seconds(1)) { [object = census.track(Token()), calls] in
            withExtendedLifetime(object) { calls.record("called") }
        }
        #expect(census.count == 1)
        timer.cancel()
        timer.cancel()
        #expect(census.count == 0)
        #expect(clock.pendingCount == 0)
        clock.advance(by: .seconds(5))
        #expect(calls.events == [])
    }

    @Test func `an action may cancel another that is due in the same move`() {
        let second = Locked<(any OperationTimer)?>(nil)
        _ = clock.schedule(after: .seconds(1)) { second.withLock { $0 }?.cancel() }
        let timer = clock.schedule(after: .seconds(1)) { [calls] in calls.record("second") }
        second.withLock { $0 = timer }
        clock.advance(by: .seconds(1))
        #expect(calls.events == [])
    }

    @Test func `it can go from one due moment to the next`() {
        for due in [30, 20] { _ = clock.schedule(at: second(due)) { [calls] in calls.record("\(due)") } }
        #expect(clock.advanceToNext())
        #expect(clock.now == second(20))
        #expect(clock.advanceToNext())
        #expect(clock.now == second(30))
        #expect(!clock.advanceToNext())
        #expect(clock.now == second(30))
        #expect(calls.events == ["20", "30"])
    }

    @Test func `moved by several threads it calls each action once`() async throws {
        let clock = clock, count = 1_000, called = EventRecorder<Int>()
        for number in 0..<count {
            _ = clock.schedule(after: .milliseconds(number)) { called.record(number) }
        }
        try await TestThread.run {
            let move: @Sendable () -> Void = { while clock.advanceToNext() {} }
            ThreadTeam(count: 4).run([move, move, move, move])
        }
        #expect(called.events.sorted() == Array(0..<count))
        #expect(clock.pendingCount == 0)
    }
}

private final class Token: Sendable {}
