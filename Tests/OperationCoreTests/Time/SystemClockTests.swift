// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Basic checks of the system clock, none of which depends on its speed.
@Suite(.timeLimit(.minutes(3)))
struct SystemClockTests {
    private let clock = SystemClock.shared

    @Test func `the system clock never runs backward`() {
        var last = clock.now
        for _ in 0..<1_000 {
            let now = clock.now
            #expect(now >= last)
            last = now
        }
    }

    @Test func `no action is called before its time and none is lost`() async {
        var random = SeededGenerator(seed: 5)
        let calls = EventRecorder<Bool>(), count = 2_000
        for _ in 0..<count {
            let due = clock.now.advanced(by: .microseconds(Int.random(in: -1_000..<20_000, using: &random)))
            _ = clock.schedule(at: due) { [clock] in calls.record(clock.now >= due) }
        }
        #expect(await calls.events(atLeast: count).allSatisfy { $0 })
    }

    @Test func `an earlier action is not delayed by a later one`() async {
        let calls = EventRecorder<String>()
        let late = clock.schedule(after: .seconds(3_600)) { calls.record("late") }
        let never = clock.schedule(at: .distantFuture) { calls.record("never") }
        _ = clock.schedule(after: .milliseconds(1)) { calls.record("early") }
        _ = clock.schedule(after: .seconds(-1)) { calls.record("past") }
        #expect(Set(await calls.events(atLeast: 2)) == ["early", "past"])
        late.cancel()
        never.cancel()
    }

    @Test func `a canceled action is not called and is released immediately`() async {
        let census = LiveObjects(), calls = EventRecorder<String>()
        let timer = clock.schedule(after: .seconds(3_600)) { [object = census.track(Witness())] in
            withExtendedLifetime(object) { calls.record("cancelled") }
        }
        #expect(census.count == 1)
        timer.cancel()
        timer.cancel()
        #expect(census.count == 0)
    }

    @Test func `canceling the first action does not delay the second`() async {
        let calls = EventRecorder<String>()
        let first = clock.schedule(after: .milliseconds(1)) {}
        _ = clock.schedule(after: .milliseconds(2)) { calls.record("second") }
        first.cancel()
        #expect(await calls.events(atLeast: 1) == ["second"])
    }

    @Test func `an action can schedule another and is released after its call`() async {
        let calls = EventRecorder<Int>(), gone = Gate(), clock = clock
        do {
            let witness = Witness(gone)
            _ = clock.schedule(after: .zero) {
                withExtendedLifetime(witness) { calls.record(1) }
                _ = clock.schedule(after: .microseconds(1)) { calls.record(2) }
            }
        }
        #expect(await calls.events(atLeast: 2) == [1, 2])
        await gone.passage()
    }

    @Test func `each action is called or canceled while several threads schedule and cancel`() async throws {
        let calls = EventRecorder<Int>(), clock = clock
        try await TestThread.run {
            let team = ThreadTeam(count: 4)
            let schedule: @Sendable () -> Void = {
                for number in 0..<500 {
                    let timer = clock.schedule(after: .microseconds(number)) { calls.record(number) }
                    let cancelled = clock.schedule(after: .seconds(3_600)) { calls.record(-1) }
                    cancelled.cancel()
                    withExtendedLifetime(timer) {}
                }
            }
            team.run([schedule, schedule, schedule, schedule])
        }
        #expect(await calls.events(atLeast: 2_000).contains(-1) == false)
    }

    @Test func `timeouts, deadlines and start delays work on the system clock`() async {
        let timedOut = HandDriven(), late = HandDriven(), delayed = HandDriven()
        timedOut.timeout = .milliseconds(1)
        late.deadline = clock.now.advanced(by: .milliseconds(1))
        delayed.startDelay = .milliseconds(1)
        for operation in [timedOut, late, delayed] { operation.start() }
        #expect(await timedOut.finalOutcome.cancellationCause?.code == .timedOut)
        #expect(await late.finalOutcome.cancellationCause?.code == .deadlinePassed)
        #expect(await delayed.calls.events(atLeast: 1) == ["main"])
    }
}
