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
