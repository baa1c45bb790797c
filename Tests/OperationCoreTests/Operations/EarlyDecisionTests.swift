// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Outcomes that are decided before the start, and starts that come late, early or twice.
@Suite(.timeLimit(.minutes(3)))
struct EarlyDecisionTests {
    @Test(arguments: [(true, true), (true, false), (false, false)])
    func `a result or error set before the start is kept, can be awaited, and is reported at the start`(
        succeeds: Bool, isAwaited: Bool
    ) async throws {
        let queue = DispatchQueue(label: "handlers"), told = EventRecorder<String>(), operation = HandDriven()
        operation.callbackQueue = queue
        operation.successHandler = { told.record("success \($0)") }
        operation.failureHandler = { told.record("failure \($0)") }
        operation.observe { told.record($0.word) }
        succeeds ? operation.finish(withResult: 3) : operation.finish(withError: .first)
        #expect(Look(operation) == .waiting)
        #expect(operation.outcome == (succeeds ? .success(3) : .failure(.first)))
        if isAwaited { #expect(try await operation.value == 3) }
        #expect(Look(operation) == .waiting)
        #expect(await told.events(after: queue) == [])
        operation.start()
        #expect(Look(operation) == .finished)
        await queue.drain()
        let expected = succeeds ? "success 3" : "failure first"
        #expect(told.events == [expected, expected])
        #expect(operation.calls.events == [])
    }

    @Test func `an operation canceled before the start never runs its body and ends at the start`() {
        for operation in [HandDriven(), HandDriven(windsDown: true)] {
            let ends = EventRecorder<Int>()
            operation.whenEnded { ends.record(1) }
            operation.cancel()
            #expect(Look(operation) == .cancelledEarly)
            #expect(operation.outcome == .cancelled(.requested))
            #expect(ends.events == [])
            operation.start()
            #expect(Look(operation) == .cancelled)
            #expect(ends.events == [1])
            // Neither main nor didCancel was called.
            #expect(operation.calls.events == [])
        }
    }

    @Test func `only the cause of the first cancellation is kept`() {
        let operation = HandDriven.started()
        operation.cancel(because: .requested("first"))
        operation.cancel(because: .requested("second"))
        operation.cancel()
        #expect(operation.cancellationCause?.message == "first")
        #expect(operation.calls.events == ["main", "cancel requested"])
    }

    @Test func `a result after a cancellation before the start is dropped and freed`() {
        let census = LiveObjects()
        let operation = ClosureOperation<Witness, Never> { Witness() }
        operation.cancel()
        operation.finish(withResult: census.track(Witness()))
        operation.start()
        #expect(operation.outcome?.cancellationCause == .requested)
        #expect(census.count == 0)
    }
}
