// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.nothingStaysAlive, .timeLimit(.minutes(3)))
struct QueueManagerTests {
    @Test(arguments: [1, 2, 3, 8, nil])
    func `every operation runs once and the width is never exceeded`(width: Int?) async throws {
        let running = Tally(), queue = QueueManager("flat", width: width)
        let operations = (0..<2_000).map { number in
            SyncProbe { operation in
                running.during {}
                operation.finish(withResult: number)
            }
        }
        for operation in operations { try queue.add(operation) }
        await queue.drained()
        #expect(running.runs == 2_000)
        #expect(running.peak <= width ?? .max)
        for (number, operation) in operations.enumerated() where operation.outcome != .success(number) {
            Issue.record("\(number): \(String(describing: operation.outcome))")
        }
    }

    @Test func `closures and operations run in order on a queue of width 1`() async throws {
        let queue = QueueManager.suspended("closures", width: 1), order = EventRecorder<Int>()
        for number in 0..<100 {
            if number.isMultiple(of: 3) {
                try queue.add(
                    SyncProbe { operation in
                        order.record(number)
                        operation.finish(withResult: 0)
                    })
            } else {
                try queue.add { order.record(number) }
            }
        }
        #expect(order.count == 0)
        await queue.resumeAndDrain()
        #expect(order.events == Array(0..<100))
    }

    @Test func `a dependency added while the operation waits for its turn is respected`() async throws {
        let workers = ManualWorkers(), queue = workers.makeQueue(width: 1)
        let upstream = HandDriven(), operation = HandDriven()
        try queue.add(operation)
        workers.step()  // A thread has taken the operation but not started it.
        try operation.depend(on: upstream, otherwise: .cancel)
        workers.runAll()
        #expect(Look(operation) == .blocked)
        try queue.add(upstream)
        workers.runAll()
        #expect(upstream.state == .executing)
        upstream.finish(withResult: 1)
        workers.runAll()
        #expect(operation.state == .executing)
        operation.finish(withResult: 1)
        await queue.drained()
    }

    @Test func `removing a dependency lets the operation start`() async throws {
        let queue = QueueManager(), upstream = HandDriven(), operation = HandDriven()
        try operation.depend(on: upstream, otherwise: .cancel)
        try queue.add(operation)
        operation.removeDependency(upstream)
        await operation.finishOnceBegun(withResult: 1)
        await queue.drained()
    }

    @Test func `a waiting operation finishes immediately when canceled, even in a suspended queue`() async throws {
        let queue = QueueManager("cancelled", width: 1), busy = HandDriven()
        try await queue.addAndBegin(busy)
        let waiting = HandDriven(), blocked = HandDriven()
        try blocked.depend(on: HandDriven(), otherwise: .cancel)
        try queue.add([waiting, blocked])
        queue.isSuspended = true
        waiting.cancel()
        blocked.cancel()
        #expect(Look(waiting) == .cancelled)
        #expect(Look(blocked) == .cancelled)
        #expect(waiting.calls.events == [])
        busy.finish(withResult: 1)
        await queue.drained()
    }

    @Test func `an operation canceled before it was added ends when it is added`() throws {
        let queue = QueueManager.suspended(), operation = HandDriven()
        operation.cancel()
        #expect(Look(operation) == .cancelledEarly)
        try queue.add(operation)
        #expect(Look(operation) == .cancelled)
    }

    @Test func `cancelAll ends waiting operations and closures and cancels executing ones`() async throws {
        let queue = QueueManager("all", width: 1), running = HandDriven(), waiting = HandDriven(), ran = Gate()
        let block = BlockOperation { ran.open() }
        try queue.add([running, waiting])
        try queue.add(block)
        try queue.add { ran.open() }
        _ = await running.calls.events(atLeast: 1)
        queue.cancelAll(because: .requested("enough"))
        await queue.drained()
        #expect(running.cancellationCause?.message == "enough")
        #expect(waiting.cancellationCause?.message == "enough")
        #expect(block.isFinished)
        #expect(!ran.isOpen)
    }

    @Test func `a start delay takes no slot`() async throws {
        let clock = ManualClock(), queue = QueueManager("delay", width: 1)
        let late = HandDriven(), prompt = HandDriven()
        late.clock = clock
        late.startDelay = .seconds(10)
        try queue.add([late, prompt])
        await prompt.finishOnceBegun(withResult: 1)
        clock.advance(by: .seconds(9))
        #expect(late.state == .notStarted)
        clock.advance(by: .seconds(1))
        await late.finishOnceBegun(withResult: 1)
        await queue.drained()
    }

    @Test func `a start delay that is set while the operation waits for a slot counts`() throws {
        let workers = ManualWorkers(), clock = ManualClock()
        let queue = workers.makeQueue(), operation = HandDriven()
        operation.clock = clock
        queue.isSuspended = true
        try queue.add(operation)
        operation.startDelay = .seconds(10)
        queue.isSuspended = false
        workers.runAll()
        #expect(operation.state == .notStarted)
        clock.advance(by: .seconds(10))
        workers.runAll()
        #expect(operation.state == .executing)
        operation.cancel()
        workers.runAll()
    }

    @Test func `canceling during the start delay ends the operation immediately and removes its timer`() throws {
        let clock = ManualClock(), queue = QueueManager(), operation = HandDriven()
        operation.clock = clock
        operation.startDelay = .seconds(10)
        try queue.add(operation)
        #expect(clock.pendingCount == 1)
        operation.cancel()
        #expect(Look(operation) == .cancelled)
        #expect(clock.pendingCount == 0)
    }

    @Test func `a released queue runs its operations, and a released suspended queue cancels them`() async throws {
        let census = LiveObjects()
        let kept = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) })), dropped = HandDriven()
        do {
            let queue = census.track(QueueManager("kept"))
            census.track(queue.engine)
            try queue.add(kept)
            let suspended = census.track(QueueManager("suspended"))
            census.track(suspended.engine)
            suspended.isSuspended = true
            try suspended.add(dropped)
        }
        await kept.ended()
        await dropped.ended()
        #expect(dropped.cancellationCause?.code == .shutDown)
        #expect(try await TestThread.run { census.countAtRest() } == 0)
    }

    @Test func `a queue is defined once and found by its name`() throws {
        let name = "names: images"
        let queue = try QueueManager.define(name, width: 4)
        #expect(try QueueManager.named(name) === queue)
        #expect(try QueueManager.named("names: images") === queue)
        #expect(queue.width == 4)
        #expect(queue.name == "names: images")
        #expect(QueueManager.definedNames.contains(name))
        #expect { try QueueManager.define(name) } throws: { ($0 as? OperationSetupError)?.code == .name }
        #expect(QueueManager.undefine(name) === queue)
        #expect(QueueManager.undefine(name) == nil)
    }

    @Test func `an unknown queue name throws an error that lists the defined names`() throws {
        try QueueManager.define("names: known")
        defer { QueueManager.undefine("names: known") }
        #expect { try QueueManager.named("names: unknown") } throws: { error in
            guard let error = error as? OperationSetupError else { return false }
            return error.code == .name && error.message.contains("names: unknown")
                && error.message.contains("names: known")
        }
    }
}
