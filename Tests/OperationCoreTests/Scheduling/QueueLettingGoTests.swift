// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// User code in the `deinit` of captured objects, which runs when a thread releases an operation that ended.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(Rounds.minutes)))
struct QueueLettingGoTests {
    private let workers = ManualWorkers(areBodiesShort: true)
    private let order = EventRecorder<String>()

    /// The object that keeps the tracked object alive.
    enum Holder: CaseIterable {
        case closure
        case operation
    }

    /// Adds eight closures, one holder of an object that calls `say` when it is freed.
    private func add(to queue: QueueManager, _ holder: Holder, _ say: @escaping @Sendable () -> Void) throws {
        try addClosures(0..<8, to: queue)
        let word = LastWord(say)
        switch holder {
        case .closure: try queue.add { withExtendedLifetime(word) {} }
        case .operation:
            try queue.add(SyncProbe { operation in withExtendedLifetime(word) { operation.finish(withResult: 1) } })
        }
    }

    private func addClosures(_ range: Range<Int>, to queue: QueueManager) throws {
        for number in range { try queue.add { [order] in order.record("\(number)") } }
    }

    @Test(arguments: Holder.allCases)
    func `a deinit can cancel another operation of the queue, which is not lost`(_ holder: Holder) throws {
        let queue = workers.makeQueue("cancels", width: 1), never = HandDriven("never")
        let blocked = SyncProbe("blocked") { $0.finish(withResult: 1) }
        blocked.addDependency(never)
        try queue.add(blocked)
        try add(to: queue, holder) { blocked.cancel() }
        try addClosures(8..<16, to: queue)
        let drained = Gate()
        queue.engine.whenDrained(QueueWait { drained.open() })
        workers.runAll()
        #expect(Look(blocked) == .cancelled)
        #expect(queue.engine.operations.isEmpty && drained.isOpen)
        #expect(order.count == 16)
    }

    @Test(arguments: Holder.allCases)
    func `a deinit can run a dependency rule, and every operation ends exactly once`(_ holder: Holder) throws {
        let queue = workers.makeQueue("judges", width: 1)
        let failing = HandDriven("failing"), judged = HandDriven("judged")
        try judged.depend(on: failing, otherwise: .fail { _ in .second })
        judged.start()
        failing.start()
        try add(to: queue, holder) { failing.finish(withError: .first) }
        try addClosures(8..<16, to: queue)
        workers.runAll()
        #expect(judged.outcome == .failure(.second))
        #expect(queue.counts.finished == 17 && queue.engine.operations.isEmpty)
        // Each operation has its own slot.
        let next = (0..<4).map { HandDriven("\($0)") }
        queue.width = 4
        try queue.add(next)
        workers.runAll()
        #expect(next.allSatisfy { $0.state == .executing } && queue.counts.running == 4)
        for operation in next { operation.finish(withResult: 1) }
        workers.runAll()
        #expect(queue.counts.finished == 21)
    }

    @Test func `a deinit can wait for an operation that its thread has already taken`() async throws {
        let queue = QueueManager.suspended("taken", width: 1), next = ClosureOperation { 1 }
        do {
            let word = LastWord { next.waitUntilFinished() }
            try queue.add { withExtendedLifetime(word) {} }
        }
        try queue.add(next)
        await queue.resumeAndDrain()
        #expect(next.outcome == .success(1))
    }

    @Test func `a deinit can wait until the queue is empty`() async throws {
        let queue = QueueManager.suspended("all", width: 1), passed = Gate()
        do {
            let word = LastWord {
                if (try? queue.waitUntilAllFinished()) != nil { passed.open() }
            }
            try queue.add { withExtendedLifetime(word) {} }
        }
        try addClosures(0..<10, to: queue)
        await queue.resumeAndDrain()
        #expect(order.count == 10)
        await passed.passage()
    }

    @Test(arguments: Holder.allCases)
    func `a deinit can wait for an operation in the batch of its thread`(_ holder: Holder) async throws {
        let queue = workers.makeQueue("dealt", width: 1), next = ClosureOperation { 1 }, done = Gate(), began = Gate()
        try add(to: queue, holder) {
            began.open()
            next.waitUntilFinished()
        }
        try queue.add(next)
        try addClosures(8..<16, to: queue)
        Thread.detachNewThread { [workers] in
            while !began.isOpen { workers.step(0) }
            done.open()
        }
        await began.passage()
        _ = await eventually { [workers] in
            if workers.count > 1 { workers.step(1) }
            return done.isOpen
        }
        #expect(next.outcome == .success(1))
        // Otherwise, its thread would wait forever.
        if next.outcome == nil { next.cancel() }
        await done.passage()
        workers.runAll()
        #expect(order.count == 16 && queue.engine.operations.isEmpty)
    }

    @Test func `operations that become ready are reported before a deinit runs`() throws {
        let workers = ManualWorkers(), queue = workers.makeQueue("told", width: 2)
        let counts = EventRecorder<Int>(), states = EventRecorder<OperationState>()
        let after = (0..<2).map { HandDriven("after \($0)") }
        do {
            let word = LastWord {
                counts.record(queue.counts.ready)
                // Simulates a deinit that takes long.
                for _ in 0..<2 where workers.count > 1 { workers.step(1) }
                states.record(after[0].state)
            }
            let first = SyncProbe("first") { operation in
                withExtendedLifetime(word) { operation.finish(withResult: 1) }
            }
            let second = SyncProbe("second") { $0.finish(withResult: 1) }
            second.addDependency(first)
            for operation in after { operation.addDependency(second) }
            try queue.add([first, second])
            try queue.add(after)
        }
        while counts.count == 0, workers.count > 0 { workers.step(0) }
        #expect(counts.events == [2])
        #expect(states.events == [.executing])
        workers.runAll()
        for operation in after { operation.finish(withResult: 1) }
        workers.runAll()
        #expect(queue.engine.operations.isEmpty)
    }
}
