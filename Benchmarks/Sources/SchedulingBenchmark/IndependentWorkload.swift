// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore
import Synchronization

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

private func runIndependentAtOnce(_ count: Int) {
    let counter = Counter()
    withQueue { queue in try queue.add((0..<count).map { _ in CountingOperation(counter) }) }
    check(counter.value, is: count, "operations that ran")
}

/// Runs operations with the minimum cost of any queue, which means that another thread starts and releases them.
///
/// The other thread receives 100 operations at a time, so that the cost of passing them to this thread is small.
private func runHandedOver(_ count: Int) {
    let counter = Counter()
    let boxes = Boxes()
    Thread.detachNewThread {
        while var operations = boxes.next() {
            while let operation = operations.popLast() { operation.start() }
        }
        boxes.end.signal()
    }
    var operations: [CountingOperation] = []
    for _ in 0..<count {
        operations.append(CountingOperation(counter))
        guard operations.count == 100 else { continue }
        boxes.add(operations)
        operations = []
    }
    boxes.add(operations)
    boxes.close()
    boxes.end.wait()
    check(counter.value, is: count, "operations that ran")
}

/// A channel that passes arrays of operations from one thread to another.
private final class Boxes: Sendable {
    private let boxes = Mutex<[[CountingOperation]]>([])
    private let filled = DispatchSemaphore(value: 0)
    let end = DispatchSemaphore(value: 0)

    func add(_ operations: [CountingOperation]) {
        boxes.withLock { $0.append(operations) }
        filled.signal()
    }

    /// Closes the channel after the last array.
    func close() {
        filled.signal()
    }

    /// Returns the next array, or nil after the last one.
    func next() -> [CountingOperation]? {
        filled.wait()
        return boxes.withLock { $0.popLast() }
    }
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
