// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct StartDelayTests {
    private let clock = ManualClock()

    private func started(_ delay: Duration) -> HandDriven {
        let operation = HandDriven()
        operation.clock = clock
        operation.startDelay = delay
        operation.start()
        return operation
    }

    @Test func `the body starts when the start delay is over`() {
        let operation = started(.seconds(3))
        #expect(operation.startDelay == .seconds(3))
        clock.advance(by: .milliseconds(2_999))
        #expect(operation.calls.events == [])
        clock.advance(by: .milliseconds(1))
        #expect(operation.calls.events == ["main"])
        #expect(clock.pendingCount == 0)
    }

    @Test(arguments: [Duration.zero, .nanoseconds(-1), .seconds(Int64.min)])
    func `a start delay of zero or less has no effect`(delay: Duration) {
        let operation = started(delay)
        #expect(operation.startDelay == .zero)
        #expect(operation.state == .executing)
        #expect(clock.pendingCount == 0)
    }

    @Test func `a result set during the start delay ends the operation immediately`() {
        let operation = started(.seconds(3))
        operation.finish(withResult: 1)
        #expect(Look(operation) == .finished)
        #expect(clock.pendingCount == 0)
        clock.advance(by: .seconds(10))
        #expect(operation.calls.events == [])
    }

    @Test func `the start delay begins when the dependencies have ended`() async throws {
        let upstream = HandDriven(), operation = HandDriven(), scheduled = Gate(), hooked = HookClock()
        hooked.afterNextSchedule { scheduled.open() }
        operation.clock = hooked
        operation.startDelay = .seconds(3)
        try operation.depend(on: upstream, otherwise: .runAnyway)
        operation.start()
        #expect(hooked.pendingCount == 0)
        hooked.manual.advance(by: .seconds(100))
        #expect(operation.calls.events == [])
        UpstreamEnd.succeeds.perform(on: upstream)
        await scheduled.passage()
        hooked.manual.advance(by: .seconds(3))
        _ = await operation.calls.events(atLeast: 1)
        #expect(operation.state == .executing)
    }

    @Test func `a second start during the delay does not start the body`() {
        let operation = started(.seconds(3))
        operation.start()
        #expect(operation.calls.events == [])
        #expect(clock.pendingCount == 1)
    }

    @Test func `an operation takes a slot of an OperationQueue during its start delay`() async throws {
        let queue = OperationQueue(), first = HandDriven(), scheduled = Gate(), hooked = HookClock()
        queue.maxConcurrentOperationCount = 1
        hooked.afterNextSchedule { scheduled.open() }
        first.clock = hooked
        first.startDelay = .seconds(3)
        let second = ClosureOperation { first.isFinished }
        queue.addOperation(first)
        queue.addOperation(second)
        await scheduled.passage()
        #expect(second.state == .notStarted)
        first.cancel()
        #expect(try await second.value)
    }

    @Test func `time options of one operation do not affect another`() {
        let first = HandDriven(), second = HandDriven()
        first.clock = clock
        first.timeout = .seconds(1)
        first.startDelay = .seconds(2)
        first.deadline = OperationInstant(offset: .seconds(3))
        #expect(first.clock as? ManualClock === clock)
        #expect(second.clock as? SystemClock === SystemClock.shared)
        #expect(second.timeout == nil)
        #expect(second.startDelay == .zero)
        #expect(second.deadline == nil)
    }
}
