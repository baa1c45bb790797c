// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import OperationCore

/// Returns the slowest of many runs of a large group without a width, compared with the median for the group with a
/// width.
///
/// Without a width, all children are ready at the same time, and threads request them as fast as possible. If the
/// threads blocked each other with locks, only a few runs would show this, but these runs would take many times as
/// long.
func unlimitedFigures(_ scale: Scale) -> [Figure] {
    let scale = scale.sized(40_000, rounds: 81)
    runAlone(scale.count / 10, width: nil)
    runAlone(scale.count / 10, width: coreCount)
    let times = (0..<scale.rounds).map { _ in
        (
            unlimited: timeOf(scale.count) { runAlone(scale.count, width: nil) },
            limited: timeOf(scale.count) { runAlone(scale.count, width: coreCount) }
        )
    }
    let slowest = times.map(\.unlimited).max() ?? 0
    let usual = median(times.map(\.limited))
    return [
        .ratio(
            "the slowest group without a width: the median with one", unit: "ns",
            Pair(ours: slowest, peer: usual, ratio: slowest / usual), target: .atMost(5))
    ]
}

/// Runs the group without its own queue.
private func runAlone(_ count: Int, width: Int?) {
    let counter = Counter()
    must {
        _ = try GroupOperation.all((0..<count).map { _ in CountingOperation(counter) }, width: width).startAndWait()
    }
    check(counter.value, is: count, "children that ran")
}
