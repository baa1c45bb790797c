// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

/// A plain model of one key.
private struct SlowModel {
    var runner: (party: Int, interval: Int)?
    var restEnd = Int.min
    var line: [(party: Int, interval: Int)] = []

    /// Returns the waiting run that may start now.
    mutating func wake(_ now: Int) -> Int? {
        guard runner == nil, restEnd <= now, !line.isEmpty else { return nil }
        runner = line.removeFirst()
        return runner?.party
    }
}

@Suite("Throttling against a slow model", .timeLimit(.minutes(Rounds.minutes)))
struct ThrottleModelTests {
    @Test func `in random schedules, runs of a key never overlap and never start early`() {
        let schedules = Rounds.count(ci: 500, soak: 25_000)
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(schedules) {
            guard let failure = schedule(seed: seed) else { continue }
            Issue.record("seed \(seed): \(failure)")
            return
        }
        if Rounds.isSoak { print("soak: throttling against the model: \(schedules * 40) steps") }
    }

    private func schedule(seed: UInt64) -> String? {
        var random = SeededGenerator(seed: seed)
        var machine = ThrottleMachine<Int>()
        var model = SlowModel()
        var now = 0
        func moment() -> OperationInstant { OperationInstant(offset: .seconds(now)) }
        for step in 0..<40 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1, 2:
                let interval = Int.random(in: 0...4, using: &random)
                let early = [ThrottleRule.Early.drop, .wait, .wait, .replace][Int.random(in: 0..<4, using: &random)]
                let reply = machine.ask(step, "key", interval: .seconds(interval), early: early, now: moment())
                if reply.granted != model.wake(now) {
                    return "step \(step): granted \(String(describing: reply.granted))"
                }
                var answer = ThrottleMachine<Int>.Decision.waits
                var replaced: [Int] = []
                if model.runner == nil, model.restEnd <= now {
                    answer = .granted
                    model.runner = (step, interval)
                } else if early == .drop {
                    answer = .dropped(
                        until: model.runner == nil ? OperationInstant(offset: .seconds(model.restEnd)) : nil)
                } else {
                    if early == .replace { replaced = exchangeLine(&model) }
                    model.line.append((step, interval))
                }
                if reply.answer != answer || reply.replaced != replaced { return "step \(step): \(reply)" }
            case 3:
                guard let runner = model.runner else { continue }
                let hasRun = random.chance(2, in: 3)
                model.runner = nil
                model.restEnd = hasRun ? now + runner.interval : now
                if machine.leave(runner.party, "key", hasRun: hasRun, now: moment()) != model.wake(now) {
                    return "step \(step): \(runner) ended"
                }
            case 4:
                guard let index = model.line.indices.randomElement(using: &random) else { continue }
                let party = model.line.remove(at: index).party
                if machine.leave(party, "key", hasRun: false, now: moment()) != nil { return "step \(step): cancelled" }
            default:
                now += 1
                if machine.wake("key", now: moment()) != model.wake(now) { return "step \(step): woken at \(now)" }
            }
            if machine.runner(of: "key") != model.runner?.party { return "step \(step): runner" }
            if machine.waiting(for: "key") != model.line.map(\.party) { return "step \(step): line" }
            let isAlarmDue = model.runner == nil && !model.line.isEmpty
            let alarm = isAlarmDue ? OperationInstant(offset: .seconds(model.restEnd)) : nil
            if machine.alarm(for: "key") != alarm { return "step \(step): alarm" }
        }
        return nil
    }

    private func exchangeLine(_ model: inout SlowModel) -> [Int] {
        defer { model.line = [] }
        return model.line.map(\.party)
    }
}
