// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Compares the order that the graph keeps with a search through the whole graph.
@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct GraphOrderTests {
    private enum Answer: Sendable { case added, refused(path: [String]), other }

    private static func add(_ edge: GraphEdge, of operations: [HandDriven], with rule: Int = 0) -> Answer {
        let rules: [DependencyRule<Flaw>] = [.runAnyway, .cancel]
        do throws(OperationSetupError) {
            try operations[edge.downstream].depend(on: operations[edge.upstream], otherwise: rules[rule % 2])
            return .added
        } catch {
            return error.code == .cycle ? .refused(path: error.path) : .other
        }
    }

    private static func areInOrder(_ operations: [HandDriven]) -> Bool { operations.allSatisfy(\.isInOrder) }

    private static func isCycle(_ path: [String], closedBy edge: GraphEdge, in model: GraphModel) -> Bool {
        let path = path.compactMap(Int.init)
        guard path.prefix(2) == [edge.downstream, edge.upstream], path.last == edge.downstream else { return false }
        return zip(path.dropFirst(), path.dropFirst(2)).allSatisfy { model.has(GraphEdge($0, on: $1)) }
    }

    @Test(arguments: [3, 6, 12, 40])
    func `an edge of a random graph is refused exactly when a full search finds a cycle`(count: Int) {
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(Rounds.count(ci: 150, soak: 20_000)) {
            var random = SeededGenerator(seed: seed)
            let operations = (0..<count).map { HandDriven("\($0)") }
            var model = GraphModel(count: count)
            var ended: Set<Int> = []
            for step in 0..<count * 6 {
                let downstream = Int.random(in: 0..<count, using: &random)
                let upstream = Int.random(in: 0..<count, using: &random)
                let edge = GraphEdge(downstream, on: upstream)
                if downstream == upstream || ended.contains(downstream) || ended.contains(upstream) { continue }
                switch Int.random(in: 0..<30, using: &random) {
                case 0 where ended.count < count / 2 && model.upstream[upstream].isEmpty:
                    operations[upstream].finish(withResult: 1)
                    operations[upstream].start()
                    #expect(operations[upstream].isFinished)
                    ended.insert(upstream)
                    model.end(upstream)
                case 1, 2, 3:
                    operations[downstream].removeDependency(operations[upstream])
                    model.remove(edge)
                default:
                    let isExpected = !model.wouldClose(edge)
                    switch Self.add(edge, of: operations, with: step) {
                    case .added:
                        #expect(isExpected, "seed \(seed), step \(step): \(edge) closes a cycle and was added")
                        model.add(edge)
                    case .refused(let path):
                        #expect(!isExpected, "seed \(seed), step \(step): \(edge) closes no cycle and was refused")
                        #expect(Self.isCycle(path, closedBy: edge, in: model), "seed \(seed), step \(step): \(path)")
                    case .other: Issue.record("seed \(seed), step \(step): \(edge) was refused for another reason")
                    }
                }
            }
            #expect(Self.areInOrder(operations), "seed \(seed)")
        }
    }

    @Test(arguments: [2, 3, 4, 8])
    func `threads that add edges concurrently are refused exactly the edges that would close a cycle`(
        threadCount: Int
    ) async throws {
        let rounds = UInt64(Rounds.count(ci: 150, soak: 20_000))
        try await TestThread.run {
            let team = ThreadTeam(count: threadCount)
            for seed in Rounds.firstSeed..<Rounds.firstSeed + rounds {
                var random = SeededGenerator(seed: seed)
                let count = Int.random(in: 3...30, using: &random)
                let operations = (0..<count).map { HandDriven("\($0)") }
                let answers = EventRecorder<(GraphEdge, isAdded: Bool)>()
                team.run(
                    (0..<threadCount).map { _ in
                        let edges = Self.randomEdges(count, among: count, &random)
                        return {
                            for edge in edges {
                                if case .added = Self.add(edge, of: operations) {
                                    answers.record((edge, true))
                                } else {
                                    answers.record((edge, false))
                                }
                            }
                        }
                    })
                var model = GraphModel(count: count)
                for (edge, isAdded) in answers.events where isAdded {
                    #expect(!model.wouldClose(edge), "seed \(seed): \(edge)")
                    model.add(edge)
                }
                for (edge, isAdded) in answers.events where !isAdded {
                    #expect(model.wouldClose(edge), "seed \(seed): \(edge)")
                }
                #expect(Self.areInOrder(operations), "seed \(seed)")
            }
        }
    }

    @Test func `concurrent changes of edges and ends of operations leave an ordered acyclic graph`() async throws {
        let rounds = UInt64(Rounds.count(ci: 150, soak: 20_000))
        try await TestThread.run {
            let team = ThreadTeam(count: 4)
            for seed in Rounds.firstSeed..<Rounds.firstSeed + rounds {
                var random = SeededGenerator(seed: seed)
                let count = Int.random(in: 3...20, using: &random)
                let operations = (0..<count).map { HandDriven("\($0)") }
                team.run(
                    (0..<4).map { _ in
                        let edges = Self.randomEdges(count * 3, among: count, &random)
                        var random = SeededGenerator(seed: random.next())
                        let steps = edges.map { ($0, Int.random(in: 0..<24, using: &random)) }
                        return {
                            for (edge, step) in steps {
                                let operation = operations[edge.downstream]
                                switch step {
                                case 0:
                                    operation.finish(withResult: 1)
                                    operation.start()
                                case 1...8: operation.removeDependency(operations[edge.upstream])
                                default: _ = Self.add(edge, of: operations, with: step)
                                }
                            }
                        }
                    })
                var model = GraphModel(count: count)
                for (downstream, operation) in operations.enumerated() {
                    for upstream in operation.dependencies where !upstream.isFinished {
                        let edge = GraphEdge(downstream, on: upstream.name.flatMap { Int($0) } ?? 0)
                        #expect(!model.wouldClose(edge), "seed \(seed): \(edge)")
                        model.add(edge)
                    }
                }
                #expect(Self.areInOrder(operations), "seed \(seed)")
            }
        }
    }

    private static func randomEdges(
        _ number: Int, among count: Int, _ random: inout SeededGenerator
    ) -> [GraphEdge] {
        (0..<number).compactMap { _ in
            let downstream = Int.random(in: 0..<count, using: &random)
            let upstream = Int.random(in: 0..<count, using: &random)
            return downstream == upstream ? nil : GraphEdge(downstream, on: upstream)
        }
    }

    @Test(arguments: GraphShape.allCases)
    func `the search for a cycle takes a few steps per edge for any shape of graph`(shape: GraphShape) {
        var random = SeededGenerator(seed: 4)
        let count = 2_000
        let operations = (0..<count).map { HandDriven("\($0)") }
        let edges = shape.edges(count, &random)
        for edge in edges {
            guard case .added = Self.add(edge, of: operations) else { return unmet("\(edge) was refused") }
        }
        #expect(Self.areInOrder(operations))
        // For some shapes, the cost per edge grows with the logarithm of the count, which is about 10 here.
        #expect(operations[count - 1].searchCost < 20 * edges.count)
    }

    @Test func `graphs that are joined by an edge keep their order`() throws {
        // Each join shifts the ranks of one graph, and the next join shifts them again.
        var graphs = (0..<64).map { number in (0..<4).map { HandDriven("\(number).\($0)") } }
        for graph in graphs {
            for (upstream, downstream) in zip(graph, graph.dropFirst()) {
                try downstream.depend(on: upstream, otherwise: .runAnyway)
            }
        }
        var random = SeededGenerator(seed: 1)
        while graphs.count > 1 {
            graphs.shuffle(using: &random)
            let upper = graphs.removeLast(), lower = graphs.removeLast()
            // The edge connects inner operations, so both graphs keep an operation at their end that is not connected.
            try lower[1].depend(on: upper[upper.count - 2], otherwise: .runAnyway)
            let merged = upper.prefix(upper.count - 1) + lower.dropFirst()
            #expect(Self.areInOrder(upper + lower))
            #expect(throws: OperationSetupError.self) {
                try upper[0].depend(on: lower[lower.count - 1], otherwise: .runAnyway)
            }
            graphs.append(Array(merged))
        }
        #expect(Self.areInOrder(graphs[0]))
    }

    @Test func `the operations of a connected graph are freed when the test releases them`() throws {
        weak var first: HandDriven?
        weak var last: HandDriven?
        do {
            let operations = (0..<100).map { HandDriven("\($0)") }
            for (upstream, downstream) in zip(operations, operations.dropFirst()) {
                try downstream.depend(on: upstream, otherwise: .cancel)
            }
            // These edges are against the order, so that a search visits the nodes.
            let others = (0..<100).map { HandDriven("other \($0)") }
            for (upstream, downstream) in zip(others, others.dropFirst()) {
                try downstream.depend(on: upstream, otherwise: .cancel)
            }
            for (upstream, downstream) in zip(others, operations) {
                try downstream.depend(on: upstream, otherwise: .cancel)
            }
            #expect(throws: OperationSetupError.self) { try others[0].depend(on: operations[99], otherwise: .cancel) }
            (first, last) = (operations.first, others.last)
        }
        #expect(first == nil)
        #expect(last == nil)
    }
}
