// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct AwaitTests {
    @Test func `value returns the result or throws the typed error or the cancellation`() async {
        let succeeded = HandDriven(), failed = HandDriven(), cancelled = HandDriven()
        for operation in [succeeded, failed, cancelled] { operation.start() }
        succeeded.finish(withResult: 5)
        failed.finish(withError: .second)
        cancelled.cancel()
        var failures: [OperationFailure<Flaw>] = []
        for operation in [succeeded, failed, cancelled] {
            do {
                #expect(try await operation.value == 5)
            } catch {
                // The error is typed here and needs no cast.
                failures.append(error)
            }
        }
        #expect(failures == [.failed(.second), .cancelled(.requested)])
    }

    @Test func `an operation that cannot fail throws only a cancellation`() async {
        let operation = ClosureOperation { 6 }
        operation.cancel()
        do {
            _ = try await operation.value
            Issue.record("Awaiting a canceled operation returned a value.")
        } catch {
            switch error {
            // The compiler knows that this is the only case.
            case .cancelled(let cause): #expect(cause == .requested)
            }
        }
        do {
            _ = try await operation.run()
        } catch {
            let failure: OperationFailure<Never> = error
            #expect(failure == .cancelled(.requested))
        }
    }

    @Test func `awaiting does not start the operation`() async throws {
        let operation = HandDriven()
        async let value = operation.value
        #expect(operation.state == .notStarted)
        operation.startAndFinish(withResult: 1)
        #expect(try await value == 1)
    }

    @Test func `several awaiting tasks get the same outcome`() async {
        let operation = HandDriven.started()
        await withTaskGroup(of: OperationOutcome<Int, Flaw>.self) { group in
            for _ in 0..<20 { group.addTask { await operation.finalOutcome } }
            operation.finish(withError: .first)
            for await outcome in group { #expect(outcome == .failure(.first)) }
        }
    }

    @Test func `canceling the awaiting task cancels the operation`() async {
        let operation = HandDriven(), awaits = Gate()
        operation.start()
        let task = Task {
            awaits.open()
            return await operation.finalOutcome
        }
        await awaits.passage()
        task.cancel()
        #expect(await task.value.cancellationCause?.code == .taskCancelled)
        #expect(operation.cancellationCause?.code == .taskCancelled)
        #expect(operation.calls.events == ["main", "cancel taskCancelled"])
    }

    @Test func `awaiting an operation in a canceled task cancels the operation`() async {
        let operation = HandDriven()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await operation.finalOutcome
        }
        #expect(await task.value.cancellationCause?.code == .taskCancelled)
        #expect(Look(operation) == .cancelledEarly)
    }

    @Test func `a canceled task does not wait for the conversion of an outcome that was set before the start`() async {
        let original = HandDriven()
        original.finish(withResult: 1)
        let mapped = original.mapResult { $0 + 1 }
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await mapped.finalOutcome
        }
        #expect(await task.value.cancellationCause?.code == .taskCancelled)
        #expect(mapped.outcome == nil && original.outcome == .success(1))
        original.start()
        #expect(mapped.outcome == .success(2))
    }

    @Test func `a mapped operation that is canceled after its original finished keeps the converted outcome`() async {
        let (finished, open) = (Gate(), Gate())
        let original = SyncProbe { operation in
            operation.finish(withResult: 1)
            finished.open()
            open.wait()
        }
        let mapped = original.mapResult { $0 + 1 }
        original.startOnThread()
        await finished.passage()
        mapped.cancel()
        #expect(mapped.outcome == nil)
        open.open()
        await mapped.ended()
        #expect(mapped.outcome == .success(2) && !mapped.mayCallHandlers)
    }

    @Test func `canceling the awaiting task after the operation finishes has no effect`() async {
        let operation = HandDriven.started()
        operation.finish(withResult: 1)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await operation.finalOutcome
        }
        #expect(await task.value == .success(1))
        #expect(operation.calls.events == ["main"])
    }

    @Test func `run starts the operation on another thread and returns its result`() async throws {
        let body = EventRecorder<Bool>(), main = MarkedQueue(.main)
        let operation = ClosureOperation { () -> Int in
            body.record(main.isCurrent)
            return 3
        }
        #expect(try await operation.run() == 3)
        // The second call only awaits the operation.
        #expect(try await operation.run() == 3)
        #expect(body.events == [false])
    }

    @Test func `run throws the error of the operation with its type`() async {
        let operation = ClosureOperation { () throws(Flaw) -> Int in throw .first }
        do {
            _ = try await operation.run()
            Issue.record("Running an operation that fails returned a value.")
        } catch {
            let typed: OperationFailure<Flaw> = error
            #expect(typed == .failed(.first))
        }
    }

    @Test func `run only awaits an operation that is already started`() async throws {
        let operation = HandDriven(), awaits = Gate()
        operation.start()
        let task = Task {
            awaits.open()
            return try await operation.run()
        }
        await awaits.passage()
        operation.finish(withResult: 2)
        #expect(try await task.value == 2)
        await operation.ended()
        #expect(operation.calls.events == ["main"])
    }

    @Test func `canceling the task that calls run cancels the operation`() async {
        let began = Gate()
        let operation = HandDriven(hooks: .init(main: { _ in began.open() }))
        let task = Task { try await operation.run() }
        await began.passage()
        task.cancel()
        await #expect(throws: OperationFailure<Flaw>.cancelled(.taskCancelled)) { try await task.value }
        #expect(Look(operation) == .cancelled)
    }

    @Test func `a failure describes its error or its cancellation`() {
        #expect("\(OperationFailure.failed(Flaw.first))" == "failed: first")
        let cancelled = OperationFailure<Flaw>.cancelled(.requested)
        #expect("\(cancelled)" == "canceled: [requested] The operation was canceled.")
        #expect(cancelled.errorDescription == "The operation was canceled.")
        #expect(cancelled.localizedDescription == "The operation was canceled.")
    }
}
