// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

/// The longest possible durations: an infinite wait must wait and never trap.
@Suite(.timeLimit(.minutes(3)))
struct ExtremeTimeTests {
    static let endless: [Duration] = [
        .seconds(Int64.max), .seconds(Int64.max) + .seconds(Int64.max), .seconds(Int.max) * 15,
        .nanoseconds(Int64.max), .seconds(Int64.max) - .nanoseconds(1),
    ]

    @Test(arguments: endless)
    func `an endless timeout does not end the operation`(duration: Duration) {
        let clock = ManualClock(start: OperationInstant(offset: .seconds(1_000))), operation = HandDriven()
        operation.setTimeout(duration, on: clock)
        operation.start()
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
        if duration < .zero { await operation.end() }
        #expect(operation.isFinished == (duration < .zero))
        operation.cancel()
        #expect(operation.isFinished)
    }

    @Test(arguments: endless + endless.map { .zero - $0 })
    func `a timeout of any length has a message`(duration: Duration) {
        let clock = ManualClock(), operation = HandDriven()
        operation.setTimeout(duration, on: clock)
        operation.start()
        // Advances to the last possible instant.
        clock.advance(to: .distantFuture)
        #expect(operation.cancellationCause?.code == .timedOut)
        #expect(operation.cancellationCause?.message.isEmpty == false)
    }
}
