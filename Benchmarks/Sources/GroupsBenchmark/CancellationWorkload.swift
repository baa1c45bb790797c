// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// Returns the time to cancel a tree of groups with many waiting children, compared with the time to build the tree.
func cancellationFigures(_ scale: Scale) -> [Figure] {
    let scale = scale.sized(100_000, rounds: 11)
    return [
        .ratio(
            "canceling a tree of groups that did not begin: building it", unit: "ns",
            cancellation(scale, begins: false), target: .atMost(1)),
        .ratio(
            "canceling a tree of groups that began: building it", unit: "ns",
            cancellation(scale, begins: true), target: .atMost(1)),
    ]
}

private func cancellation(_ scale: Scale, begins: Bool) -> Pair {
    _ = cancelTree(scale.count / 10, begins: begins)
    let times = (0..<scale.rounds).map { _ in cancelTree(scale.count, begins: begins) }
    return Pair(ours: times.map(\.cancelling), peer: times.map(\.building))
}

/// Returns the nanoseconds per child for building and for canceling a tree.
///
/// Building begins with the first operation and ends when the tree is ready to run. Canceling ends when all operations
/// of the tree have ended.
private func cancelTree(_ count: Int, begins: Bool) -> (building: Double, cancelling: Double) {
    let counter = Counter()
    let queue = QueueManager("benchmark", width: coreCount)
    // A suspended queue starts no operations, so all operations of the tree are pending.
    queue.isSuspended = !begins
    let children = QueueManager("children", width: coreCount)
    children.isSuspended = true
    let start = DispatchTime.now().uptimeNanoseconds
    let root = tree(count, counter, children)
    must { try queue.add(root) }
    // The interval is long, because each check takes the lock of the queue to which operations are added.
    if begins { while children.counts.ready < count { usleep(100) } }
    let built = DispatchTime.now().uptimeNanoseconds
    root.cancel()
    children.isSuspended = false
    queue.isSuspended = false
    must {
        try queue.waitUntilAllFinished()
        try children.waitUntilAllFinished()
    }
    let end = DispatchTime.now().uptimeNanoseconds
    check(counter.value, is: 0, "children that ran")
    return (Double(built - start) / Double(count), Double(end - built) / Double(count))
}

/// Returns a tree in which each node has ten branches, as in skynet.
private func tree(_ count: Int, _ counter: Counter, _ queue: QueueManager) -> TypedOperation<Int, GroupFailure> {
    let width = min(count, 10)
    let parts = (0..<width).map { ($0 + 1) * count / width - $0 * count / width }
    if count <= 10 {
        return GroupOperation.all(parts.map { _ in CountingOperation(counter) }, on: queue) { $0.count }
    }
    return GroupOperation.all(parts.map { tree($0, counter, queue) }) { $0.count }
}
