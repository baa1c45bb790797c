// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct RemovalTests {
    @Test func `removeDependency removes all edges to an operation`() throws {
        let upstream = HandDriven(), downstream = HandDriven()
        try downstream.depend(on: upstream, otherwise: .cancel)
        try downstream.receive(from: upstream, otherwise: .cancel) { _, _ in }
        downstream.addDependency(upstream)
        downstream.removeDependency(upstream)
        #expect(downstream.dependencies == [])
        UpstreamEnd.fails.perform(on: upstream)
        #expect(Look(downstream) == .waiting)
    }

    @Test(arguments: 0..<5 as Range<UInt64>, [12, 200])
    func `random additions, removals and ends of dependencies keep the list and the readiness correct`(
        seed: UInt64, count: Int
    ) {
        var random = SeededGenerator(seed: seed)
        let downstream = HandDriven(), sources = (0..<count).map { HandDriven("\($0)") }
        var expected: Set<Int> = [], unended: Set<Int> = []
        for step in 0..<2_000 {
            let number = Int.random(in: 0..<count, using: &random), source = sources[number]
            switch Int.random(in: 0..<20, using: &random) {
            case 0 where step.isMultiple(of: 10):
                if source.state == .notStarted { UpstreamEnd.succeeds.perform(on: source) }
                unended.remove(number)
            case 1..<(step < 1_000 ? 12 : 6):
                downstream.addDependency(source)
                expected.insert(number)
                if source.state == .notStarted { unended.insert(number) }
            default:
                downstream.removeDependency(source)
                expected.remove(number)
                unended.remove(number)
            }
            let names = Set(downstream.dependencies.compactMap { $0.name.flatMap(Int.init) })
            guard names == expected, downstream.isReady == unended.isEmpty
            else { return unmet("seed \(seed), step \(step): \(names.symmetricDifference(expected).sorted()) differ") }
        }
        for number in unended { downstream.removeDependency(sources[number]) }
        #expect(downstream.isReady)
    }

    /// Only long lists of dependencies have an index.
    ///
    /// The arguments result in shorter and longer lists.
    @Test(.comparesObjects, arguments: [0, 7, 8, 9, 29])
    func `the list of dependencies is ordered, without duplicates, and empty only after the end`(removed: Int) {
        let sources = (0..<3).map { HandDriven("\($0)") }, operation = HandDriven()
        let others = (0..<removed).map { _ in HandDriven() }
        for other in [sources[0]] + others { operation.addDependency(other) }
        for other in others { operation.removeDependency(other) }
        for source in sources + sources { operation.addDependency(source) }
        UpstreamEnd.succeeds.perform(on: sources[1])
        #expect(operation.dependencies == sources)
        UpstreamEnd.succeeds.perform(on: sources[0])
        UpstreamEnd.succeeds.perform(on: sources[2])
        operation.start()
        #expect(operation.dependencies == sources)
        operation.finish(withResult: 1)
        #expect(operation.dependencies == [])
    }
}
