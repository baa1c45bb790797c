// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import AllocationCounter
import Dispatch

/// The size of a run.
package struct Scale: Sendable {
    /// The number of operations in each round.
    package var count: Int
    package var rounds: Int

    package static let full = Scale(count: 50_000, rounds: 41)
    package static let smoke = Scale(count: 1_000, rounds: 3)

    package var isSmoke: Bool { count <= Scale.smoke.count }

    /// Returns the size for a workload that needs another size, unless this is a smoke run.
    package func sized(_ count: Int, rounds: Int) -> Scale {
        isSmoke ? Scale(count: min(count, Scale.smoke.count), rounds: 1) : Scale(count: count, rounds: rounds)
    }
}

/// The measurements of OperationKit and a peer in the same run.
package struct Pair: Sendable {
    package var ours: Double
    package var peer: Double
    /// The median of the ratios of all rounds, in which each ratio compares two consecutive measurements.
    package var ratio: Double
    /// The lowest and the highest ratio of a round, or nil if there is only one ratio.
    package var spread: ClosedRange<Double>?

    package init(ours: Double, peer: Double, ratio: Double) {
        self.ours = ours
        self.peer = peer
        self.ratio = ratio
    }

    /// Creates the medians of rounds, in each of which OperationKit and the peer were measured once.
    package init(ours: [Double], peer: [Double]) {
        let ratios = zip(ours, peer).map { $0 / $1 }
        self.init(ours: median(ours), peer: median(peer), ratio: median(ratios))
        if ratios.count > 1, let lowest = ratios.min(), let highest = ratios.max() { spread = lowest...highest }
    }
}

/// Measures both sides, one after the other in each round, and returns the nanoseconds per item.
package func compare(
    _ scale: Scale, ours: (_ count: Int) -> Void, peer: (_ count: Int) -> Void
) -> Pair {
    // A first run without measurement excludes the cost of first uses.
    ours(scale.count / 10)
    peer(scale.count / 10)
    var oursTimes: [Double] = []
    var peerTimes: [Double] = []
    for round in 0..<scale.rounds {
        // The order changes in each round, because the state of the caches depends on the order.
        if round.isMultiple(of: 2) {
            oursTimes.append(time(scale.count, ours))
            peerTimes.append(time(scale.count, peer))
        } else {
            peerTimes.append(time(scale.count, peer))
            oursTimes.append(time(scale.count, ours))
        }
    }
    return Pair(ours: oursTimes, peer: peerTimes)
}

/// Measures a peer that is so slow that it runs only once, between the rounds of OperationKit.
package func compareWithSlow(
    _ scale: Scale, ours: (_ count: Int) -> Void, peer: (_ count: Int) -> Void
) -> Pair {
    ours(scale.count / 10)
    peer(scale.count / 10)
    var times = (0..<scale.rounds).map { _ in time(scale.count, ours) }
    let peerTime = time(scale.count, peer)
    times += (0..<scale.rounds).map { _ in time(scale.count, ours) }
    return Pair(ours: median(times), peer: peerTime, ratio: median(times) / peerTime)
}

/// Measures the same work for many items and for few items.
///
/// In the result, `ours` is the time per item for many items, and `peer` is the time per item for few items. The
/// measurement of few items is repeated, and the median counts, because a short measurement is easily disturbed.
package func growth(_ scale: Scale, few: Int, _ work: (_ count: Int) -> Void) -> Pair {
    work(few)
    let rounds = (0..<scale.rounds).map { _ in
        (few: median((0..<9).map { _ in time(few, work) }), many: time(scale.count, work))
    }
    return Pair(ours: rounds.map(\.many), peer: rounds.map(\.few))
}

private func time(_ count: Int, _ body: (Int) -> Void) -> Double {
    let start = DispatchTime.now().uptimeNanoseconds
    body(count)
    return Double(DispatchTime.now().uptimeNanoseconds - start) / Double(count)
}

/// Returns the nanoseconds per item for work on a number of items.
package func timeOf(_ count: Int, _ work: () -> Void) -> Double {
    time(count) { _ in work() }
}

package func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    return sorted[sorted.count / 2]
}

/// Returns the blocks and bytes per item that remain allocated while the created items are alive.
package func footprint<Item>(_ count: Int, _ make: () -> Item) -> (blocks: Double, bytes: Double) {
    var items: [Item] = []
    items.reserveCapacity(count + 1)
    items.append(make())
    let blocks = allocation_counter_blocks()
    let bytes = allocation_counter_live_bytes()
    allocation_counter_set_counting(1)
    for _ in 0..<count { items.append(make()) }
    allocation_counter_set_counting(0)
    let blockCount = Double(allocation_counter_blocks() - blocks) / Double(count)
    let byteCount = Double(allocation_counter_live_bytes() - bytes) / Double(count)
    return withExtendedLifetime(items) { (blockCount, byteCount) }
}

/// Returns the blocks per item that the work allocates, including blocks that are already freed.
package func allocations(_ count: Int, _ work: () -> Void) -> Double {
    work()
    let blocks = allocation_counter_blocks()
    allocation_counter_set_counting(1)
    for _ in 0..<count { work() }
    allocation_counter_set_counting(0)
    return Double(allocation_counter_blocks() - blocks) / Double(count)
}
