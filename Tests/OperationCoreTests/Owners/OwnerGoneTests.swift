// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Owners that are freed before the operation starts", .timeLimit(.minutes(3)))
struct OwnerGoneTests {
    @Test(arguments: StartingWay.allCases)
    func `an operation whose owner is freed is canceled without its body, and the next one runs`(
        way: StartingWay
    ) async throws {
        let starter = Starter(way, width: 1), operation = orphan()
        let next = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
        #expect(operation.state == .notStarted)
        for operation in [operation, next] { try starter.start(operation) }
        await next.ended()
        await operation.ended()
        #expect(Look(operation) == .cancelled)
        #expect(operation.cancellationCause?.code == .ownerGone)
        #expect(operation.cancellationCause?.message.contains("Screen") == true)
        #expect(operation.calls.events.isEmpty)
    }

    @Test func `run and startAndKeepAlive cancel an operation whose owner is freed`() async {
        let first = orphan(), second = orphan()
        await #expect(throws: OperationFailure<Flaw>.self) { try await first.run() }
        #expect(first.cancellationCause?.code == .ownerGone)
        second.startAndKeepAlive()
        #expect(second.cancellationCause?.code == .ownerGone)
    }

    @Test func `an operation is canceled if its owner is freed while it waits in a QueueManager`() async throws {
        let queue = QueueManager("going", width: 1)
        let first = HandDriven(), second = HandDriven()
        var screen: Screen? = Screen()
        second.owner = screen.map { .object($0) }
        try queue.add([first, second])
        screen = nil
        first.finish(withResult: 1)
        if !first.isFinished { await first.ended() }
        await second.ended()
        #expect(second.cancellationCause?.code == .ownerGone)
    }

    @Test func `an operation whose owner is freed during the start delay is canceled after the delay`() {
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

    @Test func `an operation whose owner is freed while dependencies run is canceled after them`() async {
        let dependency = HandDriven(), operation = HandDriven()
        operation.addDependency(dependency)
        operation.startWithBriefOwner()
        dependency.startAndFinish(withResult: 1)
        await operation.ended()
        #expect(operation.cancellationCause?.code == .ownerGone)
        #expect(operation.calls.events.isEmpty)
    }

    @Test func `a result that was set before the start is kept although the owner is freed`() {
        let operation = orphan()
        operation.finish(withResult: 1)
        operation.start()
        #expect(operation.outcome == .success(1))
    }

    @Test(arguments: StartingWay.allCases)
    func `an operation with a live owner or a named owner runs`(way: StartingWay) async throws {
        let screen = Screen(), starter = Starter(way)
        for owner in [OperationOwner.object(screen), "gone tests: a name"] {
            let operation = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
            operation.owner = owner
            try starter.start(operation)
            await operation.ended()
            #expect(operation.outcome == .success(1))
        }
    }

    private func orphan() -> HandDriven {
        let operation = HandDriven()
        autoreleasing { operation.owner = .object(Screen()) }
        return operation
    }
}
