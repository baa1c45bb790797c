// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct TaskOperationTests {
    /// Waits until the calling task is canceled.
    private static func untilCancelled() async {
        let (stream, continuation) = AsyncStream<Never>.makeStream()
        for await _ in stream {}
        continuation.finish()
    }

    @Test func `a TaskOperation takes its result and error types from the closure`() async {
        let never: TaskOperation<Int, Never> = TaskOperation { 1 }
        let typed: TaskOperation<Int, Flaw> = TaskOperation { () async throws(Flaw) in throw .first }
        let untyped: TaskOperation<Int, any Error> = TaskOperation { throw Flaw.second }
        for operation in [never, typed, untyped] as [ManagedOperation] { operation.start() }
        #expect(await never.finalOutcome == .success(1))
        #expect(await typed.finalOutcome == .failure(.first))
        #expect(await untyped.finalOutcome.error as? Flaw == .second)
        #expect(never.isAsynchronous)
    }

    @Test func `throwing CancellationError cancels the operation`() async {
        let operation = TaskOperation { () async throws -> Int in throw CancellationError() }
        operation.start()
        #expect(await operation.finalOutcome.cancellationCause == .bodyCancelled)
        await operation.ended()
        #expect(Look(operation) == .cancelled)
    }

    /// Only the body can end an operation that winds down.
    @Test func `throwing CancellationError ends an operation that winds down`() async throws {
        let returned = Gate()
        let operation = TaskOperation(windsDownAfterCancellation: true) { () async throws -> Int in
            defer { returned.open() }
            throw CancellationError()
        }
        let ended = Gate()
        operation.whenEnded { ended.open() }
        operation.start()
        #expect(await operation.finalOutcome.cancellationCause == .bodyCancelled)
        await returned.passage()
        let isEnded = try await TestThread.run { ended.waits(upTo: .seconds(20)) }
        #expect(isEnded, "The outcome is set and the body has returned, but the operation did not finish.")
    }

    @Test func `canceling the operation cancels the task of the closure`() async {
        let began = Gate(), stopped = Gate()
        let operation = TaskOperation {
            began.open()
            await Self.untilCancelled()
            stopped.open()
        }
        operation.start()
        await began.passage()
        operation.cancel()
        #expect(Look(operation) == .cancelled)
        await stopped.passage()
        #expect(operation.outcome?.cancellationCause == .requested)
    }

    @Test func `an operation that winds down ends when its closure returns`() async {
        let began = Gate(), release = Gate()
        let operation = TaskOperation(windsDownAfterCancellation: true) {
            began.open()
            await Self.untilCancelled()
            await release.passage()
        }
        operation.start()
        await began.passage()
        operation.cancel()
        #expect(Look(operation) == .windingDown)
        release.open()
        await operation.ended()
        #expect(Look(operation) == .cancelled)
    }

    @Test func `an operation canceled before the start never runs its closure and releases it`() async {
        let census = LiveObjects(), operation: TaskOperation<Void, Never>
        do {
            let object = census.track(Witness())
            operation = TaskOperation {
                _ = object
                Issue.record("The closure of a canceled operation ran.")
            }
        }
        operation.cancel()
        #expect(census.count == 0)
        await operation.startAndEnd()
        #expect(Look(operation) == .cancelled)
    }

    @Test func `the closure is released after it runs although the operation is alive`() async {
        let gone = Gate(), operation: TaskOperation<Void, Never>
        do {
            let object = Witness(gone)
            operation = TaskOperation { withExtendedLifetime(object) {} }
        }
        operation.start()
        await gone.passage()
        await operation.ended()
        #expect(operation.state == .finished)
    }

    @Test func `the closure is released after a cancellation although the operation is alive`() async {
        let gone = Gate(), began = Gate(), operation: TaskOperation<Void, Never>
        do {
            let object = Witness(gone)
            operation = TaskOperation {
                began.open()
                await Self.untilCancelled()
                withExtendedLifetime(object) {}
            }
        }
        operation.start()
        await began.passage()
        operation.cancel()
        await gone.passage()
        #expect(Look(operation) == .cancelled)
    }

    @Test func `a started TaskOperation that is not kept alive still completes and is then freed`() async {
        let gone = Gate(), release = Gate(), ran = EventRecorder<Int>()
        do {
            let object = Witness(gone)
            let operation = TaskOperation { () -> Witness in
                await release.passage()
                ran.record(1)
                return object
            }
            operation.start()
        }
        release.open()
        await gone.passage()
        #expect(ran.events == [1])
    }

    @Test func `canceling between the start and the creation of the task cancels the task`() async throws {
        let rounds = Rounds.count(ci: 500, soak: 20_000)
        let isStuck = try await TestThread.run { () -> Bool in
            let team = ThreadTeam(count: 2)
            let gates = (0..<rounds).map { _ in
                let gone = Gate()
                let operation = makeOperation(that: Witness(gone))
                team.run([{ operation.start() }, { operation.cancel() }])
                return gone
            }
            // The closure returns only if its task is canceled.
            return gates.contains { !$0.waits(upTo: .seconds(30)) }
        }
        #expect(!isStuck)
    }

    private func makeOperation(that witness: Witness) -> TaskOperation<Void, Never> {
        TaskOperation {
            await Self.untilCancelled()
            withExtendedLifetime(witness) {}
        }
    }
}
