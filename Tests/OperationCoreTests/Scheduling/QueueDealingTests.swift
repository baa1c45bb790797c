// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Short bodies: a thread takes a batch of several operations, without a visible difference.
@Suite(
    .nothingStaysAlive, .timeLimit(.minutes(3)),
    .disabled(if: isMapping, "A conversion takes back what its thread was dealt."))
struct QueueDealingTests {
    private let workers = ManualWorkers(areBodiesShort: true)
    private let order = EventRecorder<String>()

    private func made(_ name: String, _ priority: Operation.QueuePriority = .normal) -> SyncProbe {
        let operation = SyncProbe.recording(name, in: order)
        if priority != .normal { operation.queuePriority = priority }
        return operation
    }

    private func names(_ range: Range<Int>) -> [String] { range.map { "\($0)" } }

    /// A queue with `count` operations.
    ///
    /// A thread has started some of them and holds a batch of others.
    private func dealtQueue(_ count: Int, begun: Int) throws -> (QueueManager, [SyncProbe]) {
        let queue = workers.makeQueue("dealt", width: 1), operations = names(0..<count).map { made($0) }
        try queue.add(operations)
        while order.count < begun { workers.step() }
        #expect(queue.engine.assignedCount > 0)
        return (queue, operations)
    }

    @Test func `batched operations run in order`() throws {
        let (_, operations) = try dealtQueue(100, begun: 10)
        workers.runAll()
        #expect(order.events == names(0..<100))
        #expect(operations.allSatisfy { $0.outcome == .success(0) })
    }

    @Test func `a more urgent operation does not wait for batched operations`() throws {
        let (queue, _) = try dealtQueue(100, begun: 10)
        try queue.add(made("urgent", .high))
        try queue.add(priority: .veryHigh) { [order] in order.record("closure") }
        workers.runAll()
        #expect(order.events == names(0..<10) + ["closure", "urgent"] + names(10..<100))
    }

    @Test func `a batched operation can get a higher priority or a new dependency`() throws {
        let (queue, operations) = try dealtQueue(40, begun: 10)
        operations[12].queuePriority = .high
        let late = made("late")
        operations[10].addDependency(late)
        try queue.add(late)
        workers.runAll()
        #expect(order.events == names(0..<10) + ["12", "11"] + names(13..<40) + ["late", "10"])
    }

    @Test func `a batched operation can get a start delay`() throws {
        let (_, operations) = try dealtQueue(40, begun: 10)
        let clock = ManualClock()
        operations[12].clock = clock
        operations[12].startDelay = .seconds(10)
        operations[12].queuePriority = .high
        workers.runAll()
        #expect(order.events == names(0..<12) + names(13..<40))
        clock.advance(by: .seconds(10))
        workers.runAll()
        #expect(order.events.last == "12")
    }

    @Test func `batched operations do not start while the queue is suspended`() throws {
        let (queue, _) = try dealtQueue(40, begun: 10)
        queue.isSuspended = true
        workers.runAll()
        #expect(order.count == 10)
        queue.isSuspended = false
        workers.runAll()
        #expect(order.events == names(0..<40))
    }

    @Test func `canceled batched operations finish immediately`() throws {
        let (queue, operations) = try dealtQueue(40, begun: 10)
        operations[12].cancel()
        #expect(Look(operations[12]) == .cancelled)
        try queue.add { [order] in order.record("closure") }
        queue.cancelAll()
        #expect(operations[10...].allSatisfy { Look($0) == .cancelled })
        workers.runAll()
        #expect(order.count == 10)
        #expect(queue.engine.operations == [])
    }

    @Test func `counts, snapshot and explain are exact while operations are batched`() throws {
        let (queue, operations) = try dealtQueue(40, begun: 10)
        // The thread has not reported the last operation that ended.
        #expect(queue.counts.finished == 9 && queue.counts.running == 1 && queue.counts.ready == 30)
        #expect(queue.engine.assignedCount == 0)
        while order.count < 15 { workers.step() }
        let snapshot = queue.snapshot
        #expect(Set(snapshot.entries(.ready).compactMap(\.name)) == Set(names(15..<40)))
        #expect(snapshot.entries(.running).compactMap(\.name) == ["14"])
        while order.count < 20 { workers.step() }
        #expect(queue.explain(operations[19]).hasSuffix("(ended)."))
        #expect(queue.explain(operations[25]).contains("slots of the queue are occupied (width 1, held by 19)"))
        workers.runAll()
        #expect(queue.counts.finished == 40)
    }

    @Test func `recording a queue stops batching and records each remaining operation`() async throws {
        let (queue, _) = try dealtQueue(40, begun: 10)
        queue.recording = QueueRecording()
        #expect(queue.engine.assignedCount == 0)
        workers.runAll()
        // The last operation that ran was not reported.
        #expect(queue.record.runs.count == 31)
        #expect(queue.engine.assignedCount == 0)
    }

    @Test func `a failure of a batched operation is reported`() throws {
        let queue = workers.makeQueue("failing", width: 1)
        let operations = names(0..<20).map { name in
            SyncProbe(name) { operation in
                if name == "7" { operation.finish(withError: .first) } else { operation.finish(withResult: 0) }
            }
        }
        try queue.add(operations)
        workers.runAll()
        #expect(queue.failures.map(\.operation.name) == ["7"])
        #expect(queue.counts.finished == 19 && queue.counts.failed == 1)
    }

