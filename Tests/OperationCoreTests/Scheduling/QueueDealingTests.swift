// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Bodies that are short: a thread is given several operations at once, and nobody can tell.
@Suite(.timeLimit(.minutes(1)))
struct QueueDealingTests {
    private let workers = ManualWorkers(areBodiesShort: true)
    private let order = EventRecorder<String>()

    private func made(_ name: String, _ priority: Operation.QueuePriority = .normal) -> SyncProbe {
        let operation = SyncProbe(name) { [order] operation in
            order.record(name)
            operation.finish(withResult: 0)
        }
        if priority != .normal { operation.queuePriority = priority }
        return operation
    }

    private func names(_ range: Range<Int>) -> [String] { range.map { "\($0)" } }

    /// A queue with so many operations, of which a thread has begun some and holds others.
    private func dealtQueue(_ count: Int, begun: Int) throws -> (QueueManager, [SyncProbe]) {
        let queue = workers.makeQueue("dealt", width: 1), operations = names(0..<count).map { made($0) }
        try queue.add(operations)
        while order.count < begun { workers.step() }
        #expect(queue.engine.dealtCount > 0)
        return (queue, operations)
    }

    @Test func `they run in their order`() throws {
        let (_, operations) = try dealtQueue(100, begun: 10)
        workers.runAll()
        #expect(order.events == names(0..<100))
        #expect(operations.allSatisfy { $0.outcome == .success(0) })
    }

    @Test func `a more urgent one does not wait for them`() throws {
        let (queue, _) = try dealtQueue(100, begun: 10)
        try queue.add(made("urgent", .high))
        try queue.add(priority: .veryHigh) { [order] in order.record("closure") }
        workers.runAll()
        #expect(order.events == names(0..<10) + ["closure", "urgent"] + names(10..<100))
    }

    @Test func `one of them may be made more urgent, or wait for another`() throws {
        let (queue, operations) = try dealtQueue(40, begun: 10)
        operations[12].queuePriority = .high
        let late = made("late")
        operations[10].addDependency(late)
        try queue.add(late)
        workers.runAll()
        #expect(order.events == names(0..<10) + ["12", "11"] + names(13..<40) + ["late", "10"])
    }

    @Test func `nothing of them begins while the queue is suspended`() throws {
        let (queue, _) = try dealtQueue(40, begun: 10)
        queue.isSuspended = true
        workers.runAll()
        #expect(order.count == 10)
        queue.isSuspended = false
        workers.runAll()
        #expect(order.events == names(0..<40))
    }

    @Test func `cancelled, they end at once`() throws {
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

    @Test func `what is asked of the queue is exact`() throws {
        let (queue, operations) = try dealtQueue(40, begun: 10)
        // The thread has not told of the last one that ended.
        #expect(queue.counts.finished == 9 && queue.counts.running == 1 && queue.counts.ready == 30)
        #expect(queue.engine.dealtCount == 0)
        while order.count < 15 { workers.step() }
        let snapshot = queue.snapshot
        #expect(Set(snapshot.entries(.ready).compactMap(\.name)) == Set(names(15..<40)))
        #expect(snapshot.entries(.running).compactMap(\.name) == ["14"])
        while order.count < 20 { workers.step() }
        #expect(queue.explain(operations[19]).standing == .ended(.success))
        #expect(queue.explain(operations[25]).reasons.description.contains("places are taken, by 19"))
        workers.runAll()
        #expect(queue.counts.finished == 40)
    }

    @Test func `who follows the queue sees each step`() async throws {
        let (queue, _) = try dealtQueue(40, begun: 10)
        queue.recording = QueueRecording()
        #expect(queue.engine.dealtCount == 0)
        workers.runAll()
        // The last one that ran has not been told of.
        #expect(queue.record.runs.count == 31)
        #expect(queue.engine.dealtCount == 0)
    }

    @Test func `a failure among them is told at once`() throws {
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

    @Test func `another thread takes over what a body that blocks was to be followed by`() async throws {
        let queue = QueueManager("stolen", width: 2), gate = Gate(), others = Gate()
        let count = Locked(0)
        queue.isSuspended = true
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
        // All but the one that blocks.
        await others.passage()
        gate.open()
        await queue.drained()
        #expect(count.withLock { $0 } == 2_000)
    }

    @Test func `a body that waits leaves the others of its thread to the queue`() async throws {
        let queue = QueueManager("waiting", width: 1)
        let last = ClosureOperation { 1 }
        queue.isSuspended = true
        let operations = (0..<2_000).map { number in
            SyncProbe { operation in
                if number == 1_000 { last.waitUntilFinished() }
                operation.finish(withResult: number)
            }
        }
        try queue.add(operations)
        try queue.add(last)
        queue.isSuspended = false
        await queue.drained()
        #expect(operations.enumerated().allSatisfy { $1.outcome == .success($0) })
    }
}
