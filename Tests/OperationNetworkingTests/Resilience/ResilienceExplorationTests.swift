// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

@Suite("Retry, postponement and connectivity, cancelled in every phase", .timeLimit(.minutes(Rounds.minutes)))
struct ResilienceExplorationTests {
    /// Queued, throttled, adapting, in flight, backing off, waiting for a token, waiting for the network, in one schedule.
    @Test("Cancelled at any moment: one outcome, at once, no request after it, no waiter left, no slot lost")
    func exploration() async {
        let count = Rounds.count(ci: 500, soak: 100_000)
        var (sends, outcomes, phases) = (0, [String: Int](), [ResilienceWorld.Phase: Int]())
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(count) {
            var world = ResilienceWorld(seed: seed)
            for _ in 0..<40 { await world.step() }
            let isOver = await world.finish()
            #expect(isOver, "seed \(seed), number \(seed - Rounds.firstSeed): \(world.story), \(world.rest)")
            #expect(world.faults == [], "seed \(seed), number \(seed - Rounds.firstSeed): \(world.story)")
            if !isOver || !world.faults.isEmpty { return }
            sends += world.server.sendCount
            for phase in world.cancelled { phases[phase, default: 0] += 1 }
            for record in world.told { outcomes[record.events.first ?? "none", default: 0] += 1 }
        }
        let places = phases.sorted { $0.value > $1.value }.map { "\($0.key.rawValue) \($0.value)" }
        print("soak: \(count) schedules, \(sends) requests, \(outcomes), cancelled: \(places.joined(separator: ", "))")
        // It means something only if operations are cancelled wherever they can be.
        let aims: [ResilienceWorld.Phase] = [
            .queued, .throttled, .adapting, .inFlight, .backingOff, .waitingForToken, .waitingForNetwork, .suspended,
        ]
        guard count >= 500 else { return }
        for phase in aims { #expect(phases[phase, default: 0] > 0, "nobody was cancelled: \(phase)") }
    }
}
