// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct TimeoutTests {
    private let clock = ManualClock()

    private func started(_ timeout: Duration?) -> HandDriven {
        let operation = HandDriven()
        operation.clock = clock
        operation.timeout = timeout
        operation.start()
        return operation
    }

    @Test func `an operation that takes longer is cancelled and stopped`() {
        let operation = started(.seconds(30))
        #expect(operation.timeout == .seconds(30))
        clock.advance(by: .milliseconds(29_999))
        #expect(Look(operation) == .executing)
        clock.advance(by: .milliseconds(1))
        #expect(Look(operation) == .cancelled)
        #expect(operation.cancellationCause?.code == .timedOut)
        #expect(operation.cancellationCause?.message.contains("30.0 seconds") == true)
        #expect(operation.calls.events == ["main", "cancel timedOut"])
        #expect(clock.pendingCount == 0)
    }

    @Test(arguments: UpstreamEnd.allCases)
    func `no timer is left after the end`(end: UpstreamEnd) {
        let operation = HandDriven()
        operation.clock = clock
        operation.timeout = .seconds(1)
        operation.deadline = OperationInstant(offset: .seconds(2))
        end.perform(on: operation)
        #expect(clock.pendingCount == 0)
        clock.advance(by: .seconds(5))
        #expect(operation.calls.events.contains { $0.contains("timedOut") } == false)
    }

    @Test func `it counts from the body's beginning, not from the start`() throws {
        let upstream = HandDriven(), operation = HandDriven()
        operation.clock = clock
        operation.timeout = .seconds(1)
        operation.startDelay = .seconds(10)
        operation.start()
        clock.advance(by: .seconds(10))
        #expect(operation.state == .executing)
        clock.advance(by: .milliseconds(999))
        #expect(operation.state == .executing)
        clock.advance(by: .milliseconds(1))
        #expect(operation.cancellationCause?.code == .timedOut)
        let waiting = HandDriven()
        waiting.clock = clock
        waiting.timeout = .seconds(1)
        try waiting.depend(on: upstream, otherwise: .runAnyway)
        waiting.start()
        clock.advance(by: .seconds(100))
        #expect(waiting.outcome == nil)
    }

    @Test func `suspended time does not count`() {
        let operation = started(.seconds(10))
        clock.advance(by: .seconds(4))
        operation.suspend()
        #expect(clock.pendingCount == 0)
        clock.advance(by: .seconds(1_000))
        #expect(operation.state == .suspended)
        operation.resume()
        clock.advance(by: .seconds(5))
        #expect(operation.state == .executing)
        operation.suspend()
        clock.advance(by: .seconds(1_000))
        operation.start()
        clock.advance(by: .milliseconds(999))
        #expect(operation.state == .executing)
        clock.advance(by: .milliseconds(1))
        #expect(operation.cancellationCause?.code == .timedOut)
    }

    @Test func `an operation suspended in its body's first moment has its whole timeout left`() {
        let operation = HandDriven(hooks: .init(main: { $0.suspend() }))
        operation.clock = clock
        operation.timeout = .seconds(1)
        operation.start()
        clock.advance(by: .seconds(5))
        #expect(operation.state == .suspended)
        operation.resume()
        clock.advance(by: .milliseconds(999))
        #expect(operation.state == .executing)
        clock.advance(by: .milliseconds(1))
        #expect(operation.isCancelled)
    }

    @Test(arguments: [Duration.zero, .seconds(1)])
    func `the timer that is set last counts where it was put on hold while the first was set`(elapsed: Duration) {
        let operation = HandDriven(), clock = HookClock()
        operation.clock = clock
        operation.timeout = .seconds(10)
        clock.beforeNextSchedule { [unowned operation] in
            operation.suspend()
            clock.manual.advance(by: elapsed)
            operation.resume()
        }
        operation.start()
        #expect(clock.pendingCount == 1)
        clock.manual.advance(by: .milliseconds(9_999))
        #expect(operation.state == .executing)
        clock.manual.advance(by: .milliseconds(1))
        #expect(operation.cancellationCause?.code == .timedOut)
        #expect(clock.pendingCount == 0)
    }

    @Test func `no timer is left where it was put on hold while the timer was set`() {
        let operation = HandDriven(), clock = HookClock()
        operation.clock = clock
        operation.timeout = .seconds(10)
        clock.beforeNextSchedule { [unowned operation] in operation.suspend() }
        operation.start()
        #expect(clock.pendingCount == 0)
        clock.expectTenSecondsLeft(for: operation)
    }

    @Test(arguments: [Duration.zero, .nanoseconds(-1), .seconds(-5), .seconds(Int64.min)])
    func `a timeout that is not above zero leaves no time for the body`(timeout: Duration) {
        let operation = started(timeout)
        #expect(Look(operation) == .cancelled)
        #expect(operation.cancellationCause?.code == .timedOut)
        #expect(operation.calls.events == [])
        #expect(clock.pendingCount == 0)
    }

    @Test func `no timeout sets no timer`() {
        let operation = started(nil)
        #expect(clock.pendingCount == 0)
        clock.advance(to: .distantFuture)
        #expect(operation.state == .executing)
        operation.cancel()
    }

    @Test func `a timeout stops an operation that winds down, which ends by itself`() {
        let operation = HandDriven(windsDown: true)
        operation.clock = clock
        operation.timeout = .seconds(1)
        operation.start()
        clock.advance(by: .seconds(1))
        #expect(Look(operation) == .windingDown)
        operation.finish(withResult: 1)
        #expect(operation.cancellationCause?.code == .timedOut)
    }

    @Test func `a synchronous body is told and its waiters are, too`() async throws {
        let began = Gate(), stopped = Gate()
        let operation = SyncProbe { operation in
            began.open()
            stopped.wait()
            operation.finish(withResult: 1)
        }
        operation.clock = clock
        operation.timeout = .seconds(1)
        async let thread: Void = TestThread.run { operation.start() }
        await began.passage()
        clock.advance(by: .seconds(1))
        #expect(await operation.finalOutcome.cancellationCause?.code == .timedOut)
        #expect(operation.calls.events == ["main", "cancel timedOut"])
        stopped.open()
        try await thread
        #expect(Look(operation) == .cancelled)
    }

    @Test func `an early result sets no timer`() {
        let operation = HandDriven()
        operation.clock = clock
        operation.timeout = .seconds(1)
        operation.finish(withResult: 1)
        operation.start()
        #expect(clock.pendingCount == 0)
        #expect(operation.outcome == .success(1))
    }

    @Test func `a timer that fires after the outcome keeps no handler from beginning`() async {
        let queue = DispatchQueue(label: "callbacks"), clock = SlowClock(), events = EventRecorder<Int>()
        let operation = HandDriven()
        let synchronous = SyncProbe { operation in
            operation.finish(withResult: 2)
            clock.fireAll()
        }
        for operation in [operation, synchronous] as [TypedOperation<Int, Flaw>] {
            operation.clock = clock
            operation.timeout = .seconds(1)
            operation.callbackQueue = queue
            operation.successHandler = { events.record($0) }
        }
        // The result is converted before the operation has ended, on the thread that ends it.
        let mapped = operation.mapResult { result in
            clock.fireAll()
            return result
        }
        queue.suspend()
        operation.start()
        operation.finish(withResult: 1)
        synchronous.start()
        queue.resume()
        await queue.drain()
        #expect(events.events == [1, 2] && mapped.outcome == .success(1))
    }

    @Test func `a timeout that falls due together with the result leaves one outcome and no timer`() async throws {
        let rounds = Rounds.count(ci: 1_000, soak: 50_000)
        let wrong = try await TestThread.run { () -> Int in
            let team = ThreadTeam(count: 2)
            return (0..<rounds).count { _ in
                let clock = ManualClock(), operation = HandDriven()
                operation.clock = clock
                operation.timeout = .seconds(1)
                operation.start()
                team.run([{ operation.finish(withResult: 1) }, { clock.advance(by: .seconds(1)) }])
                let isKnown = operation.outcome == .success(1) || operation.cancellationCause?.code == .timedOut
                return !isKnown || clock.pendingCount != 0 || !operation.isFinished
            }
        }
        #expect(wrong == 0)
    }
}
