// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct TaskOperationTests {
    /// Waits until the calling task is cancelled.
    private static func untilCancelled() async {
        let (stream, continuation) = AsyncStream<Never>.makeStream()
        for await _ in stream {}
        continuation.finish()
    }

    @Test func `its types are those of the closure`() async {
        let never: TaskOperation<Int, Never> = TaskOperation { 1 }
        let typed: TaskOperation<Int, Flaw> = TaskOperation { () async throws(Flaw) in throw .first }
        let untyped: TaskOperation<Int, any Error> = TaskOperation { throw Flaw.second }
        for operation in [never, typed, untyped] as [ManagedOperation] { operation.start() }
        #expect(await never.finalOutcome == .success(1))
        #expect(await typed.finalOutcome == .failure(.first))
        #expect(await untyped.finalOutcome.error as? Flaw == .second)
        #expect(never.isAsynchronous)
    }

    @Test func `a thrown cancellation error cancels it`() async {
        let operation = TaskOperation { () async throws -> Int in throw CancellationError() }
        operation.start()
        #expect(await operation.finalOutcome.cancellationCause == .bodyCancelled)
        await operation.end()
        #expect(Look(operation) == .cancelled)
    }

    /// Nobody but the body ends an operation that winds down.
    @Test func `a thrown cancellation error ends an operation that winds down`() async throws {
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
        #expect(isEnded, "its outcome is decided, its body has returned, and isFinished is never signalled")
    }

    @Test func `cancelling the operation cancels the closure's task`() async {
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

    @Test func `one that winds down ends when its closure returned`() async {
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
        await operation.end()
        #expect(Look(operation) == .cancelled)
    }

    @Test func `cancelled before the start its closure never runs and is let go of`() async {
        let census = LiveObjects(), operation: TaskOperation<Void, Never>
        do {
            let object = census.track(Witness())
            operation = TaskOperation {
                _ = object
                Issue.record("It ran.")
            }
        }
        operation.cancel()
        #expect(census.count == 0)
        operation.start()
        await operation.end()
        #expect(Look(operation) == .cancelled)
    }

    @Test func `the closure is let go of once it ran though the operation lives`() async {
        let gone = Gate(), operation: TaskOperation<Void, Never>
        do {
            let object = Witness(gone)
            operation = TaskOperation { withExtendedLifetime(object) {} }
        }
        operation.start()
        await gone.passage()
        await operation.end()
        #expect(operation.state == .finished)
    }

    @Test func `the closure is let go of after a cancellation in flight though the operation lives`() async {
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

    @Test func `a started operation that nobody holds goes on and is freed at its end`() async {
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

    @Test func `a cancellation between the start and the task's creation cancels the task`() async throws {
        let rounds = Rounds.count(ci: 500, soak: 20_000)
        let isStuck = try await TestThread.run { () -> Bool in
            let team = ThreadTeam(count: 2)
            let gates = (0..<rounds).map { _ in
                let gone = Gate()
                let operation = makeOperation(that: Witness(gone))
                team.run([{ operation.start() }, { operation.cancel() }])
                return gone
            }
            // A closure that runs returns only because its task is cancelled.
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
