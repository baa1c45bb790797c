// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationTestKit

/// An edge between two operations of a test, by their numbers.
struct GraphEdge: Hashable, Sendable {
    let downstream: Int
    let upstream: Int

    init(_ downstream: Int, on upstream: Int) {
        (self.downstream, self.upstream) = (downstream, upstream)
    }
}

/// A slow and simple model, which finds cycles by a search through the whole graph.
struct GraphModel {
    private(set) var upstream: [Set<Int>]

    init(count: Int) { upstream = Array(repeating: [], count: count) }

    func has(_ edge: GraphEdge) -> Bool { upstream[edge.downstream].contains(edge.upstream) }

    mutating func add(_ edge: GraphEdge) { upstream[edge.downstream].insert(edge.upstream) }

    mutating func remove(_ edge: GraphEdge) { upstream[edge.downstream].remove(edge.upstream) }

    /// Removes all edges of an operation that ended.
    mutating func end(_ operation: Int) {
        upstream[operation] = []
        for other in upstream.indices { upstream[other].remove(operation) }
    }

    func wouldClose(_ edge: GraphEdge) -> Bool {
        var seen: Set<Int> = [edge.upstream]
        var next = [edge.upstream]
        while let operation = next.popLast() {
            if operation == edge.downstream { return true }
            for other in upstream[operation] where seen.insert(other).inserted { next.append(other) }
        }
        return false
    }
}

/// Typical graphs of programs, as edges in the order in which they are added.
enum GraphShape: String, CaseIterable, Sendable {
    case ladder, ladderOfReversedChains, shiftedLadder, layers, shuffledLayers, shuffledChain, chainWithCommonStart
    case chainBeforeCommonEnd, insertionsAtOnePlace, shuffledTree, nearNeighbours

    func edges(_ count: Int, _ random: inout SeededGenerator) -> [GraphEdge] {
        let half = count / 2
        let chain = (1..<count).map { GraphEdge($0, on: $0 - 1) }
        let chains = chain.filter { $0.downstream != half }
        switch self {
        case .ladder:
            return chains + (0..<half).shuffled(using: &random).map { GraphEdge(half + $0, on: $0) }
        case .ladderOfReversedChains:
            return chains.reversed() + (0..<half).shuffled(using: &random).map { GraphEdge($0, on: half + $0) }
        case .shiftedLadder:
            return chains + (0..<half / 2).map { GraphEdge(half + $0, on: half / 2 + $0) }
        case .layers: return Self.layers(count, &random)
        case .shuffledLayers: return Self.layers(count, &random).shuffled(using: &random)
        case .shuffledChain: return chain.shuffled(using: &random)
        case .chainWithCommonStart:
            // Built from the end. Each operation depends on the first one and on its predecessor.
            return chain.dropFirst().reversed().flatMap { [GraphEdge($0.downstream, on: 0), $0] }
        case .chainBeforeCommonEnd:
            // Operation 0 depends on the second half of the operations, and a chain depends on it.
            return chains.filter { $0.downstream < half }
                + (half..<count).flatMap { [GraphEdge($0, on: max($0 - 1, half)), GraphEdge(0, on: $0)] }
                .filter { $0.downstream != $0.upstream }
        case .insertionsAtOnePlace:
            return chains.filter { $0.downstream < half } + [GraphEdge(1, on: half)]
                + (half + 1..<count).flatMap { number in
                    [GraphEdge(number, on: half), GraphEdge(number - 1 == half ? 1 : number - 1, on: number)]
                }
        case .shuffledTree: return (1..<count).map { GraphEdge($0, on: ($0 - 1) / 2) }.shuffled(using: &random)
        case .nearNeighbours:
            return (0..<3 * count).compactMap { _ in
                let downstream = Int.random(in: 0..<count, using: &random)
                let upstream = downstream - Int.random(in: 1...50, using: &random)
                return upstream < 0 ? nil : GraphEdge(downstream, on: upstream)
            }
        }
    }

    /// Returns layers of 50 operations, each of which depends on three operations of the previous layer.
    private static func layers(_ count: Int, _ random: inout SeededGenerator) -> [GraphEdge] {
        (50..<count).flatMap { operation in
            (0..<3).map { _ in
                GraphEdge(operation, on: (operation / 50 - 1) * 50 + Int.random(in: 0..<50, using: &random))
            }
        }
    }
}
