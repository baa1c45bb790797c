// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// Operations that wait for each other in the ways of a tree, a wavefront, a random graph, and of one before and after all.
///
/// Foundation's time grows with the square of those that wait as soon as it has a slot to spare: half a millisecond each
/// at the default width. So each shape has the width, and the way of adding, at which Foundation was found at its best.
func graphFigures(_ scale: Scale) -> [Figure] {
    let scale = scale.sized(16_384, rounds: 7)
    return [
        GraphRace(.tree, width: 2).figure(scale, "binary tree", target: .atLeast(3)),
        GraphRace(.wavefront, width: 1).figure(scale, "wavefront", target: .atLeast(3)),
        GraphRace(.traversal, width: 2).figure(scale, "graph traversal", target: .atLeast(3)),
        GraphRace(.fan, width: 1, isPeerFedOneByOne: true).figure(scale, "fan-out, fan-in", target: .atLeast(3)),
    ]
}

/// The same graph in a queue of ours and in Foundation's.
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
