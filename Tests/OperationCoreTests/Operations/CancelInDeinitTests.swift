// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Cancels itself when it is freed.
private final class Abandoned: AsyncOperation<Int, Flaw>, @unchecked Sendable {
    let windsDown: Bool

    init(windsDown: Bool = false) {
        self.windsDown = windsDown
        super.init()
    }

    deinit { cancel(because: .requested("freed")) }

    override var windsDownAfterCancellation: Bool { windsDown }
    override func main() {}
}

@Suite("Canceling an operation in its own deinit", .timeLimit(.minutes(3)))
struct CancelInDeinitTests {
    enum Moment: String, CaseIterable, Sendable {
        case untouched, waitingForDependency, delayed, executing, suspended, windingDown, keptResult
    }

    /// Brings an operation to a moment of its lifecycle.
    private func bring(_ operation: Abandoned, to moment: Moment, upstream: HandDriven) {
        switch moment {
        case .untouched: break
        case .waitingForDependency:
            operation.addDependency(upstream)
            operation.start()
        case .delayed:
            operation.clock = ManualClock()
            operation.startDelay = .seconds(1)
            operation.start()
        case .executing, .windingDown: operation.start()
        case .suspended:
            operation.start()
            operation.suspend()
        case .keptResult: operation.finish(withResult: 1)
        }
    }

    private func listen(to operation: Abandoned, on queue: DispatchQueue, _ told: EventRecorder<String>) {
        operation.callbackQueue = queue
        operation.successHandler = { told.record("success \($0)") }
        operation.cancellationHandler = { told.record("handler: \($0.message)") }
        operation.observe { told.record("observer: \($0.cancellationCause?.message ?? "no cause")") }
    }

    @Test(arguments: Moment.allCases, [true, false])
    func `an operation that cancels itself in deinit calls its handlers and observers`(
        moment: Moment, isInRow: Bool
    ) async {
        let census = LiveObjects(), told = EventRecorder<String>(), queue = DispatchQueue(label: "handlers")
        let upstream = HandDriven()
        do {
            let operation = census.track(Abandoned(windsDown: moment == .windingDown))
            listen(to: operation, on: queue, told)
            bring(operation, to: moment, upstream: upstream)
            // The operation is freed directly, or when an operation that depends on it is freed.
            if isInRow { census.track(HandDriven()).addDependency(operation) }
        }
        #expect(census.count == 0)
        #expect(
            await told.events(after: queue) == (moment == .keptResult ? [] : ["handler: freed", "observer: freed"]))
    }

    @Test func `canceling in deinit does not call the completion block of an operation that was not started`() {
        let ran = EventRecorder<Int>()
        do {
            let operation = Abandoned()
            operation.completionBlock = { ran.record(1) }
        }
        #expect(ran.events == [])
    }

    @Test func `freeing a chain of 20,000 self-canceling operations does not overflow a small stack`() async throws {
        let told = EventRecorder<Int>(), queue = DispatchQueue(label: "handlers")
        try await TestThread.run(stackSize: 512 << 10) {
            var last = Abandoned()
            for number in 0..<20_000 {
                let next = Abandoned()
                next.callbackQueue = queue
                next.cancellationHandler = { _ in told.record(number) }
                next.addDependency(last)
                next.start()
                last = next
            }
        }
        await queue.drain()
        #expect(told.events.count == 20_000)
    }
}
