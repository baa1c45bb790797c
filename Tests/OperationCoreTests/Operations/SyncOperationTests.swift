// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct SyncOperationTests {
    @Test func `a synchronous operation executes during main and is finished when main returns`() {
        let operation = SyncProbe { operation in
            #expect(Look(operation) == .executing)
            operation.finish(withResult: 5)
        }
        #expect(Look(operation) == .waiting)
        #expect(!operation.isAsynchronous)
        operation.start()
        #expect(Look(operation) == .finished)
        #expect(operation.outcome == .success(5))
    }

    @Test func `a body that returns without a result cancels the operation with the cause noResult`() async {
        let queue = DispatchQueue(label: "handlers"), told = EventRecorder<String>()
        let operation = SyncProbe { _ in }
        operation.callbackQueue = queue
        operation.successHandler = { _ in told.record("success") }
        operation.failureHandler = { _ in told.record("failure") }
        operation.cancellationHandler = { told.record("cancelled \($0.code)") }
        operation.start()
        #expect(Look(operation) == .cancelled)
        #expect(operation.cancellationCause?.code == .noResult)
        #expect(operation.cancellationCause?.message.contains("finish(withResult:)") == true)
        #expect(await told.events(after: queue) == ["cancelled noResult"])
        // The body has already returned, so didCancel is not called.
        #expect(operation.calls.events == ["main"])
    }

    @Test func `a synchronous operation canceled inside main continues until main returns`() {
        let operation = SyncProbe { operation in
            operation.cancel()
            #expect(Look(operation) == .windingDown)
            operation.finish(withResult: 1)
            #expect(Look(operation) == .windingDown)
        }
        operation.start()
        #expect(Look(operation) == .cancelled)
        #expect(operation.outcome == .cancelled(.requested))
        #expect(operation.calls.events == ["main", "cancel requested"])
    }

    @Test func `canceling a synchronous operation notifies waiters immediately and ends it after main`() async throws {
        let began = Gate(), release = Gate()
        let operation = SyncProbe { operation in
            began.open()
            release.wait()
            operation.finish(withResult: 1)
        }
        async let thread: Void = TestThread.run { operation.start() }
        await began.passage()
        operation.cancel()
        #expect(await operation.finalOutcome == .cancelled(.requested))
        #expect(!operation.isFinished)
        release.open()
        try await thread
        #expect(Look(operation) == .cancelled)
        #expect(operation.calls.events == ["main", "cancel requested"])
    }

    @Test func `canceling after finish has no effect even before main returns`() {
        let operation = SyncProbe { operation in
            operation.finish(withResult: 9)
            operation.cancel()
            #expect(!operation.isCancelled)
        }
        operation.start()
        #expect(operation.outcome == .success(9))
        #expect(operation.calls.events == ["main"])
    }

    @Test func `awaiting an operation returns the result before main returns`() async throws {
        let release = Gate()
        let operation = SyncProbe { operation in
            operation.finish(withResult: 4)
            release.wait()
        }
        async let thread: Void = TestThread.run { operation.start() }
        #expect(try await operation.value == 4)
        #expect(!operation.isFinished)
        release.open()
        try await thread
        #expect(operation.isFinished)
    }

    @Test func `the success handler is called when main returns and not before`() async throws {
        let release = Gate(), decided = Gate(), queue = DispatchQueue(label: "handlers")
        let told = EventRecorder<Int>()
        let operation = SyncProbe { operation in
            operation.finish(withResult: 4)
            decided.open()
            release.wait()
        }
        operation.callbackQueue = queue
        async let thread: Void = TestThread.run { operation.start() }
        await decided.passage()
        // The handler is still set in time, although the outcome is decided.
        operation.successHandler = { told.record($0) }
        #expect(await told.events(after: queue) == [])
        release.open()
        try await thread
        #expect(await told.events(after: queue) == [4])
    }
}
