// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct ManualClockTests {
    private let clock = ManualClock(start: OperationInstant(offset: .seconds(10)))
    private let calls = EventRecorder<String>()

    private func second(_ second: Int) -> OperationInstant { OperationInstant(offset: .seconds(second)) }

    @Test func `a manual clock starts at its start time and does not advance automatically`() {
        #expect(clock.now == second(10))
        #expect(clock.now == second(10))
        #expect(ManualClock().now == second(0))
    }

    @Test func `a manual clock advances by durations and to instants but never backward`() {
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

    @Test func `actions are called in order of time and then of scheduling`() {
        for (name, due) in [("c", 13), ("a", 11), ("b1", 12), ("b2", 12), ("d", 14)] {
            _ = clock.schedule(at: second(due)) { [calls] in calls.record(name) }
        }
        #expect(clock.nextDue == second(11))
        clock.advance(to: second(13))
        #expect(calls.events == ["a", "b1", "b2", "c"])
        #expect(clock.pendingCount == 1)
        #expect(clock.nextDue == second(14))
    }

    @Test func `an action sees its scheduled time and is called once`() {
        _ = clock.schedule(after: .seconds(2)) { [calls, clock] in calls.record("\(clock.now)") }
        _ = clock.schedule(after: .seconds(4)) { [calls, clock] in calls.record("\(clock.now)") }
        clock.advance(by: .seconds(100))
        clock.advance(by: .seconds(100))
        #expect(calls.events == ["12.0 seconds", "14.0 seconds"])
        #expect(clock.now == second(210))
    }

    @Test func `an action in the past is called at the next advance and sees the current time`() {
        _ = clock.schedule(at: second(3)) { [calls, clock] in calls.record("\(clock.now)") }
        #expect(calls.events == [])
        clock.advance(by: .zero)
        #expect(calls.events == ["10.0 seconds"])
    }

    @Test func `an action scheduled by another action is called in the same advance if it is due`() {
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

    @Test func `a canceled action is not called and is released immediately`() {
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

    @Test func `an action can cancel another that is due in the same advance`() {
        let second = Locked<(any OperationTimer)?>(nil)
        _ = clock.schedule(after: .seconds(1)) { second.withLock { $0 }?.cancel() }
        let timer = clock.schedule(after: .seconds(1)) { [calls] in calls.record("second") }
        second.withLock { $0 = timer }
        clock.advance(by: .seconds(1))
        #expect(calls.events == [])
    }

    @Test func `advanceToNext advances from one scheduled time to the next`() {
        for due in [30, 20] { _ = clock.schedule(at: second(due)) { [calls] in calls.record("\(due)") } }
        #expect(clock.advanceToNext())
        #expect(clock.now == second(20))
        #expect(clock.advanceToNext())
        #expect(clock.now == second(30))
        #expect(!clock.advanceToNext())
        #expect(clock.now == second(30))
        #expect(calls.events == ["20", "30"])
    }

    @Test func `waiting for pending timers returns when enough timers are scheduled`() async {
        let clock = ManualClock()
        async let waited: Void = clock.pending(atLeast: 2)
        let timers = (1...2).map { clock.schedule(after: .seconds($0)) {} }
        await waited
        await clock.pending(atLeast: 2)
        #expect(clock.pendingCount == 2)
        for timer in timers { timer.cancel() }
    }

    @Test func `a clock that several threads advance calls each action once`() async throws {
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
