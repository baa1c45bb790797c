// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Runs the scheduler and its operations in seeded random orders and checks the guarantees of the design.
@Suite("The scheduler's contract", .timeLimit(.minutes(Rounds.minutes)))
struct SchedulerContractTests {
    @Test func `limits and order hold and no operation is lost in any order of events`() {
        NoticeHub.install()
        let count = UInt64(Rounds.count(ci: 3_000, soak: 100_000))
        let start = ContinuousClock.now
        var steps = 0
        let seeds: Range<UInt64>
        if let seed = ProcessInfo.processInfo.environment["OPERATIONKIT_SEED"].flatMap(UInt64.init) {
            seeds = seed..<seed + 1
        } else {
            seeds = Rounds.firstSeed..<Rounds.firstSeed + count
        }
        for seed in seeds {
            let scenario = SchedulerScenario(seed: seed)
            steps += scenario.run()
            guard scenario.faults.isEmpty else {
                Issue.record(
                    """
                    seed \(seed) (repeat with OPERATIONKIT_SEED=\(seed)): \(scenario.faults)
                    \(scenario.history.joined(separator: "\n"))
                    """)
                return
            }
        }
        print("soak: scheduler contract, \(seeds.count) schedules of \(steps) steps: \(start.duration(to: .now))")
    }
}
