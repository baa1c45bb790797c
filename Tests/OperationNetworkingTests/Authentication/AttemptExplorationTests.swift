// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

@Suite("Attempts, retries and token refreshes in random order", .timeLimit(.minutes(Rounds.minutes)))
struct AttemptExplorationTests {
    @Test func `in any order of events, each operation ends once and uses no old token`() {
        let count = Rounds.count(ci: 3_000, soak: 100_000)
        var (refreshes, sends, outcomes) = (0, 0, [String: Int]())
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(count) {
            var world = AttemptWorld(seed: seed)
            for _ in 0..<60 { if !world.step() || !world.faults.isEmpty { break } }
            let isOver = world.finish()
            #expect(isOver, "seed \(seed): \(world.story)")
            #expect(world.faults == [], "seed \(seed): \(world.story)")
            #expect(world.realm.waitingCount == 0, "seed \(seed)")
            if !isOver || !world.faults.isEmpty { return }
            refreshes += world.refreshCount
            for actor in world.actors {
                sends += actor.sends
                outcomes["\(actor.outcome.map { "\($0)" } ?? "none")", default: 0] += 1
            }
        }
        // The test is meaningful only if all kinds of outcomes occur.
        #expect(refreshes > count / 10 && outcomes.count == 3)
        print("soak: \(count) schedules, \(sends) requests, \(refreshes) refreshes, \(outcomes)")
    }
}
