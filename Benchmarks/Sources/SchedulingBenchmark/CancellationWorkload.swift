// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// Returns the time to cancel many waiting operations at the same time.
func cancellationFigures(_ scale: Scale) -> [Figure] {
    let scale = scale.sized(4_000, rounds: 3)
    return [
        .speedup(
            "cancel storm, a chain, by the queue: OperationQueue", unit: "ns",
            compare(scale, ours: runCancelAll, peer: runPeerCancelAll)),
        // Foundation does not cancel the dependents of a canceled operation.
        .speedup(
            "cancel storm, a chain, by its first: no peer, by the queue", unit: "ns",
            compare(scale, ours: runCancelFirst, peer: runPeerCancelAll)),
    ]
}

private func runCancelAll(_ count: Int) {
    let counter = Counter()
    let operations = (0..<count).map { _ in CountingOperation(counter) }
    for (upstream, downstream) in zip(operations, operations.dropFirst()) { downstream.addDependency(upstream) }
    withQueue { queue in
        queue.isSuspended = true
        try queue.add(operations)
        queue.cancelAll()
        queue.isSuspended = false
    }
    check(operations.count { $0.isCancelled }, is: count, "canceled operations")
    check(counter.value, is: 0, "operations that ran")
}

/// Cancels only the first operation of a chain, which cancels the others.
func runCancelFirst(_ count: Int) {
    let counter = Counter()
    let operations = (0..<count).map { _ in CountingOperation(counter) }
    withQueue { queue in
        queue.isSuspended = true
        try queue.addChain(operations)
        operations.first?.cancel()
        queue.isSuspended = false
    }
    check(operations.count { $0.isCancelled }, is: count, "canceled operations")
    check(counter.value, is: 0, "operations that ran")
}

private func runPeerCancelAll(_ count: Int) {
    let counter = Counter()
    let operations = (0..<count).map { _ in PeerOperation(counter) }
    for (upstream, downstream) in zip(operations, operations.dropFirst()) { downstream.addDependency(upstream) }
    withPeerQueue { queue in
        queue.isSuspended = true
        queue.addOperations(operations, waitUntilFinished: false)
        queue.cancelAllOperations()
        queue.isSuspended = false
    }
    check(operations.count { $0.isCancelled }, is: count, "canceled operations of Foundation")
}
