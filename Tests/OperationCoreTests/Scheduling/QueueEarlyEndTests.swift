// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

/// Results that are set before the body, and operations without time for a body.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(3)))
struct QueueEarlyEndTests {
    /// The reason that an operation does not start although its dependencies ended.
    enum Hold: String, CaseIterable, Sendable {
        case category, condition, throttle, delay

        func put(on operation: HandDriven, _ clock: ManualClock) {
            switch self {
            case .category: operation.categories = [OperationCategory("early")]
            case .condition: operation.addCondition(OperationCondition("early") { _ in .satisfied })
            case .throttle:
                operation.throttle = .init(
                    key: "early", interval: .seconds(1), early: .wait, in: OperationThrottle(clock: clock))
            case .delay:
                operation.clock = clock
                operation.startDelay = .seconds(10)
            }
        }
    }

    private let workers = ManualWorkers(), clock = ManualClock()
    private let queue: QueueManager

    init() { queue = workers.makeQueue("early", width: 2) }

    @Test func `a result set during the start delay ends the operation`() throws {
        let operation = HandDriven()
        Hold.delay.put(on: operation, clock)
        try queue.add(operation)
        #expect(clock.pendingCount == 1)
        operation.finish(withResult: 1)
        workers.runAll()
        #expect(Look(operation) == .finished && operation.calls.events.isEmpty)
        #expect(clock.pendingCount == 0 && queue.engine.operations.isEmpty)
    }

    @Test(arguments: Hold.allCases)
    func `an operation that gets its result in a suspended queue ends when the queue resumes`(hold: Hold) throws {
        let operation = HandDriven()
        hold.put(on: operation, clock)
        queue.isSuspended = true
        try queue.add(operation)
        operation.finish(withResult: 1)
        workers.runAll()
        #expect(!operation.isFinished)
        queue.isSuspended = false
        workers.runAll()
        #expect(Look(operation) == .finished && operation.calls.events.isEmpty)
        #expect(clock.pendingCount == 0 && queue.engine.operations.isEmpty)
    }

    @Test(arguments: Hold.allCases)
    func `an operation that gets its result behind a barrier ends after the barrier`(hold: Hold) throws {
        let barrier = HandDriven("barrier"), operation = HandDriven()
        hold.put(on: operation, clock)
        try queue.addBarrier(barrier)
        try queue.add(operation)
        operation.finish(withResult: 1)
        workers.runAll()
        #expect(barrier.state == .executing && !operation.isFinished)
        barrier.finish(withResult: 1)
        workers.runAll()
        #expect(Look(operation) == .finished && operation.calls.events.isEmpty)
        #expect(clock.pendingCount == 0 && queue.engine.operations.isEmpty)
    }

    @Test func `a result set just before the admission request ends the operation`() throws {
        let hooked = HookClock(), first = HandDriven("first"), second = HandDriven("second")
        let registry = OperationThrottle(clock: hooked)
        for operation in [first, second] {
            operation.throttle = .init(
                key: operation.displayName, interval: .seconds(1), early: .wait, in: registry)
        }
        // Both operations are held at this point, and the first requests admission.
        hooked.beforeNextNow { second.finish(withResult: 2) }
        try queue.add([first, second])
        workers.runAll()
        #expect(first.state == .executing)
        #expect(Look(second) == .finished)
        first.finish(withResult: 1)
        #expect(queue.engine.operations.isEmpty)
    }

    @Test(arguments: StartingWay.allCases, [Duration.zero, .nanoseconds(-1), .seconds(Int64.min)])
    func `an operation with a timeout of zero or less is canceled before its body`(
        way: StartingWay, timeout: Duration
    ) async throws {
        let operation = HandDriven(), starter = Starter(way)
        operation.setTimeout(timeout, on: clock)
        try starter.start(operation)
        await operation.ended()
        #expect(Look(operation) == .cancelled)
        #expect(operation.cancellationCause?.code == .timedOut)
        #expect(operation.calls.events == [] && clock.pendingCount == 0)
    }

    @Test(arguments: StartingWay.allCases)
    func `an operation whose deadline has passed is canceled before its body`(way: StartingWay) async throws {
        let operation = HandDriven(), starter = Starter(way)
        // No timer of this clock fires.
        operation.clock = SlowClock()
        operation.deadline = OperationInstant(offset: .seconds(-1))
        try starter.start(operation)
        await operation.ended()
        #expect(operation.cancellationCause?.code == .deadlinePassed)
        #expect(operation.calls.events == [])
    }
}
