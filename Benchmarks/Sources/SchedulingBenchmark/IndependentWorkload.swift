// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// Returns the time for operations without dependencies.
func independentFigures(_ scale: Scale) -> [Figure] {
    let scale = scale.sized(100_000, rounds: 7)
    return [
        .speedup(
            "independent, one by one: OperationQueue", unit: "ns",
            compare(scale, ours: runIndependent, peer: runPeerIndependent), target: .atLeast(3)),
        .speedup(
            "independent, all at once: OperationQueue", unit: "ns",
            compare(scale, ours: runIndependentAtOnce, peer: runPeerIndependentAtOnce), target: .atLeast(3)),
        .speedup(
            "independent, no queue at all, ours started by another thread: OperationQueue", unit: "ns",
            compare(scale, ours: runHandedOver, peer: runPeerIndependent)),
        .speedup(
            "independent, one by one: TaskGroup", unit: "ns",
            compare(scale, ours: runIndependent, peer: runTaskGroup)),
        .speedup(
            "independent, one by one: Dispatch", unit: "ns",
            compare(scale, ours: runIndependent, peer: runDispatchClosures)),
    ]
}

func runIndependent(_ count: Int) {
    let counter = Counter()
    withQueue { queue in
        for _ in 0..<count { try queue.add(CountingOperation(counter)) }
    }
    check(counter.value, is: count, "operations that ran")
}

func runIndependentAtOnce(_ count: Int) {
    let counter = Counter()
    withQueue { queue in try queue.add((0..<count).map { _ in CountingOperation(counter) }) }
    check(counter.value, is: count, "operations that ran")
}

private func runPeerIndependent(_ count: Int) {
    let counter = Counter()
    withPeerQueue { queue in
        for _ in 0..<count { queue.addOperation(PeerOperation(counter)) }
    }
    check(counter.value, is: count, "Foundation's operations that ran")
}

private func runPeerIndependentAtOnce(_ count: Int) {
    let counter = Counter()
    withPeerQueue { queue in
        queue.addOperations((0..<count).map { _ in PeerOperation(counter) }, waitUntilFinished: false)
    }
    check(counter.value, is: count, "Foundation's operations that ran")
}
