// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// The system's clock: that it works at all, in any order; nothing here depends on how fast it is.
@Suite(.timeLimit(.minutes(3)))
struct SystemClockTests {
    private let clock = SystemClock.shared

    @Test func `time does not run backwards`() {
        var last = clock.now
        for _ in 0..<1_000 {
            let now = clock.now
            #expect(now >= last)
            last = now
        }
    }

    @Test func `no action is called before its moment and none is forgotten`() async {
        var random = SeededGenerator(seed: 5)
        let calls = EventRecorder<Bool>(), count = 2_000
        for _ in 0..<count {
            let due = clock.now.advanced(by: .microseconds(Int.random(in: -1_000..<20_000, using: &random)))
            _ = clock.schedule(at: due) { [clock] in calls.record(clock.now >= due) }
        }
        #expect(await calls.events(atLeast: count).allSatisfy { $0 })
    }

    @Test func `an earlier action is not held up by a later one`() async {
        let calls = EventRecorder<String>()
        let late = clock.schedule(after: .seconds(3_600)) { calls.record("late") }
        let never = clock.schedule(at: .distantFuture) { calls.record("never") }
        _ = clock.schedule(after: .milliseconds(1)) { calls.record("early") }
        _ = clock.schedule(after: .seconds(-1)) { calls.record("past") }
        #expect(Set(await calls.events(atLeast: 2)) == ["early", "past"])
        late.cancel()
        never.cancel()
    }

    @Test func `a cancelled action is not called and let go of at once`() async {
        let census = LiveObjects(), calls = EventRecorder<String>()
        let timer = clock.schedule(after: .seconds(3_600)) { [object = census.track(Witness())] in
            withExtendedLifetime(object) { calls.record("cancelled") }
        }
        #expect(census.count == 1)
        timer.cancel()
        timer.cancel()
        #expect(census.count == 0)
    }

    @Test func `cancelling the first action does not hold up the second`() async {
        let calls = EventRecorder<String>()
        let first = clock.schedule(after: .milliseconds(1)) {}
        _ = clock.schedule(after: .milliseconds(2)) { calls.record("second") }
        first.cancel()
        #expect(await calls.events(atLeast: 1) == ["second"])
    }

    @Test func `an action may schedule another and is let go of once it was called`() async {
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

    @Test func `many threads schedule and cancel at once and each action is called or cancelled`() async throws {
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

    @Test func `an operation's timeout, deadline and delay work on it`() async {
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
