// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("The progress of a queue", .nothingStaysAlive, .timeLimit(.minutes(3)))
struct QueueProgressTests {
    @Test func `progress counts operations that end in any way, including earlier ones`() async throws {
        let queue = QueueManager("progress", width: 2)
        try queue.add {}
        await queue.drained()
        let progress = queue.progress
        #expect(progress.totalUnitCount == 1)
        #expect(progress.completedUnitCount == 1)
        #expect(queue.progress === progress)
        let running = HandDriven("running"), failing = HandDriven("failing"), waiting = HandDriven("waiting")
        waiting.addDependency(running)
        try queue.add([running, failing, waiting])
        _ = await running.calls.events(atLeast: 1)
        #expect(progress.totalUnitCount == 4)
        #expect(progress.completedUnitCount == 1)
        waiting.cancel()
        #expect(progress.completedUnitCount == 2)
        _ = await failing.calls.events(atLeast: 1)
        failing.finish(withError: .first)
        running.finish(withResult: 1)
        await queue.drained()
        try await TestThread.run { while progress.completedUnitCount < 4 { sched_yield() } }
        #expect(progress.isFinished)
    }

    @Test func `a change is published by the thread that makes it, also after several operations are added`() throws {
        for _ in 0..<100 {
            let queue = QueueManager.suspended("several")
            let progress = queue.progress
            let operations = (0..<4).map { _ in ClosureOperation {} }
            try queue.add(operations)
            #expect(progress.totalUnitCount == 4)
            operations[0].cancel()
            #expect(progress.completedUnitCount == 1)
            queue.cancelAll()
        }
    }

    @Test func `canceling the progress cancels operations that have not ended`() async throws {
        let queue = QueueManager("cancelled progress")
        let operation = HandDriven("running")
        try queue.add(operation)
        queue.progress.cancel()
        await queue.drained()
        #expect(operation.cancellationCause?.code == .requested)
    }

    @Test func `the counts of the progress never decrease while several threads add operations`() async throws {
        let queue = QueueManager("monotone", width: 4)
        let progress = queue.progress
        let isOver = Gate()
        let reader = Task.detached {
            var last: (Int64, Int64) = (0, 0)
            while !isOver.isOpen {
                let completed = progress.completedUnitCount, total = progress.totalUnitCount
                if completed < last.0 || total < last.1 || completed > total { return false }
                last = (completed, total)
                await Task.yield()
            }
            return true
        }
        try await TestThread.run {
            ThreadTeam(count: 3).run(
                (0..<3).map { _ in { for _ in 0..<500 { try? queue.add {} } } })
        }
        await queue.drained()
        try await TestThread.run { while progress.completedUnitCount < 1_500 { sched_yield() } }
        isOver.open()
        #expect(await reader.value)
        #expect(progress.totalUnitCount == 1_500)
    }

    @Test func `the progress of a queue does not become a child of the current progress`() throws {
        let workers = ManualWorkers(), queue = workers.makeQueue("alone"), current = Progress(totalUnitCount: 10)
        try queue.add {}
        current.becomeCurrent(withPendingUnitCount: 10)
        let progress = queue.progress
        current.resignCurrent()
        // No child was attached, so the pending unit count is completed.
        #expect(current.completedUnitCount == 10)
        #expect(progress.totalUnitCount == 1)
        workers.runAll()
    }

    @Test func `a thread publishes only once despite changes in between, and no change is lost`() async throws {
        let queue = QueueManager("flood"), count = EventRecorder<Bool>(), onceMore = Locked<[QueueProgressMeter]>([])
        try queue.add(HandDriven("running"))
        let meter = QueueProgressMeter {
            count.record(Thread.current.threadDictionary["publishes"] != nil)
            // A change happens during the publication.
            if count.count < 5 { for meter in onceMore.withLock({ $0 }) { #expect(!meter.requestPublication()) } }
            return queue.counts
        }
        onceMore.withLock { $0 = [meter] }
        try await TestThread.run {
            Thread.current.threadDictionary["publishes"] = true
            meter.publish()
        }
        let places = await count.events(atLeast: 5)
        #expect(places.count { $0 } == 1)
        onceMore.withLock { $0 = [] }
        queue.cancelAll()
        await queue.drained()
    }
}
