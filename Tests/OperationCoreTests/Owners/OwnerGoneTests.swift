// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("An owner that is gone before the start", .timeLimit(.minutes(3)))
struct OwnerGoneTests {
    @Test func `started by hand it is cancelled and its body does not run`() {
        let operation = orphan()
        #expect(operation.state == .notStarted)
        operation.start()
        #expect(Look(operation) == .cancelled)
        #expect(operation.cancellationCause?.code == .ownerGone)
        #expect(operation.cancellationCause?.message.contains("Screen") == true)
        #expect(operation.calls.events.isEmpty)
    }

    @Test func `run and started to be kept alive it is cancelled too`() async {
        let first = orphan(), second = orphan()
        await #expect(throws: OperationFailure<Flaw>.self) { try await first.run() }
        #expect(first.cancellationCause?.code == .ownerGone)
        second.startAndKeepAlive()
        #expect(second.cancellationCause?.code == .ownerGone)
    }

    @Test func `in a plain queue it is cancelled and the next one runs`() async {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let operation = orphan(), next = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
        for operation in [operation, next] as [Operation] { queue.addOperation(operation) }
        await next.end()
        #expect(operation.cancellationCause?.code == .ownerGone)
        #expect(operation.isFinished && operation.calls.events.isEmpty)
    }

    @Test func `in a queue of ours it is cancelled and the next one runs`() async throws {
        let queue = QueueManager("gone", width: 1)
        let operation = orphan(), next = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
        try queue.add(operation)
        try queue.add(next)
        await next.end()
        await operation.end()
        #expect(operation.cancellationCause?.code == .ownerGone)
        #expect(operation.calls.events.isEmpty)
    }

    @Test func `an owner that goes while a queue of ours holds the operation is seen`() async throws {
        let queue = QueueManager("going", width: 1)
        let first = HandDriven(), second = HandDriven()
        var screen: Screen? = Screen()
        second.owner = screen.map { .object($0) }
        try queue.add(first)
        try queue.add(second)
        screen = nil
        first.finish(withResult: 1)
        if !first.isFinished { await first.end() }
        await second.end()
        #expect(second.cancellationCause?.code == .ownerGone)
    }

    @Test func `an owner that goes during the delay is seen when it ends`() {
        let clock = ManualClock()
        let operation = HandDriven()
        operation.clock = clock
        operation.startDelay = .seconds(5)
        autoreleasing {
            let screen = Screen()
            operation.owner = .object(screen)
            operation.start()
            clock.advance(by: .seconds(4))
        }
        #expect(operation.state == .notStarted)
        clock.advance(by: .seconds(1))
        #expect(operation.cancellationCause?.code == .ownerGone)
        #expect(operation.isFinished && clock.pendingCount == 0)
    }

    @Test func `an owner that goes while dependencies run is seen when they end`() async {
        let dependency = HandDriven(), operation = HandDriven()
        operation.addDependency(dependency)
        autoreleasing {
            let screen = Screen()
            operation.owner = .object(screen)
            operation.start()
        }
        dependency.start()
        dependency.finish(withResult: 1)
        await operation.end()
        #expect(operation.cancellationCause?.code == .ownerGone)
        #expect(operation.calls.events.isEmpty)
    }

    @Test func `a result that was given before the start is kept`() {
        let operation = orphan()
        operation.finish(withResult: 1)
        operation.start()
        #expect(operation.outcome == .success(1))
    }

    @Test func `owned by what is alive or a name it runs in each way of starting`() async throws {
        let screen = Screen()
        for owner in [OperationOwner.object(screen), "gone tests: a name"] {
            let operations = (0..<3).map { _ in HandDriven(hooks: .init(main: { $0.finish(withResult: 1) })) }
            for operation in operations { operation.owner = owner }
            operations[0].start()
            OperationQueue().addOperation(operations[1])
            try QueueManager("alive").add(operations[2])
            for operation in operations {
                await operation.end()
                #expect(operation.outcome == .success(1))
            }
        }
    }

    private func orphan() -> HandDriven {
        let operation = HandDriven()
        autoreleasing { operation.owner = .object(Screen()) }
        return operation
    }
}
