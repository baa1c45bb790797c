// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Very many operations on a small stack, and many threads at the same time.
@Suite(.serialized, .timeLimit(.minutes(Rounds.minutes)))
struct QueueScaleTests {
    private static let smallStack = 512 << 10

    @Test func `a long chain is built, run, canceled halfway and freed without recursion`() async throws {
        let length = Rounds.count(ci: 20_000, soak: 1_000_000)
        let start = ContinuousClock.now
        let (ran, cancelled) = try await TestThread.run(stackSize: Self.smallStack) {
            let queue = QueueManager("chain", width: 2), count = Locked(0)
            let operations = (0..<length).map { number in
                SyncProbe { operation in
                    count.withLock { $0 += 1 }
                    if number == length / 2 { operation.cancel() }
                    operation.finish(withResult: 0)
                }
            }
            try queue.addChain(operations)
            try queue.waitUntilAllFinished()
            return (count.withLock { $0 }, operations.count { $0.isCancelled })
        }
        #expect(ran == length / 2 + 1)
        #expect(cancelled == length - length / 2)
        print("soak: queue, chain of \(length), canceled halfway: \(start.duration(to: .now))")
    }

    @Test func `canceling the root of a large tree cancels and frees all waiting operations`() async throws {
        let count = Rounds.count(ci: 20_000, soak: 1_000_000)
        let start = ContinuousClock.now
        let ended = try await TestThread.run(stackSize: Self.smallStack) {
            let queue = QueueManager("storm"), root = HandDriven()
            let operations = (0..<count).map { _ in HandDriven() }
            for (number, operation) in operations.enumerated() {
                try operation.depend(on: number == 0 ? root : operations[(number - 1) / 2], otherwise: .cancel)
            }
            try queue.add(operations)
            root.start()
            root.cancel()
            try queue.waitUntilAllFinished()
            return operations.count { $0.isFinished && $0.isCancelled }
        }
        #expect(ended == count)
        print("soak: queue, tree of \(count) canceled from its root: \(start.duration(to: .now))")
    }

    @Test func `every operation ends while eight threads add, cancel, finish and wait`() async throws {
        let rounds = Rounds.count(ci: 300, soak: 20_000)
        try await TestThread.run {
            let team = ThreadTeam(count: 8), queue = QueueManager("race", width: 3), other = QueueManager("beside")
            for round in 0..<rounds {
                let operations = (0..<16).map { _ in HandDriven(hooks: .init(main: { $0.finish(withResult: 1) })) }
                for (number, operation) in operations.enumerated() where number > 0 && number % 3 == 0 {
                    try operation.depend(on: operations[number - 1], otherwise: .runAnyway)
                }
                team.run(
                    (0..<8).map { member in
                        {
                            let target = member.isMultiple(of: 2) ? queue : other
                            try? target.add(operations[member * 2])
                            try? target.add(operations[member * 2 + 1])
                            operations[(member * 5 + round) % 16].cancel()
                            operations[(member * 3) % 16].queuePriority = .high
                            try? queue.add(operations[(member + 1) * 2 % 16])
                            try? target.add {}
                            if member == 3 { queue.isSuspended.toggle() }
                        }
                    })
                queue.isSuspended = false
                try queue.waitUntilAllFinished()
                try other.waitUntilAllFinished()
                guard operations.allSatisfy(\.isFinished)
                else { return unmet("round \(round): \(operations.map(\.stateDescription))") }
            }
        }
    }

    @Test func `a burst of operations leaves no slots behind`() async throws {
        let queue = QueueManager.suspended("burst", width: 2)
        for _ in 0..<20_000 { try queue.add {} }
        #expect(queue.engine.slotCount == 20_000)
        await queue.resumeAndDrain()
        #expect(queue.engine.slotCount == 0)
    }

    @Test func `a burst of operations leaves no slots behind in a queue that never becomes empty`() async throws {
        let queue = QueueManager("burst", width: 2), staying = HandDriven("staying")
        try queue.add(staying)
        queue.isSuspended = true
        for _ in 0..<20_000 { try queue.add {} }
        queue.isSuspended = false
        for _ in 0..<40_000 where queue.engine.slotCount > 2_048 {
            let small = ClosureOperation {}
            try queue.add(small)
            await small.ended()
        }
        #expect(queue.engine.slotCount <= 2_048)
        staying.finish(withResult: 1)
        await queue.drained()
    }

