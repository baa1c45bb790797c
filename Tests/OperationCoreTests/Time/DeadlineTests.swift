// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct DeadlineTests {
    private let clock = ManualClock(start: OperationInstant(offset: .seconds(100)))

    private func second(_ second: Int) -> OperationInstant { OperationInstant(offset: .seconds(second)) }

    private func made(deadline: OperationInstant?, on other: (any OperationClock)? = nil) -> HandDriven {
        let operation = HandDriven()
        operation.clock = other ?? clock
        operation.deadline = deadline
        return operation
    }

    @Test func `an executing operation is canceled when its deadline passes`() {
        let operation = made(deadline: second(110))
        #expect(operation.deadline == second(110))
        operation.start()
        clock.advance(to: OperationInstant(offset: .milliseconds(109_999)))
        #expect(Look(operation) == .executing)
        clock.advance(to: second(110))
        #expect(Look(operation) == .cancelled)
        #expect(operation.cancellationCause?.code == .deadlinePassed)
        #expect(operation.calls.events == ["main", "cancel deadlinePassed"])
    }

    @Test func `a clock that is set after the deadline measures it`() {
        let other = ManualClock(start: second(0)), operation = made(deadline: second(110), on: other)
        operation.clock = clock
        other.advance(to: second(200))
        #expect(Look(operation) == .waiting)
        #expect(other.pendingCount == 0)
        clock.advance(to: second(110))
        #expect(operation.cancellationCause?.code == .deadlinePassed)
    }

    @Test func `a timer of the previous clock that fires while the clock is replaced has no effect`() {
        let old = SlowClock(), operation = made(deadline: second(110), on: old)
        operation.clock = clock
        old.fireAll()
        #expect(Look(operation) == .waiting)
        clock.advance(to: second(110))
        #expect(operation.cancellationCause?.code == .deadlinePassed)
    }

    @Test func `a timer of a previous deadline has no effect even if the new deadline is equal`() {
        let old = SlowClock(), operation = made(deadline: second(110), on: old)
        operation.deadline = nil
        operation.deadline = second(110)
        old.fireFirst()
        #expect(Look(operation) == .waiting)
        old.fireAll()
        #expect(operation.cancellationCause?.code == .deadlinePassed)
    }

    @Test func `an operation that was not started is canceled when its deadline passes`() {
        let operation = made(deadline: second(110))
        clock.advance(to: second(110))
        #expect(Look(operation) == .cancelledEarly)
        #expect(operation.cancellationCause?.code == .deadlinePassed)
        operation.start()
        #expect(Look(operation) == .cancelled)
        #expect(operation.calls.events == [])
    }

    @Test(arguments: [100, 99, 0, -5, Int.min / 2])
    func `an operation whose deadline has passed is canceled before its body`(deadline: Int) {
        let operation = made(deadline: second(deadline))
        operation.start()
        #expect(Look(operation) == .cancelled)
        #expect(operation.cancellationCause?.code == .deadlinePassed)
        #expect(operation.calls.events == [])
        #expect(clock.pendingCount == 0)
    }

    @Test func `a deadline also passes during dependencies, a start delay and a suspension`() throws {
        let upstream = HandDriven()
        let waiting = made(deadline: second(110)), delayed = made(deadline: second(110))
        let suspended = made(deadline: second(110))
        try waiting.depend(on: upstream, otherwise: .runAnyway)
        delayed.startDelay = .seconds(50)
        for operation in [waiting, delayed, suspended] { operation.start() }
        suspended.suspend()
        clock.advance(to: second(110))
        for operation in [waiting, delayed, suspended] {
            #expect(Look(operation) == .cancelled)
            #expect(operation.cancellationCause?.code == .deadlinePassed)
        }
        #expect(delayed.calls.events == [])
        #expect(clock.pendingCount == 0)
    }

    @Test func `no body begins after the deadline, even if the timer of the clock is late`() async throws {
        let upstream = HandDriven.started()
        let operation = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
        operation.clock = clock
        try operation.depend(on: upstream, otherwise: .runAnyway)
        operation.start()
        operation.deadline = clock.now
        upstream.finish(withResult: 1)
        await operation.ended()
        #expect(operation.cancellationCause?.code == .deadlinePassed && operation.calls.events == [])
    }

    @Test func `a deadline can be moved in both directions and removed`() {
        let operation = made(deadline: second(110))
        operation.start()
        operation.deadline = second(120)
        #expect(clock.pendingCount == 1)
        clock.advance(to: second(115))
        #expect(operation.state == .executing)
        operation.deadline = second(117)
        clock.advance(to: second(117))
        #expect(operation.isCancelled)
        let other = made(deadline: second(130))
        other.start()
        other.deadline = nil
        #expect(other.deadline == nil)
        #expect(clock.pendingCount == 0)
        clock.advance(to: .distantFuture)
        #expect(other.state == .executing)
    }

    @Test func `a past deadline set on an executing operation cancels it when the clock advances`() {
        let operation = made(deadline: nil)
        operation.start()
        operation.deadline = second(50)
        clock.advance(by: .zero)
        #expect(operation.cancellationCause?.code == .deadlinePassed)
    }

    @Test func `a deadline in the distant future sets no timer`() {
        let operation = made(deadline: .distantFuture)
        operation.start()
        #expect(clock.pendingCount == 0)
        #expect(operation.state == .executing)
    }

    @Test func `the earlier of a deadline and a timeout cancels the operation`() {
        let first = made(deadline: second(105)), second = made(deadline: second(120))
        first.timeout = .seconds(10)
        second.timeout = .seconds(10)
        first.start()
        second.start()
        clock.advance(by: .seconds(60))
        #expect(first.cancellationCause?.code == .deadlinePassed)
        #expect(second.cancellationCause?.code == .timedOut)
        #expect(clock.pendingCount == 0)
    }

    @Test func `an operation that ended, was canceled early or was freed leaves no timer`() {
        do {
            let ended = made(deadline: second(110)), cancelled = made(deadline: second(110))
            let kept = made(deadline: second(110))
            UpstreamEnd.succeeds.perform(on: ended)
            cancelled.cancel()
            kept.finish(withResult: 1)
            #expect(clock.pendingCount == 0)
            // A deadline that is set after the end has no effect.
            for operation in [ended, cancelled, kept] { operation.deadline = second(120) }
            #expect(clock.pendingCount == 0)
            #expect(kept.outcome == .success(1))
        }
        do {
            let neverStarted = made(deadline: second(110))
            #expect(neverStarted.state == .notStarted)
            #expect(clock.pendingCount == 1)
        }
        #expect(clock.pendingCount == 0)
    }

    @Test func `a deadline does not change a result that was set before the start`() {
        let operation = made(deadline: second(110))
        operation.finish(withResult: 1)
        clock.advance(to: second(200))
        operation.start()
        #expect(operation.outcome == .success(1))
    }
}
