// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Dispatch
import Foundation
import OperationCore
import Synchronization

/// Returns the time per operation in a queue, compared with operations that one thread creates and another thread
/// starts, without any queue.
func floorFigures(_ scale: Scale) -> [Figure] {
    let many = scale.sized(100_000, rounds: 15)
    let few = scale.sized(16_384, rounds: 15)
    /// A smoke run has too few operations for a target.
    func atMost(_ bound: Double) -> Figure.Target { scale.isSmoke ? .none : .atMost(bound) }
    func figure(_ name: String, _ scale: Scale, _ run: (Int) -> Void, _ target: Figure.Target) -> Figure {
        .ratio("\(name): no queue at all", unit: "ns", compare(scale, ours: run, peer: runHandedOver), target: target)
    }
    let shapes: [(String, Graph.Shape)] = [
        ("chain", .chain), ("binary tree", .tree), ("wavefront", .wavefront), ("graph traversal", .traversal),
    ]
    return [
        figure("independent, all at once", many, runIndependentAtOnce, atMost(1.15)),
        figure("independent, one by one", many, runIndependent, atMost(1.4)),
    ]
        + shapes.map { name, shape in
            let (warming, graph) = (Graph(shape, few.count / 10), Graph(shape, few.count))
            func run(_ count: Int) { runGraph(count == few.count ? graph : warming, width: coreCount) }
            return figure(name, few, run, atMost(1.8))
        }
}

/// Runs operations with the minimum cost of any queue, which means that another thread starts and releases them.
///
/// The other thread receives 100 operations at a time, so that the cost of passing them to this thread is small.
func runHandedOver(_ count: Int) {
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