    /// The overlapping operations use two slots alternately.
    ///
    /// The shift changes which of the two slots is occupied when the table checks for free slots.
    @Test(arguments: [0, 1])
    func `a burst of operations leaves no slots behind even if later operations overlap`(shift: Int) throws {
        let workers = ManualWorkers(), queue = workers.makeQueue("overlapping")
        var present = HandDriven("the last slot")
        queue.isSuspended = true
        for _ in 0..<60 { try queue.add {} }
        try queue.add(present)
        queue.isSuspended = false
        workers.runAll()
        #expect(queue.engine.slotCount == 61)
        for _ in 0..<shift { try queue.add {} }
        // Each operation begins before the previous one ends, so an operation is always present.
        for _ in 0..<200 {
            let next = HandDriven()
            try queue.add(next)
            workers.runAll()
            present.finish(withResult: 1)
            workers.runAll()
            present = next
        }
        #expect(queue.engine.slotCount <= 4)
        present.finish(withResult: 1)
        workers.runAll()
    }

    /// The operations after the barriers request their admission at each possible depth of the stack.
    @Test(arguments: [20_000] + (16..<34))
    func `many barriers that a throttle drops neither overflow the stack nor change an order`(count: Int) async throws {
        let queue = QueueManager("barriers"), first = HandDriven("first")
        let throttle = OperationThrottle(clock: ManualClock())
        func rule(_ key: String) -> ThrottleRule { .init(key: key, interval: .seconds(60), early: .drop, in: throttle) }
        first.throttle = rule("sync")
        try queue.add(first)
        let barriers = (0..<count).map { _ in ClosureOperation {} }
        for barrier in barriers {
            barrier.throttle = rule("sync")
            try queue.addBarrier(barrier)
        }
        let later = (0..<32).map { _ in ClosureOperation {} }
        for operation in later { operation.throttle = rule("later") }
        try queue.add(later)
        await first.finishOnceBegun(withResult: 1)
        await queue.drained()
        #expect(barriers.allSatisfy { $0.cancellationCause?.code == .throttled })
        #expect(later.map(\.isCancelled) == (0..<32).map { $0 > 0 })
    }

    @Test func `cancelAll works while it shortens the table of entries`() throws {
        let workers = ManualWorkers(), queue = workers.makeQueue("short", width: 1), urgent = Locked(0)
        queue.isSuspended = true
        queue.ageing = nil
        for _ in 0..<40 { try queue.add {} }
        for _ in 0..<20 { try queue.add(priority: .high) { urgent.withLock { $0 += 1 } } }
        queue.isSuspended = false
        // The end of the table is then free, and almost nothing else is.
        while queue.counts.finished < 20 { workers.step() }
        #expect(urgent.withLock { $0 } == 20 && queue.engine.slotCount == 60)
        queue.cancelAll()
        workers.runAll()
        #expect(queue.engine.slotCount == 0 && queue.counts.cancelled + queue.counts.finished == 60)
    }

    @Test func `a remaining operation at the end of the table keeps the slots before it`() throws {
        let workers = ManualWorkers(), queue = workers.makeQueue("staying", width: 2), staying = HandDriven("staying")
        queue.isSuspended = true
        for _ in 0..<60 { try queue.add {} }
        try queue.add(staying)
        staying.queuePriority = .veryHigh
        queue.isSuspended = false
        workers.runAll()
        #expect(queue.snapshot.entries.map(\.name) == ["staying"])
        try queue.add {}
        queue.cancelAll()
        workers.runAll()
        staying.finish(withResult: 1)
        #expect(queue.engine.operations.isEmpty)
    }

    @Test func `a body that returns after its slot was removed does not disturb the queue`() async throws {
        let queue = QueueManager.suspended("gone", width: 2), other = HandDriven("other"), isOver = Gate()
        for _ in 0..<3_000 { try queue.add {} }
        let early = HandDriven(
            "early",
            hooks: .init(main: { operation in
                operation.finish(withResult: 1)
                other.waitUntilFinished()
                isOver.open()
            }))
        try queue.add(early)
        await queue.resumeAndDrain()
        #expect(queue.engine.slotCount == 0)
        other.startAndFinish(withResult: 1)
        await isOver.passage()
        let runs = Locked(0)
        for _ in 0..<3_000 { try queue.add { runs.withLock { $0 += 1 } } }
        await queue.drained()
        #expect(runs.withLock { $0 } == 3_000)
    }
}
