// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import AllocationCounter
import Dispatch

/// How large a run is.
package struct Scale: Sendable {
    /// How many operations a round makes.
    package var count: Int
    package var rounds: Int

    package static let full = Scale(count: 50_000, rounds: 41)
    package static let smoke = Scale(count: 1_000, rounds: 3)

    package var isSmoke: Bool { count <= Scale.smoke.count }

    /// The size for a workload that needs another one; a smoke run stays small.
    package func sized(_ count: Int, rounds: Int) -> Scale {
        isSmoke ? Scale(count: min(count, Scale.smoke.count), rounds: 1) : Scale(count: count, rounds: rounds)
    }
}

/// What ours and the peer took, in the same run.
package struct Pair: Sendable {
    package var ours: Double
    package var peer: Double
    /// The median of the rounds' own ratios: each compares two neighbours in time.
    package var ratio: Double

    package init(ours: Double, peer: Double, ratio: Double) {
        self.ours = ours
        self.peer = peer
        self.ratio = ratio
    }
}

/// Times both, one after the other in each round, and gives nanoseconds per item.
package func compare(
    _ scale: Scale, ours: (_ count: Int) -> Void, peer: (_ count: Int) -> Void
) -> Pair {
    // Once without the clock: first uses are not what is measured.
    ours(scale.count / 10)
    peer(scale.count / 10)
    var oursTimes: [Double] = []
    var peerTimes: [Double] = []
    for round in 0..<scale.rounds {
        // Whoever comes first finds other caches than who comes second, so they take turns.
        if round.isMultiple(of: 2) {
            oursTimes.append(time(scale.count, ours))
            peerTimes.append(time(scale.count, peer))
        } else {
            peerTimes.append(time(scale.count, peer))
            oursTimes.append(time(scale.count, ours))
        }
    }
    let ratios = zip(oursTimes, peerTimes).map { $0 / $1 }
    return Pair(ours: median(oursTimes), peer: median(peerTimes), ratio: median(ratios))
}

/// The same for a peer so slow that it runs once, amid the rounds of ours.
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

/// Times the same work on many items and on few: `ours` is what each of the many took, `peer` each of the few.
///
/// Few are over soon and disturbed by little things, so they are repeated and their median counts.
package func growth(_ scale: Scale, few: Int, _ work: (_ count: Int) -> Void) -> Pair {
    work(few)
    let rounds = (0..<scale.rounds).map { _ in
        (few: median((0..<9).map { _ in time(few, work) }), many: time(scale.count, work))
    }
    return Pair(
        ours: median(rounds.map(\.many)), peer: median(rounds.map(\.few)),
        ratio: median(rounds.map { $0.many / $0.few }))
}

private func time(_ count: Int, _ body: (Int) -> Void) -> Double {
    let start = DispatchTime.now().uptimeNanoseconds
    body(count)
    return Double(DispatchTime.now().uptimeNanoseconds - start) / Double(count)
}

/// Nanoseconds per item of work that handles that many.
package func timeOf(_ count: Int, _ work: () -> Void) -> Double {
    time(count) { _ in work() }
}

package func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    return sorted[sorted.count / 2]
}

/// Blocks and bytes per item that are left after `make` made that many, while they are alive.
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

/// Blocks per item that `work` allocates, freed ones included.
package func allocations(_ count: Int, _ work: () -> Void) -> Double {
    work()
    let blocks = allocation_counter_blocks()
    allocation_counter_set_counting(1)
    for _ in 0..<count { work() }
    allocation_counter_set_counting(0)
    return Double(allocation_counter_blocks() - blocks) / Double(count)
}
