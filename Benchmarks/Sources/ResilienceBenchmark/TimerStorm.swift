// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import OperationCore
import OperationTestKit

/// Returns the time for pauses that begin and end on the manual clock, as if 100,000 operations retried at the same
/// time.
func timerStorm(_ scale: Scale) -> [Figure] {
    let pair = growth(scale.sized(100_000, rounds: 5), few: 1_000) { count in
        let clock = ManualClock()
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<count {
            _ = clock.schedule(after: .microseconds(Int64.random(in: 0..<20_000_000, using: &generator))) {}
        }
        clock.advance(by: .seconds(20))
    }
    return [
        .plain(
            "a timer of 100,000 on the manual clock", unit: "µs", pair.ours / 1_000,
            target: scale.isSmoke ? .none : .atMost(2)),
        .ratio(
            "a timer of 100,000, to one of 1,000", unit: "ns", pair, target: scale.isSmoke ? .none : .atMost(1.5)),
    ]
}
