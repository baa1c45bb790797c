// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// Returns the times for a tree, a wavefront, a random graph, and a fan-out with a fan-in.
///
/// If Foundation has a free slot, its time grows with the square of the number of waiting operations, and reaches half
/// a millisecond per operation at the default width. The benchmark therefore uses the width and the method of adding
/// with which Foundation is fastest for each shape.
func graphFigures(_ scale: Scale) -> [Figure] {
    let scale = scale.sized(16_384, rounds: 7)
    return [
        GraphRace(.tree, width: 2).figure(scale, "binary tree", target: .atLeast(3)),
        GraphRace(.wavefront, width: 1).figure(scale, "wavefront", target: .atLeast(3)),
        GraphRace(.traversal, width: 2).figure(scale, "graph traversal", target: .atLeast(3)),
        GraphRace(.fan, width: 1, isPeerFedOneByOne: true).figure(scale, "fan-out, fan-in", target: .atLeast(3)),
    ]
}

/// A race of the same graph in a `QueueManager` and in an `OperationQueue`.
struct GraphRace {
    private let shape: Graph.Shape
    private let width: Int?
    private let isPeerFedOneByOne: Bool

    init(_ shape: Graph.Shape, width: Int?, isPeerFedOneByOne: Bool = false) {
        self.shape = shape
        self.width = width
        self.isPeerFedOneByOne = isPeerFedOneByOne
    }

    func figure(_ scale: Scale, _ name: String, isPeerSlow: Bool = false, target: Figure.Target) -> Figure {
        let warming = Graph(shape, scale.count / 10)
        let graph = Graph(shape, scale.count)
        func ours(_ count: Int) { runGraph(count == scale.count ? graph : warming, width: width) }
        func peer(_ count: Int) {
            runPeerGraph(count == scale.count ? graph : warming, width: width, isFedOneByOne: isPeerFedOneByOne)
        }
        let pair = (isPeerSlow ? compareWithSlow : compare)(scale, ours, peer)
        return .speedup("\(name): OperationQueue", unit: "ns", pair, target: target)
    }
}

func runGraph(_ graph: Graph, width: Int?) {
    let counter = Counter()
    let operations = (0..<graph.count).map { _ in CountingOperation(counter) }
    for node in 0..<graph.count {
        for source in graph[node] { operations[node].addDependency(operations[Int(source)]) }
    }
    withQueue(width: width) { queue in try queue.add(operations) }
    check(counter.value, is: graph.count, "operations that ran")
    if graph.hasOneEnd, case .success(let count)? = operations.last?.outcome {
        check(count, is: graph.count, "place of the last operation")
    }
}

private func runPeerGraph(_ graph: Graph, width: Int?, isFedOneByOne: Bool) {
    let counter = Counter()
    let operations = (0..<graph.count).map { _ in PeerOperation(counter) }
    for node in 0..<graph.count {
        for source in graph[node] { operations[node].addDependency(operations[Int(source)]) }
    }
    withPeerQueue(width: width) { queue in
        if isFedOneByOne {
            for operation in operations { queue.addOperation(operation) }
        } else {
            queue.addOperations(operations, waitUntilFinished: false)
        }
    }
    check(counter.value, is: graph.count, "Foundation's operations that ran")
    if graph.hasOneEnd, let count = operations.last?.count {
        check(count, is: graph.count, "place of Foundation's last operation")
    }
}
