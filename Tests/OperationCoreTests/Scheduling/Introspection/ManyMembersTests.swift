// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Objects of which an operation or a queue can have many.
///
/// If the cost of each grew with the number of the others, these tests would take minutes instead of less than a
/// second.
@Suite(.timeLimit(.minutes(2)))
struct ManyMembersTests {
    private static let count = Rounds.count(ci: 100_000, soak: 100_000)

    private func shuffled<Element>(_ elements: [Element]) -> [Element] {
        var random = SeededGenerator(seed: 5)
        return elements.shuffled(using: &random)
    }

    @Test func `observers are removed at constant cost, and the others are called in order`() {
        let operation = HandDriven(), told = EventRecorder<Int>()
        let queue = DispatchQueue(label: "observers")
        let observations = (0..<Self.count).map { number in
            operation.observe(on: queue) { _ in told.record(number) }
        }
        let removed = shuffled(Array(0..<Self.count)).dropLast(100)
        for number in removed { observations[number].cancel() }
        for number in removed.prefix(10) { observations[number].cancel() }
        operation.startAndFinish(withResult: 1)
        queue.sync {}
        #expect(told.events == Set(0..<Self.count).subtracting(removed).sorted())
    }

    @Test func `iterators over the states of an operation are created and freed at constant cost`() async {
        let operation = HandDriven()
        var iterators = (0..<Self.count).map { _ in operation.states.makeAsyncIterator() }
        iterators = shuffled(iterators).suffix(2)
        operation.startAndFinish(withResult: 1)
        for iterator in iterators {
            var states: [OperationState] = []
            while let state = await iterator.next() { states.append(state) }
            #expect(states == [.notStarted, .executing, .finished])
        }
    }

    @Test func `iterators over the events of a queue are created and freed at constant cost`() async {
        let queue = QueueManager("followed", width: 1)
        var iterators = (0..<Self.count).map { _ in queue.events(keeping: 1_024).makeAsyncIterator() }
        #expect(queue.engine.isFollowed)
        iterators = shuffled(iterators).suffix(1)
        #expect(queue.engine.isFollowed)
        iterators = []
        #expect(!queue.engine.isFollowed)
    }

    @Test func `conditions are added at constant cost and evaluated in order`() async {
        let operation = HandDriven(), asked = EventRecorder<Int>()
        for number in 0..<Self.count {
            operation.addCondition(
                OperationCondition("condition \(number)") { _ in
                    asked.record(number)
                    return number < 3 ? .satisfied : .failed("enough")
                })
        }
        await operation.startAndEnd()
        #expect(asked.events == [0, 1, 2, 3])
    }

    @Test func `inputs are removed with their dependencies at constant cost`() throws {
        let operation = HandDriven(), fed = EventRecorder<Int>()
        let sources = (0..<Self.count / 2).map { _ in HandDriven() }
        for (number, source) in sources.enumerated() {
            try operation.receive(from: source, otherwise: .cancel) { _, _ in fed.record(number) }
        }
        let removed = shuffled(Array(sources.indices)).dropLast(10)
        for number in removed { operation.removeDependency(sources[number]) }
        for source in sources { UpstreamEnd.succeeds.perform(on: source) }
        operation.start()
        #expect(fed.events == Set(sources.indices).subtracting(removed).sorted())
    }

    @Test func `many inputs are rolled back at constant cost if the last one is rejected`() throws {
        let operation = HandDriven()
        let dependent = HandDriven()
        try dependent.depend(on: operation, otherwise: .runAnyway)
        let sources = (0..<Self.count).map { _ in HandDriven() }
        #expect(throws: OperationSetupError.self) {
            try operation.receive(fromAll: sources + [dependent]) { _, _ in }
        }
        #expect(operation.dependencies == [])
        #expect(operation.isReady)
    }

    @Test(.comparesObjects) func `many inputs from one operation are removed together`() throws {
        let operation = HandDriven(), source = HandDriven(), other = HandDriven(), fed = EventRecorder<Int>()
        for _ in 0..<Self.count {
            try operation.receive(from: source, otherwise: .cancel) { _, _ in fed.record(1) }
        }
        try operation.receive(from: other, otherwise: .cancel) { _, _ in fed.record(2) }
        #expect(operation.dependencies.count == 2)
        operation.removeDependency(source)
        #expect(operation.dependencies == [other])
        UpstreamEnd.succeeds.perform(on: other)
        operation.start()
        #expect(fed.events == [2])
    }
}
