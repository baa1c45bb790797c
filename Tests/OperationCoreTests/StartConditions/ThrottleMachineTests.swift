// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import Testing

private func at(_ seconds: Int) -> OperationInstant { OperationInstant(offset: .seconds(seconds)) }

/// A machine whose events can be used in an expectation, with times in seconds.
private final class Machine {
    private var machine = ThrottleMachine<Int>()

    var count: Int { machine.count }

    func ask(
        _ party: Int, _ early: ThrottleRule.Early, _ now: Int, interval: Duration = .seconds(10), key: String = "key"
    ) -> ThrottleMachine<Int>.Reply {
        machine.ask(party, key, interval: interval, early: early, now: at(now))
    }

    func leave(_ party: Int, hasRun: Bool, _ now: Int, key: String = "key") -> Int? {
        machine.leave(party, key, hasRun: hasRun, now: at(now))
    }

    func nextRun(_ now: Int, key: String = "key") -> OperationInstant? { machine.nextRun(of: key, now: at(now)) }
}

@Suite("The time at which a key may run again", .timeLimit(.minutes(3)))
struct ThrottleMachineTests {
    private let machine = Machine()

    @Test func `a negative interval counts as zero, and an infinite interval never ends`() {
        _ = machine.ask(1, .wait, 0, interval: .seconds(-5))
        #expect(machine.ask(2, .wait, 0).answer == .waits)
        #expect(machine.leave(1, hasRun: true, 1) == 2)
        _ = machine.leave(2, hasRun: true, 1)
        _ = machine.ask(3, .drop, 0, interval: .seconds(Int64.max), key: "other")
        #expect(machine.leave(3, hasRun: true, 1, key: "other") == nil)
        #expect(machine.nextRun(2, key: "other") == .distantFuture)
    }

    @Test func `free keys are removed`() {
        for number in 0..<10_000 {
            _ = machine.ask(number, .drop, number, interval: .seconds(1), key: "key \(number)")
            _ = machine.leave(number, hasRun: true, number, key: "key \(number)")
            #expect(machine.count <= 65)
        }
    }
}