    private func addClosures(_ range: Range<Int>, to queue: QueueManager) throws {
        for name in names(range) { try queue.add { [order] in order.record(name) } }
    }

    private func place(of name: String) -> Int { order.events.firstIndex(of: name) ?? -1 }

    @Test func `a free slot is filled with an operation from the batch of another thread`() throws {
        let queue = workers.makeQueue("freed", width: 2), slow = HandDriven("slow")
        try addClosures(0..<12, to: queue)
        try queue.add(slow)
        while queue.engine.assignedCount == 0 || queue.engine.ticketCount > 1 { workers.step(0) }
        // The second thread takes the slow operation, which keeps its slot, and leaves.
        for _ in 0..<5 where workers.count > 1 { workers.step(1) }
        #expect(slow.state == .executing && workers.count == 1 && queue.engine.assignedCount > 0)
        slow.finish(withResult: 1)
        #expect(workers.count == 2)
        workers.runAll()
        #expect(order.count == 12)
    }

    @Test func `urgent plain operations and operations after a canceled barrier overtake a batch`() throws {
        let (queue, _) = try dealtQueue(40, begun: 10)
        let urgent = BlockOperation { [order] in order.record("urgent") }
        urgent.queuePriority = .veryHigh
        try queue.add(urgent)
        workers.step()
        workers.step()
        #expect((10...11).contains(place(of: "urgent")))
        let barrier = HandDriven("barrier")
        try queue.addBarrier(barrier)
        try queue.add(priority: .veryHigh) { [order] in order.record("behind") }
        while order.count < 20 { workers.step() }
        #expect(queue.engine.assignedCount > 0)
        barrier.cancel()
        workers.runAll()
        #expect(place(of: "behind") <= 21)
    }

    @Test func `ageing counts batched operations`() throws {
        let (queue, _) = try dealtQueue(60, begun: 10)
        queue.ageing = 1
        while order.count < 20 { workers.step() }
        #expect(queue.engine.assignedCount > 0)
        try queue.add(priority: .low) { [order] in order.record("low") }
        workers.runAll()
        #expect(place(of: "low") <= 22)
    }

    @Test func `batched operations are not stuck behind a body that blocks`() throws {
        let queue = workers.makeQueue("stuck", width: 2)
        try addClosures(0..<40, to: queue)
        while queue.engine.assignedCount < 2 || order.count < 6 { workers.step(0) }
        workers.step(0)
        // From now on, its body blocks, so it takes no step.
        for number in 40..<600 {
            try addClosures(number..<number + 1, to: queue)
            workers.step(1)
            workers.step(1)
        }
        let missing = names(0..<100).filter { !order.events.contains($0) }
        #expect(missing.count <= 1)
        workers.runAll()
        #expect(order.count == 600)
    }

    @Test func `a body that resumes after a wait runs before batched operations`() async throws {
        let queue = workers.makeQueue("goes on", width: 1), never = HandDriven("never")
        let waiting = SyncProbe { [order] operation in
            never.waitUntilFinished()
            order.record("goes on")
            operation.finish(withResult: 1)
        }
        try queue.add(waiting)
        try addClosures(0..<60, to: queue)
        workers.step(0)
        let done = Gate()
        Thread.detachNewThread { [workers] in
            workers.step(0)
            done.open()
        }
        while workers.count < 2 { await Task.yield() }
        while order.count < 10 { workers.step(1) }
        #expect(queue.engine.assignedCount > 0)
        never.startAndFinish(withResult: 1)
        while queue.engine.returningCount == 0 { await Task.yield() }
        for _ in 0..<10 where queue.engine.returningCount > 0 { workers.step(1) }
        await done.passage()
        #expect(place(of: "goes on") <= 11)
        workers.runAll()
    }

    @Test func `a finished batched operation is released before the next body`() throws {
        let queue = workers.makeQueue("let go", width: 1), gone = Gate()
        try addClosures(0..<8, to: queue)
        do {
            let witness = Witness(gone)
            try queue.add { withExtendedLifetime(witness) {} }
        }
        for _ in 0..<5 { try queue.add { [order] in order.record(gone.isOpen ? "gone" : "there") } }
        workers.runAll()
        #expect(order.events.suffix(5) == ["gone", "gone", "gone", "gone", "gone"])
    }

    @Test func `another thread runs the batch of a thread whose body blocks`() async throws {
        let queue = QueueManager.suspended("stolen", width: 2), gate = Gate(), others = Gate()
        let count = Locked(0)
        for number in 0..<2_000 {
            try queue.add {
                if number == 1_000 { gate.wait() }
                if count.withLock({
                    $0 += 1; return $0
                }) == 1_999 {
                    others.open()
                }
            }
        }
        queue.isSuspended = false
        // All but the blocking body have run.
        await others.passage()
        gate.open()
        await queue.drained()
        #expect(count.withLock { $0 } == 2_000)
    }

    @Test func `a body that waits returns the batch of its thread to the queue`() async throws {
        let queue = QueueManager.suspended("waiting", width: 1)
        let last = ClosureOperation { 1 }
        let operations = (0..<2_000).map { number in
            SyncProbe { operation in
                if number == 1_000 { last.waitUntilFinished() }
                operation.finish(withResult: number)
            }
        }
        try queue.add(operations)
        try queue.add(last)
        await queue.resumeAndDrain()
        #expect(operations.enumerated().allSatisfy { $1.outcome == .success($0) })
    }
}
