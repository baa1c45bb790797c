// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// Returns the time per edge of a large graph, compared with the time per edge of a small graph.
///
/// The edges are added in an order in which the search for cycles has work to do. The operations do not run, and the
/// measurement excludes their creation and release.
func edgesFigures(_ scale: Scale) -> [Figure] {
    let scale = scale.sized(64_000, rounds: 5)
    var middle = scale
    if !scale.isSmoke { middle.count /= 8 }
    return EdgeShape.allCases.flatMap { [middle] shape in
        [
            growthOfEdges(scale, shape),
            comparisonOfEdges(middle, shape),
        ]
    }
}

enum EdgeShape: CaseIterable {
    /// Two chains, with an edge in random order from each operation of the second chain to its neighbor in the first
    /// chain.
    case ladder
    /// Layers of 50 operations, each of which depends on three operations of the previous layer, with edges in random
    /// order.
    case layers
    /// The same layers, with operations that are also created in random order.
    case layersMadeInAnyOrder

    var name: String {
        switch self {
        case .ladder: "ladder"
        case .layers: "layers"
        case .layersMadeInAnyOrder: "layers, made in any order"
        }
    }

    /// Returns the edges, each with a dependent operation and its dependency.
    func edges(_ count: Int) -> [(downstream: Int, upstream: Int)] {
        var random = FixedRandom()
        switch self {
        case .ladder:
            let half = count / 2
            let chains = (1..<2 * half).filter { $0 != half }.map { ($0, $0 - 1) }
            return chains + (0..<half).shuffled(using: &random).map { (half + $0, $0) }
        case .layers, .layersMadeInAnyOrder:
            let places = self == .layers ? Array(0..<count) : (0..<count).shuffled(using: &random)
            var edges: [(Int, Int)] = []
            for operation in 50..<max(count, 50) {
                let layer = (operation / 50 - 1) * 50
                let first = Int(random.next() % 50)
                for offset in [0, 7, 21] { edges.append((places[operation], places[layer + (first + offset) % 50])) }
            }
            return edges.shuffled(using: &random)
        }
    }
}

private func growthOfEdges(_ scale: Scale, _ shape: EdgeShape) -> Figure {
    let few = max(scale.count / 64, 100)
    let graphs = [few, scale.count].map { (count: $0, edges: shape.edges($0)) }
    let rounds = (0..<scale.rounds).map { _ in
        // A measurement of a small graph is easily disturbed, so the median of several counts is used.
        (
            median((0..<9).map { _ in timeOfEdges(graphs[0].count, graphs[0].edges) }),
            timeOfEdges(graphs[1].count, graphs[1].edges)
        )
    }
    let pair = Pair(ours: rounds.map(\.1), peer: rounds.map(\.0))
    return .ratio(
        "edges, \(shape.name): one of \(scale.count) operations ÷ one of \(few)", unit: "ns", pair, target: .atMost(3))
}

private func comparisonOfEdges(_ scale: Scale, _ shape: EdgeShape) -> Figure {
    let edges = shape.edges(scale.count)
    let rounds = (0..<scale.rounds).map { _ in (timeOfEdges(scale.count, edges), timeOfPeerEdges(scale.count, edges)) }
    let pair = Pair(ours: rounds.map(\.0), peer: rounds.map(\.1))
    return .ratio(
        "edges, \(shape.name), \(scale.count) operations: Operation", unit: "ns", pair, target: .atMost(10))
}

private func timeOfEdges(_ count: Int, _ edges: [(downstream: Int, upstream: Int)]) -> Double {
    let counter = Counter()
    let operations = (0..<count).map { _ in CountingOperation(counter) }
    return withExtendedLifetime(operations) {
        timeOf(edges.count) {
            for edge in edges { operations[edge.downstream].addDependency(operations[edge.upstream]) }
        }
    }
}

private func timeOfPeerEdges(_ count: Int, _ edges: [(downstream: Int, upstream: Int)]) -> Double {
    let operations = (0..<count).map { _ in Operation() }
    let time = timeOf(edges.count) {
        for edge in edges { operations[edge.downstream].addDependency(operations[edge.upstream]) }
    }
    // Foundation releases a long chain recursively.
    for edge in edges { operations[edge.downstream].removeDependency(operations[edge.upstream]) }
    return time
}

// Many members of one operation.

/// Returns the time to add and remove one of many observers, state loops or conditions, compared with one of a few.
func memberFigures(_ scale: Scale) -> [Figure] {
    let scale = scale.sized(40_000, rounds: 5)
    let few = max(scale.count / 40, 100)
    func figure(_ name: String, _ run: (Int) -> Void) -> Figure {
        let pair = growth(scale, few: few, run)
        return .ratio("members, \(name): one of \(scale.count) ÷ one of \(few)", unit: "ns", pair, target: .atMost(3))
    }
    return [
        figure("observers that are removed") { count in
            let operation = CountingOperation(Counter())
            let observations = (0..<count).map { _ in operation.observe { _ in } }
            for observation in observations { observation.cancel() }
        },
        figure("loops over states that end") { count in
            let operation = CountingOperation(Counter())
            let iterators = (0..<count).map { _ in operation.states.makeAsyncIterator() }
            withExtendedLifetime(iterators) {}
        },
        figure("conditions that are added") { count in
            let operation = CountingOperation(Counter())
            for _ in 0..<count { operation.addCondition(OperationCondition("open") { _ in .satisfied }) }
        },
    ]
}
