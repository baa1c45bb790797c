// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct ClosureOperationTests {
    @Test func `a ClosureOperation takes its result and error types from the closure`() {
        let never: ClosureOperation<Int, Never> = ClosureOperation { 1 }
        let typed: ClosureOperation<String, Flaw> = ClosureOperation { () throws(Flaw) in throw .first }
        let untyped: ClosureOperation<Void, any Error> = ClosureOperation { throw Flaw.second }
        never.start()
        typed.start()
        untyped.start()
        #expect(never.outcome == .success(1))
        #expect(typed.outcome == .failure(.first))
        #expect(untyped.outcome?.error as? Flaw == .second)
        #expect(!never.isAsynchronous)
    }

    @Test func `throwing CancellationError from the closure cancels the operation`() async {
        let queue = DispatchQueue(label: "handlers"), told = EventRecorder<String>()
        let operation = ClosureOperation { () throws -> Int in throw CancellationError() }
        operation.callbackQueue = queue
        operation.failureHandler = { _ in told.record("failure") }
        operation.cancellationHandler = { told.record("\($0.code)") }
        operation.start()
        #expect(Look(operation) == .cancelled)
        #expect(operation.cancellationCause == .bodyCancelled)
        #expect(await told.events(after: queue) == ["bodyCancelled"])
    }

    /// Returns an operation whose closure holds an object of the census.
    private func makeOperation(_ census: LiveObjects) -> ClosureOperation<Int, Never> {
        let object = census.track(Witness())
        return ClosureOperation { withExtendedLifetime(object) { 1 } }
    }

    @Test func `the closure is released after it runs`() {
        let census = LiveObjects(), operation = makeOperation(census)
        #expect(census.count == 1)
        operation.start()
        #expect(census.count == 0)
    }

    @Test func `the closure is released when the operation is canceled before the start`() {
        let census = LiveObjects(), operation = makeOperation(census)
        operation.cancel()
        #expect(census.count == 0)
        operation.start()
        #expect(Look(operation) == .cancelled)
    }

    @Test func `the closure is released when the operation gets a result before the start`() {
        let census = LiveObjects(), operation = makeOperation(census)
        operation.finish(withResult: 2)
        // The closure will never run.
        #expect(census.count == 0)
        operation.start()
        #expect(census.count == 0)
        #expect(operation.outcome == .success(2))
    }

    @Test func `the result of a closure that is canceled while it runs is dropped`() async throws {
        let began = Gate(), release = Gate()
        let operation = ClosureOperation { () -> Int in
            began.open()
            release.wait()
            return 1
        }
        async let thread: Void = TestThread.run { operation.start() }
        await began.passage()
        operation.cancel()
        release.open()
        try await thread
        #expect(operation.outcome == .cancelled(.requested))
        #expect(Look(operation) == .cancelled)
    }
}
