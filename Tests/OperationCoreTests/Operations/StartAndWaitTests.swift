// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct StartAndWaitTests {
    @Test func `startAndWait runs the body on the calling thread and returns the result`() async throws {
        let result = try await TestThread.run {
            let caller = ThreadMark()
            return try ClosureOperation { caller.isCurrent }.startAndWait()
        }
        #expect(result)
    }

    @Test func `startAndWait throws the typed error`() async throws {
        let failure = try await TestThread.run { () -> OperationFailure<Flaw>? in
            let operation: ClosureOperation<Int, Flaw> = ClosureOperation { () throws(Flaw) in throw .second }
            return thrown { () throws(OperationFailure<Flaw>) in try operation.startAndWait() }
        }
        #expect(failure == .failed(.second))
    }

    @Test func `startAndWait throws the cancellation of an already canceled operation and ends it`() async throws {
        let operation = HandDriven()
        operation.cancel()
        await #expect(throws: OperationFailure<Flaw>.cancelled(.requested)) {
            try await TestThread.run { try operation.startAndWait() }
        }
        #expect(Look(operation) == .cancelled)
    }

    @Test func `startAndWait waits for work that continues on another thread`() async throws {
        let operation = HandDriven(
            hooks: .init(main: { operation in
                Thread { operation.finish(withResult: 4) }.start()
            }))
        #expect(try await TestThread.run { try operation.startAndWait() } == 4)
    }

    @Test func `startAndWait returns even if the callback queue is suspended`() async throws {
        let queue = DispatchQueue(label: "held"), told = EventRecorder<Int>()
        queue.suspend()
        let operation = ClosureOperation { 1 }
        operation.callbackQueue = queue
        operation.successHandler = { told.record($0) }
        #expect(try await TestThread.run { try operation.startAndWait() } == 1)
        #expect(told.events == [])
        queue.resume()
        #expect(await told.events(atLeast: 1) == [1])
    }

    @Test func `startAndWait can be called on the callback queue`() async {
        let queue = DispatchQueue(label: "handlers"), told = EventRecorder<String>()
        queue.async {
            let operation = ClosureOperation { 1 }
            operation.callbackQueue = queue
            operation.successHandler = { _ in told.record("handler") }
            _ = try? operation.startAndWait()
            told.record("returned")
        }
        #expect(await told.events(atLeast: 2) == ["returned", "handler"])
    }

    @Test func `startAndWait waits for dependencies first`() async throws {
        let upstream = HandDriven(), operation = ClosureOperation { 2 }
        try operation.depend(on: upstream, otherwise: .runAnyway)
        async let result = TestThread.run { try operation.startAndWait() }
        upstream.startAndFinish(withResult: 1)
        #expect(try await result == 2)
    }

    @Test func `startAndWait throws if the operation is canceled while it waits for dependencies`() async throws {
        let upstream = HandDriven(), operation = ClosureOperation { 2 }
        try operation.depend(on: upstream, otherwise: .runAnyway)
        let waiter = Task { try await TestThread.run { try operation.startAndWait() } }
        operation.cancel()
        await #expect(throws: OperationFailure<Never>.cancelled(.requested)) { try await waiter.value }
    }

    @Test func `several threads that call startAndWait share one run`() async throws {
        let runs = EventRecorder<Int>(), results = EventRecorder<Int?>()
        try await TestThread.run {
            let team = ThreadTeam(count: 4)
            for _ in 0..<200 {
                let operation = ClosureOperation { () -> Int in
                    runs.record(1)
                    return 1
                }
                team.run((0..<4).map { _ in { results.record(try? operation.startAndWait()) } })
            }
        }
        #expect(runs.count == 200)
        #expect(results.events == Array(repeating: 1, count: 800))
    }

    @Test func `waitUntilFinished returns after each kind of outcome`() async throws {
        for end in [
            { $0.finish(withResult: 1) }, { $0.finish(withError: .first) }, { $0.cancel() },
        ] as [@Sendable (HandDriven) -> Void] {
            let operation = HandDriven()
            async let isFinished = TestThread.run {
                operation.waitUntilFinished()
                return operation.isFinished
            }
            operation.start()
            end(operation)
            #expect(try await isFinished)
        }
    }

    /// A closure that runs other operations while the end of an operation is processed.
    @Test func `the closure of a fail rule can run operations that depend on each other`() async throws {
        let upstream = HandDriven(), downstream = HandDriven(), done = DispatchSemaphore(value: 0)
        try downstream.depend(
            on: upstream,
            otherwise: .fail { _ in
                let first = ClosureOperation { 1 }, second = ClosureOperation { 2 }
                try? second.depend(on: first, otherwise: .runAnyway)
                first.start()
                return .converted("\((try? second.startAndWait()) ?? 0)")
            })
        upstream.start()
        Thread {
            upstream.finish(withError: .first)
            done.signal()
        }.start()
        let isDone = try await TestThread.run { done.wait(timeout: .now() + 20) == .success }
        #expect(isDone, "The thread waits for work that it deferred itself.")
        #expect(downstream.outcome == .failure(.converted("2")))
    }
}
