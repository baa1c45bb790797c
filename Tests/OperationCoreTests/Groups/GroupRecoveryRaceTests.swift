// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Cancellations that come during recoveries.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(Rounds.minutes)))
struct GroupRecoveryRaceTests {
    @Test(arguments: 1...4)
    func `a group canceled at a random moment during recoveries ends once and is freed`(part: UInt64) async throws {
        let first = Rounds.firstSeed &+ part &* 1_000_000
        for seed in first..<first + UInt64(Rounds.count(ci: 300, soak: 20_000)) {
            if let flaw = try await Self.round(seed) {
                Issue.record("seed \(seed): \(flaw)")
                return
            }
        }
    }

    private static func round(_ seed: UInt64) async throws -> String? {
        var random = SeededGenerator(seed: seed)
        let census = LiveObjects()
        let drawn = random.next()
        let pause = Int.random(in: 0..<Int(1 << Int.random(in: 0..<12, using: &random)), using: &random)
        let cancels = random.chance(1, in: 2)
        let flaw = try await TestThread.run { () -> String? in
            let make: @Sendable (UInt64) -> TypedOperation<Int, any Error> = { seed in
                var random = SeededGenerator(seed: seed)
                let fails = random.chance(2, in: 3)
                return census.track(
                    ClosureOperation<Int, any Error> {
                        if fails { throw Flaw.first }
                        return 1
                    })
            }
            let group = census.track(GroupOperation.map(0..<6, width: 2) { make(drawn &+ UInt64($0)) })
            group.recover(atMost: 3) { (failed: FailedChild<Int>) in
                var random = SeededGenerator(seed: drawn &+ UInt64(failed.attempt))
                if random.chance(1, in: 2) { await Task.yield() }
                switch Int.random(in: 0..<4, using: &random) {
                case 0: return .result(1)
                case 1 where failed.attempt == 3: throw Flaw.second
                default: return .operation(make(drawn &+ 100 &* UInt64(failed.attempt)))
                }
            }
            let ends = Locked(0)
            group.whenEnded { ends.withLock { $0 += 1 } }
            group.start()
            for _ in 0..<pause { _ = group.state }
            if cancels { group.cancel() }
            group.waitUntilFinished()
            while ends.withLock({ $0 }) == 0 { sched_yield() }
            if ends.withLock({ $0 }) != 1 { return "ended more than once" }
            return group.outcome == nil ? "no outcome" : nil
        }
        if let flaw { return flaw }
        return try await TestThread.run { census.countAtRest() == 0 ? nil : "alive: \(census.types)" }
    }
}
