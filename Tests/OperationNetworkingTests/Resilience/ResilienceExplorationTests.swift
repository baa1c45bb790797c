// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

@Suite("Retry, token refresh and connectivity, canceled in every phase", .timeLimit(.minutes(Rounds.minutes)))
struct ResilienceExplorationTests {
    /// One schedule contains queueing, throttling, adapting, requests in flight, backoff, and waits for a token and for
    /// the network.
    @Test func `canceled at any moment, each operation ends once and leaves no waiter, slot or request`() async {
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
        print("soak: \(count) schedules, \(sends) requests, \(outcomes), canceled: \(places.joined(separator: ", "))")
        // The test is meaningful only if operations are canceled in every phase.
        let aims: [ResilienceWorld.Phase] = [
            .queued, .throttled, .adapting, .inFlight, .backingOff, .waitingForToken, .waitingForNetwork, .suspended,
        ]
        guard count >= 500 else { return }
        for phase in aims { #expect(phases[phase, default: 0] > 0, "no operation was canceled while \(phase)") }
    }
}
