// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct SyncOperationTests {
    @Test func `it executes during main and is finished when that returned`() {
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

    @Test func `the outcome is decided by finish and the operation ends when main returns`() {
        let operation = SyncProbe { operation in
            operation.finish(withError: .first)
            #expect(operation.outcome == .failure(.first))
            #expect(Look(operation) == .executing)
        }
        operation.start()
        #expect(Look(operation) == .finished)
        #expect(operation.outcome == .failure(.first))
    }

    @Test func `a body without a result ends as cancelled with that cause`() async {
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
        await queue.drain()
        #expect(told.events == ["cancelled noResult"])
        // It stopped by itself: there is nothing to stop.
        #expect(operation.calls.events == ["main"])
    }

    @Test func `cancelled from within main it goes on to the end of main`() {
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

    @Test func `cancelled in flight it tells its waiters at once and ends when main returns`() async throws {
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

    @Test func `a cancellation after finish changes nothing though main has not returned`() {
        let operation = SyncProbe { operation in
            operation.finish(withResult: 9)
            operation.cancel()
            #expect(!operation.isCancelled)
        }
        operation.start()
        #expect(operation.outcome == .success(9))
        #expect(operation.calls.events == ["main"])
    }

    @Test func `awaiters have the result before main returned`() async throws {
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

    @Test func `the handler is told when main returned and not before`() async throws {
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
        // Still in time, though the outcome is decided.
        operation.successHandler = { told.record($0) }
        await queue.drain()
        #expect(told.events == [])
        release.open()
        try await thread
        await queue.drain()
        #expect(told.events == [4])
    }
}
