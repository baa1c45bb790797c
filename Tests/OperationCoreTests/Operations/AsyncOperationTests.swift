// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct AsyncOperationTests {
    @Test func `a new operation is not started and is ready`() {
        let operation = HandDriven()
        #expect(Look(operation) == .waiting)
        #expect(operation.isAsynchronous)
        #expect(operation.outcome == nil)
        #expect(operation.cancellationCause == nil)
        #expect(operation.calls.events == [])
    }

    @Test func `an operation executes after main returns until it gets a result`() {
        let operation = HandDriven.started()
        #expect(Look(operation) == .executing)
        #expect(operation.outcome == nil)
        operation.finish(withResult: 7)
        #expect(Look(operation) == .finished)
        #expect(operation.outcome == .success(7))
        #expect(operation.cancellationCause == nil)
        #expect(operation.calls.events == ["main"])
    }

    @Test func `finishing with an error sets the state to finished`() {
        let operation = HandDriven.started()
        operation.finish(withError: .first)
        #expect(Look(operation) == .finished)
        #expect(operation.outcome == .failure(.first))
        #expect(operation.outcome?.error == .first)
        #expect(operation.outcome?.result == nil)
    }

    @Test func `calling finish inside main finishes the operation immediately`() {
        let operation = HandDriven(
            hooks: .init(main: { operation in
                operation.finish(withResult: 1)
                #expect(Look(operation) == .finished)
            }))
        operation.start()
        #expect(operation.outcome == .success(1))
        #expect(operation.calls.events == ["main"])
    }

    @Test func `canceling an executing operation finishes it immediately as canceled`() {
        let operation = HandDriven.started()
        operation.cancel()
        #expect(Look(operation) == .cancelled)
        #expect(operation.outcome == .cancelled(.requested))
        #expect(operation.cancellationCause == .requested)
        #expect(operation.calls.events == ["main", "cancel requested"])
    }

    @Test func `the result stays readable until the operation is freed`() {
        let operation = ClosureOperation { ["a", "b"].map { $0 + $0 } }
        operation.start()
        for _ in 0..<3 { #expect(operation.outcome?.result == ["aa", "bb"]) }
    }

    @Test(arguments: [false, true]) func `results of every size and type are kept and freed`(early: Bool) {
        let census = LiveObjects()
        func check<Value: Sendable & Equatable>(_ value: Value) {
            let operation = ClosureOperation { value }
            if early { operation.finish(withResult: value) }
            operation.start()
            #expect(operation.outcome?.result == value)
            // This result is rejected and freed.
            operation.finish(withResult: value)
        }
        check(true)
        check(Int.max)
        check(UInt8(3))
        check("a string that is too long for a small one")
        check(Optional<Int>.none)
        check([1, 2, 3])
        check(SIMD4<Double>(1, 2, 3, 4))
        do {
            let object = census.track(Witness())
            check(ObjectIdentifier(object))
            let operation = ClosureOperation { object }
            operation.start()
            #expect(operation.outcome?.result === object)
        }
        #expect(census.count == 0)
    }

    @Test func `every state has a description and is either working or finished`() {
        let working: [OperationState] = [.notStarted, .executing, .suspended]
        for state in OperationState.allCases {
            #expect(state.isWorkingOrInProcess == working.contains(state))
            #expect(state.isFinishedOrCancelled != state.isWorkingOrInProcess)
        }
        let words = OperationState.allCases.map(\.description)
        #expect(words == ["not started", "executing", "suspended", "finished", "cancelled"])
    }
}
