// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct CycleTests {
    @Test(arguments: 2...6)
    func `a cycle is refused, and the error contains its path in order`(length: Int) throws {
        let operations = (0..<length).map { HandDriven("\($0)") }
        for (downstream, upstream) in zip(operations, operations.dropFirst()) {
            try downstream.depend(on: upstream, otherwise: .runAnyway)
        }
        let last = operations[length - 1]
        let error = thrown { () throws(OperationSetupError) in try last.depend(on: operations[0], otherwise: .cancel) }
        let path = ["\(length - 1)"] + (0..<length).map { "\($0)" }
        #expect(error?.code == .cycle)
        #expect(error?.path == path)
        #expect(error?.message.contains(path.joined(separator: " → ")) == true)
        #expect(last.dependencies == [])
        #expect(last.isReady)
    }

    @Test func `a cycle is refused at any position of a branching graph`() throws {
        let root = HandDriven("root"), leaf = HandDriven("leaf")
        let middle = (0..<10).map { HandDriven("\($0)") }
        for operation in middle {
            try operation.depend(on: root, otherwise: .runAnyway)
            try leaf.depend(on: operation, otherwise: .runAnyway)
            for _ in 0..<3 {
                try operation.depend(on: HandDriven(), otherwise: .runAnyway)
            }
        }
        let error = thrown { () throws(OperationSetupError) in try root.depend(on: leaf, otherwise: .runAnyway) }
        #expect(error?.path.first == "root")
        #expect(error?.path.dropFirst().first == "leaf")
        #expect(error?.path.last == "root")
        #expect(error?.path.count == 4)
        #expect(throws: OperationSetupError.self) { try middle[0].depend(on: leaf, otherwise: .runAnyway) }
        #expect(throws: OperationSetupError.self) { try root.depend(on: middle[9], otherwise: .runAnyway) }
        // An edge between siblings closes no cycle.
        try middle[0].depend(on: middle[1], otherwise: .runAnyway)
        #expect(throws: OperationSetupError.self) { try middle[1].depend(on: middle[0], otherwise: .runAnyway) }
    }

    @Test func `receive and receiveOutcome refuse a cycle`() throws {
        let upstream = HandDriven("up"), downstream = HandDriven("down")
        try downstream.receive(from: upstream, otherwise: .cancel) { _, _ in }
        #expect(throws: OperationSetupError.self) {
            try upstream.receive(from: downstream, otherwise: .cancel) { _, _ in }
        }
        #expect(throws: OperationSetupError.self) { try upstream.receiveOutcome(of: downstream) { _, _ in } }
        #expect(throws: OperationSetupError.self) {
            try upstream.receive(from: downstream, HandDriven()) { _, _, _ in }
        }
        #expect(upstream.dependencies == [])
    }

    @Test func `a refused call to receive with several inputs adds no edges`() throws {
        let upstream = HandDriven("up"), downstream = HandDriven("down"), other = HandDriven("other")
        try downstream.depend(on: upstream, otherwise: .runAnyway)
        #expect(throws: OperationSetupError.self) { try upstream.receive(from: other, downstream) { _, _, _ in } }
        #expect(upstream.dependencies == [])
        #expect(Look(upstream) == .waiting)
    }

    @Test(.comparesObjects) func `an edge is accepted after the opposite edge is removed`() throws {
        let first = HandDriven("1"), second = HandDriven("2"), third = HandDriven("3")
        try second.depend(on: first, otherwise: .runAnyway)
        second.removeDependency(first)
        try first.depend(on: second, otherwise: .runAnyway)
        #expect(first.dependencies == [second])
        try first.depend(on: third, otherwise: .runAnyway)
        UpstreamEnd.succeeds.perform(on: third)
        #expect(third.dependencies == [])
        #expect(!first.isReady)
        UpstreamEnd.succeeds.perform(on: second)
        #expect(first.isReady)
    }

    @Test func `a cycle error names unnamed operations by their types`() throws {
        let first = ClosureOperation { 1 }, second = HandDriven()
        try second.depend(on: first, otherwise: .runAnyway)
        let error = thrown { () throws(OperationSetupError) in try first.depend(on: second, otherwise: .runAnyway) }
        #expect(error?.path == ["ClosureOperation", "HandDriven", "ClosureOperation"])
        #expect(error?.errorDescription == error?.message)
        #expect(error?.description == error.map { "\($0.message) [cycle]" })
    }

    @Test func `a dependency added after the start is refused with the code alreadyStarted`() {
        let operation = HandDriven("late"), other = HandDriven("other"), foreign = BlockOperation()
        foreign.name = "foreign"
        operation.start()
        let error = thrown { () throws(OperationSetupError) in try operation.depend(on: other, otherwise: .runAnyway) }
        #expect(error?.code == .alreadyStarted)
        #expect(error?.path == [])
        #expect(error?.message.contains("late") == true)
        #expect(error?.message.contains("other") == true)
        let second = thrown { () throws(OperationSetupError) in
            try operation.depend(on: foreign, otherwise: .runAnyway)
        }
        #expect(second?.code == .alreadyStarted)
        #expect(operation.dependencies == [])
        operation.finish(withResult: 1)
        #expect(throws: OperationSetupError.self) { try operation.depend(on: other, otherwise: .runAnyway) }
    }

    @Test func `an operation canceled before its start does not wait for a dependency added later`() throws {
        let operation = HandDriven(), upstream = HandDriven()
        operation.cancel()
        try operation.depend(on: upstream, otherwise: .runAnyway)
        operation.start()
        #expect(Look(operation) == .cancelled)
    }
}
