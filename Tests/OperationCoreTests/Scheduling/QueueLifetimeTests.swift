// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// A queue keeps its failed operations, and none of them keeps the queue alive.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(3)))
struct QueueLifetimeTests {
    private struct Boom: Error {}

    /// How the failing group is created.
    enum Form: CaseIterable, Sendable {
        case declared, declaredOnTheQueue, body, synchronous, mapped, nested, throwing, cancelledEarly, timedOut

        func makeGroup(on queue: QueueManager) -> ManagedOperation {
            switch self {
            case .declared: GroupOperation.all([failing()])
            case .declaredOnTheQueue: GroupOperation.all([failing()], on: queue)
            case .body: GroupOperation<Int, any Error>(on: queue) { group in try await group.run(failing()) }
            case .synchronous:
                GroupOperation<Int, any Error>(on: queue, synchronous: { group in try group.perform(failing()) })
            case .mapped: GroupOperation.all([failing()], on: queue).mapError { $0 as any Error }
            case .nested: GroupOperation.all([GroupOperation.all([failing()], on: queue).mapError { $0 as any Error }])
            case .throwing:
                GroupOperation<Int, any Error>(on: queue) { group in
                    _ = try? await group.run(failing())
                    throw Boom()
                }
            case .cancelledEarly, .timedOut: GroupOperation.all([failing()], on: queue)
            }
        }

        private func failing() -> ClosureOperation<Int, any Error> {
            ClosureOperation { () throws -> Int in throw Boom() }
        }
    }

    @Test(arguments: Form.allCases)
    func `a queue in which a group failed is freed with the group`(_ form: Form) async throws {
        let census = LiveObjects()
        for _ in 0..<100 {
            let queue = QueueManager("short-lived")
            census.track(queue.engine)
            let group = census.track(form.makeGroup(on: queue))
            if form == .cancelledEarly { group.cancel() }
            if form == .timedOut { group.timeout = .zero }
            try await queue.addAndDrain([group])
        }
        #expect(try await TestThread.run { census.countAtRest() } == 0)
    }

    @Test func `a queue that is freed before a group fails does not keep the group alive`() async throws {
        let census = LiveObjects(), gate = Gate()
        let ended = Gate()
        do {
            let queue = QueueManager("gone")
            census.track(queue.engine)
            let group = census.track(
                GroupOperation<Int, any Error>(on: queue) { _ in
                    await gate.passage()
                    throw Boom()
                })
            group.observe { _ in ended.open() }
            try queue.add(group)
        }
        gate.open()
        await ended.passage()
        #expect(try await TestThread.run { census.countAtRest() } == 0)
    }

    @Test func `the failures of a queue are freed with the queue even if its engine is alive`() async throws {
        let census = LiveObjects(), ended = Gate()
        let token: any Sendable
        do {
            let queue = QueueManager("held")
            token = queue.engine
            let operation = census.track(ClosureOperation { () throws -> Int in throw Boom() })
            operation.observe { _ in ended.open() }
            try await queue.addAndDrain([operation])
            #expect(queue.failures.count == 1)
        }
        await ended.passage()
        #expect(try await TestThread.run { census.countAtRest() } == 0)
        withExtendedLifetime(token) {}
    }
}
