// Part of OperationKit, released under the MIT license.
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
        operation.start(timeout: timeout, on: clock)
        return operation
    }

    @Test func `an operation that exceeds its timeout is canceled and stopped`() {
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
    func `an operation leaves no timer after any kind of end`(end: UpstreamEnd) {
        let operation = HandDriven()
        operation.setTimeout(.seconds(1), on: clock)
        operation.deadline = OperationInstant(offset: .seconds(2))
        end.perform(on: operation)
        #expect(clock.pendingCount == 0)
        clock.advance(by: .seconds(5))
        #expect(operation.calls.events.contains { $0.contains("timedOut") } == false)
    }

    @Test func `the timeout starts with the body, not with the call of start`() throws {
        let upstream = HandDriven(), operation = HandDriven()
        operation.setTimeout(.seconds(1), on: clock)
        operation.startDelay = .seconds(10)
        operation.start()
        clock.advance(by: .seconds(10))
        #expect(operation.state == .executing)
        clock.expectTimeout(of: operation, in: .seconds(1))
        let waiting = HandDriven()
        waiting.clock = clock
        waiting.timeout = .seconds(1)
        try waiting.depend(on: upstream, otherwise: .runAnyway)
        waiting.start()
        clock.advance(by: .seconds(100))
        #expect(waiting.outcome == nil)
    }

    @Test func `the timeout is paused while the operation is suspended`() {
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
        clock.expectTimeout(of: operation, in: .seconds(1))
    }

    @Test func `an operation suspended at the beginning of its body keeps its whole timeout`() {
        let operation = HandDriven(hooks: .init(main: { $0.suspend() }))
        operation.start(timeout: .seconds(1), on: clock)
        clock.advance(by: .seconds(5))
        #expect(operation.state == .suspended)
        operation.resume()
        clock.expectTimeout(of: operation, in: .seconds(1))
    }

    @Test(arguments: [Duration.zero, .seconds(1)])
    func `a suspension while the first timer is set leaves only the last timer`(elapsed: Duration) {
        let operation = HandDriven(), clock = HookClock()
        operation.setTimeout(.seconds(10), on: clock)
        clock.beforeNextSchedule { [unowned operation] in
            operation.suspend()
            clock.manual.advance(by: elapsed)
            operation.resume()
        }
        operation.start()
        #expect(clock.pendingCount == 1)
        clock.manual.expectTimeout(of: operation, in: .seconds(10))
        #expect(clock.pendingCount == 0)
    }

    @Test func `a suspension while the timer is set leaves no timer`() {
        let operation = HandDriven(), clock = HookClock()
        operation.setTimeout(.seconds(10), on: clock)
        clock.beforeNextSchedule { [unowned operation] in operation.suspend() }
        operation.start()
        #expect(clock.pendingCount == 0)
        clock.expectTenSecondsLeft(for: operation)
    }

    @Test func `a timeout stops an operation that winds down, which ends when its body finishes`() {
        let operation = HandDriven(windsDown: true)
        operation.start(timeout: .seconds(1), on: clock)
        clock.advance(by: .seconds(1))
        #expect(Look(operation) == .windingDown)
        operation.finish(withResult: 1)
        #expect(operation.cancellationCause?.code == .timedOut)
    }

    @Test func `a timeout notifies a synchronous body and its waiters`() async throws {
        let began = Gate(), stopped = Gate()
        let operation = SyncProbe { operation in
            began.open()
            stopped.wait()
            operation.finish(withResult: 1)
        }
        operation.setTimeout(.seconds(1), on: clock)
        async let thread: Void = TestThread.run { operation.start() }
        await began.passage()
        clock.advance(by: .seconds(1))
        #expect(await operation.finalOutcome.cancellationCause?.code == .timedOut)
        #expect(operation.calls.events == ["main", "cancel timedOut"])
        stopped.open()
        try await thread
        #expect(Look(operation) == .cancelled)
    }

    @Test func `a result set before the start sets no timer`() {
        let operation = HandDriven()
        operation.setTimeout(.seconds(1), on: clock)
        operation.finish(withResult: 1)
        operation.start()
        #expect(clock.pendingCount == 0)
        #expect(operation.outcome == .success(1))
    }

    @Test func `a timer that fires after the outcome does not prevent handler calls`() async {
        let queue = DispatchQueue(label: "callbacks"), clock = SlowClock(), events = EventRecorder<Int>()
        let operation = HandDriven()
        let synchronous = SyncProbe { operation in
            operation.finish(withResult: 2)
            clock.fireAll()
        }
        for operation in [operation, synchronous] as [TypedOperation<Int, Flaw>] {
            operation.setTimeout(.seconds(1), on: clock)
            operation.callbackQueue = queue
            operation.successHandler = { events.record($0) }
        }
        // The result is converted before the operation has ended, on the thread that ends it.
        let mapped = operation.mapResult { result in
            clock.fireAll()
            return result
        }
        queue.suspend()
        operation.startAndFinish(withResult: 1)
        synchronous.start()
        queue.resume()
        await queue.drain()
        #expect(events.events == [1, 2] && mapped.outcome == .success(1))
    }

    @Test func `a timeout that expires together with the result leaves one outcome and no timer`() async throws {
        let rounds = Rounds.count(ci: 1_000, soak: 50_000)
        let wrong = try await TestThread.run { () -> Int in
            let team = ThreadTeam(count: 2)
            return (0..<rounds).count { _ in
                let clock = ManualClock(), operation = HandDriven()
                operation.start(timeout: .seconds(1), on: clock)
                team.run([{ operation.finish(withResult: 1) }, { clock.advance(by: .seconds(1)) }])
                let isKnown = operation.outcome == .success(1) || operation.cancellationCause?.code == .timedOut
                return !isKnown || clock.pendingCount != 0 || !operation.isFinished
            }
        }
        #expect(wrong == 0)
    }

    static let endless: [Duration] = [
        .seconds(Int64.max), .seconds(Int64.max) + .seconds(Int64.max), .seconds(Int.max) * 15,
        .nanoseconds(Int64.max), .seconds(Int64.max) - .nanoseconds(1),
    ]

    @Test(arguments: endless)
    func `an endless timeout does not end the operation`(duration: Duration) {
        let clock = ManualClock(start: OperationInstant(offset: .seconds(1_000))), operation = HandDriven()
        operation.start(timeout: duration, on: clock)
        clock.advance(by: .seconds(1_000_000_000))
        #expect(operation.state == .executing)
        operation.suspend()
        operation.resume()
        clock.advance(by: .seconds(1))
        #expect(operation.state == .executing)
        operation.finish(withResult: 1)
        #expect(clock.pendingCount == 0)
    }

    @Test(arguments: endless)
    func `an endless start delay waits and can be canceled`(duration: Duration) {
        let clock = ManualClock(start: OperationInstant(offset: .seconds(1_000))), operation = HandDriven()
        operation.clock = clock
        operation.startDelay = duration
        operation.deadline = clock.now.advanced(by: duration)
        operation.start()
        clock.advance(by: .seconds(1_000_000_000))
        #expect(operation.state == .notStarted)
        operation.cancel()
        #expect(operation.isFinished)
        #expect(clock.pendingCount == 0)
    }

    @Test(arguments: endless + endless.map { .zero - $0 })
    func `extreme timeouts and deadlines do not trap on the system clock`(duration: Duration) async {
        let operation = HandDriven()
        operation.timeout = duration
        operation.deadline = SystemClock.shared.now.advanced(by: duration)
        operation.start()
        // The deadline may pass on another thread.
        if duration < .zero { await operation.ended() }
        #expect(operation.isFinished == (duration < .zero))
        operation.cancel()
        #expect(operation.isFinished)
    }

    @Test(arguments: endless + endless.map { .zero - $0 })
    func `a timeout of any length has a message`(duration: Duration) {
        let clock = ManualClock(), operation = HandDriven()
        operation.start(timeout: duration, on: clock)
        // Advances to the last possible instant.
        clock.advance(to: .distantFuture)
        #expect(operation.cancellationCause?.code == .timedOut)
        #expect(operation.cancellationCause?.message.isEmpty == false)
    }
}
