// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// Returns the memory of an operation that waits in a queue for another operation.
func memoryFigures(_ scale: Scale) -> [Figure] {
    let count = scale.sized(100_000, rounds: 1).count
    let foundation = footprint(count) { Operation() }
    return [
        .plain(
            "bytes of one that waits, beyond Foundation's object", unit: "B",
            waitingFootprint(count).bytes - foundation.bytes, target: .atMost(400)),
        .plain(
            "heap blocks of one that waits, beyond Foundation's", unit: "",
            waitingFootprint(count).blocks - foundation.blocks),
        .plain(
            "bytes of one that waits in an OperationQueue, beyond its object", unit: "B",
            peerWaitingFootprint(count).bytes - foundation.bytes),
    ]
}

private func waitingFootprint(_ count: Int) -> (blocks: Double, bytes: Double) {
    let counter = Counter()
    var result = (blocks: 0.0, bytes: 0.0)
    withQueue { queue in
        queue.isSuspended = true
        var last: CountingOperation?
        result = footprint(count) {
            let operation = CountingOperation(counter)
            if let last { operation.addDependency(last) }
            must { try queue.add(operation) }
            last = operation
        }
        queue.isSuspended = false
    }
    check(counter.value, is: count + 1, "operations that ran")
    return result
}

private func peerWaitingFootprint(_ count: Int) -> (blocks: Double, bytes: Double) {
    // The operations do not run here, because they would take minutes. Another workload measures their time.
    let queue = OperationQueue()
    queue.isSuspended = true
    let counter = Counter()
    var last: PeerOperation?
    return footprint(count) {
        let operation = PeerOperation(counter)
        if let last { operation.addDependency(last) }
        queue.addOperation(operation)
        last = operation
    }
}
