// Part of OperationKit, released under the MIT licence.
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

    @Test func `it executes after main returned until it is given a result`() {
        let operation = HandDriven()
        operation.start()
        #expect(Look(operation) == .executing)
        #expect(operation.outcome == nil)
        operation.finish(withResult: 7)
        #expect(Look(operation) == .finished)
        #expect(operation.outcome == .success(7))
        #expect(operation.cancellationCause == nil)
        #expect(operation.calls.events == ["main"])
    }

    @Test func `an error ends it as finished`() {
        let operation = HandDriven()
        operation.start()
        operation.finish(withError: .first)
        #expect(Look(operation) == .finished)
        #expect(operation.outcome == .failure(.first))
        #expect(operation.outcome?.error == .first)
        #expect(operation.outcome?.result == nil)
    }

    @Test func `a result given within main ends it there`() {
        let operation = HandDriven(
            hooks: .init(main: { operation in
                operation.finish(withResult: 1)
                #expect(Look(operation) == .finished)
            }))
        operation.start()
        #expect(operation.outcome == .success(1))
        #expect(operation.calls.events == ["main"])
    }

    @Test func `cancelled in flight it ends at once as cancelled`() {
        let operation = HandDriven()
        operation.start()
        operation.cancel()
        #expect(Look(operation) == .cancelled)
        #expect(operation.outcome == .cancelled(.requested))
        #expect(operation.cancellationCause == .requested)
        #expect(operation.calls.events == ["main", "cancel requested"])
    }

    @Test func `a suspended operation says so and is still in process`() {
        let operation = HandDriven()
        operation.start()
        operation.suspend()
        #expect(Look(operation) == .suspended)
        operation.resume()
        #expect(Look(operation) == .executing)
    }

    @Test func `while it winds down it is cancelled and executing`() {
        let operation = HandDriven(windsDown: true)
        operation.start()
        operation.cancel()
        #expect(Look(operation) == .windingDown)
        operation.finish(withResult: 3)
        #expect(Look(operation) == .cancelled)
        #expect(operation.outcome == .cancelled(.requested))
    }

    @Test func `while it waits for a dependency it is not started and not ready`() throws {
        let upstream = HandDriven(), operation = HandDriven()
        try operation.depend(on: upstream, otherwise: .runAnyway)
        #expect(Look(operation) == .blocked)
        operation.start()
        #expect(Look(operation) == .blocked)
    }

    @Test func `while its start is delayed it is not started`() {
        let operation = HandDriven(), clock = ManualClock()
        operation.clock = clock
        operation.startDelay = .seconds(1)
        operation.start()
        #expect(Look(operation) == .waiting)
        clock.advance(by: .seconds(1))
        #expect(Look(operation) == .executing)
    }

    @Test func `the result stays readable for as long as the operation lives`() {
        let operation = ClosureOperation { ["a", "b"].map { $0 + $0 } }
        operation.start()
        for _ in 0..<3 { #expect(operation.outcome?.result == ["aa", "bb"]) }
    }

    @Test(arguments: [false, true]) func `results of every size and kind are kept and freed`(early: Bool) {
        let census = LiveObjects()
        func check<Value: Sendable & Equatable>(_ value: Value) {
            let operation = ClosureOperation { value }
            if early { operation.finish(withResult: value) }
            operation.start()
            #expect(operation.outcome?.result == value)
            // Refused, and freed all the same.
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

    @Test func `the states are in words and in two halves`() {
        let working: [OperationState] = [.notStarted, .executing, .suspended]
        for state in OperationState.allCases {
            #expect(state.isWorkingOrInProcess == working.contains(state))
            #expect(state.isFinishedOrCancelled != state.isWorkingOrInProcess)
        }
        let words = OperationState.allCases.map(\.description)
        #expect(words == ["not started", "executing", "suspended", "finished", "cancelled"])
    }
}
