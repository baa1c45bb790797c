// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// Returns the time for closures that are added to a queue without operations.
func closureFigures(_ scale: Scale) -> [Figure] {
    let scale = scale.sized(100_000, rounds: 15)
    return [
        .speedup(
            "closures: TaskGroup", unit: "ns", compare(scale, ours: runClosures, peer: runTaskGroup),
            target: .atLeast(2)),
        .speedup(
            "closures: DiscardingTaskGroup", unit: "ns",
            compare(scale, ours: runClosures, peer: runDiscardingTaskGroup)),
        .ratio(
            "closures: ours ÷ Dispatch, concurrent async", unit: "ns",
            compare(scale, ours: runClosures, peer: runDispatchClosures), target: .atMost(3)),
        .speedup(
            "closures: OperationQueue", unit: "ns",
            compare(scale.sized(scale.count, rounds: 3), ours: runClosures, peer: runPeerClosures)),
    ]
}

func runClosures(_ count: Int) {
    let counter = Counter()
    withQueue { queue in
        for _ in 0..<count { try queue.add { counter.add() } }
    }
    check(counter.value, is: count, "closures that ran")
}

func runTaskGroup(_ count: Int) {
    let counter = Counter()
    withTask {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<count { group.addTask { counter.add() } }
        }
    }
    check(counter.value, is: count, "tasks that ran")
}

func runDiscardingTaskGroup(_ count: Int) {
    let counter = Counter()
    withTask {
        await withDiscardingTaskGroup { group in
            for _ in 0..<count { group.addTask { counter.add() } }
        }
    }
    check(counter.value, is: count, "tasks that ran")
}

func runDispatchClosures(_ count: Int) {
    let counter = Counter()
    withDispatchQueue { queue in
        for _ in 0..<count { queue.async { counter.add() } }
    }
    check(counter.value, is: count, "blocks that ran")
}

private func runPeerClosures(_ count: Int) {
    let counter = Counter()
    withPeerQueue { queue in
        for _ in 0..<count { queue.addOperation { counter.add() } }
    }
    check(counter.value, is: count, "Foundation's blocks that ran")
}
