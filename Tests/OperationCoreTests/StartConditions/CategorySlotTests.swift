// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// A queued operation holds its categories only while it has a slot, so that it keeps nothing that it cannot use.
@Suite("Categories and slots", .timeLimit(.minutes(3)))
struct CategorySlotTests {
    private let category = OperationCategory("shared")

    private func driven(_ name: String) -> HandDriven {
        let operation = HandDriven(name)
        operation.categories = [category]
        return operation
    }

    private func closure(_ result: Int) -> ClosureOperation<Int, any Error> {
        let operation = ClosureOperation<Int, any Error> { result }
        operation.categories = [category]
        return operation
    }

    /// Fills the only slot of a queue.
    private func busy(_ queue: QueueManager) async throws -> HandDriven {
        let operation = HandDriven("busy")
        try await queue.addAndBegin(operation)
        return operation
    }

    @Test func `a body and an operation waiting for its slot do not deadlock over a category`() async throws {
        let narrow = QueueManager("narrow", width: 1), other = QueueManager("other")
        let awaited = closure(1), behind = closure(2)
        let hasBegun = Gate(), mayContinue = Gate()
        let body = TaskOperation<Int, any Error> {
            hasBegun.open()
            await mayContinue.passage()
            try other.add(awaited)
            return try await awaited.value
        }
        try narrow.add(body)
        await hasBegun.passage()
        try narrow.add(behind)
        #expect(await eventually { category.waiters == [behind] })
        #expect(category.holders.isEmpty)
        mayContinue.open()
        #expect(try await body.value == 1)
        #expect(try await behind.value == 2)
    }

    @Test("An operation in a full or suspended queue does not block a category for others", arguments: [true, false])
    func full(isSuspended: Bool) async throws {
        let queue = QueueManager("full", width: 1)
        let filler = try await busy(queue)
        let waiting = driven("waiting"), stranger = driven("stranger")
        try queue.add(waiting)
        #expect(await eventually { category.waiters == [waiting] })
        queue.isSuspended = isSuspended
        stranger.start()
        #expect(stranger.calls.events == ["main"] && category.waiters == [waiting])
        filler.finish(withResult: 1)
        queue.isSuspended = false
        // The waiting operation had a slot and gave it up, so another operation gets it.
        let next = try await busy(queue)
        #expect(waiting.calls.events == [])
        let reason = "category shared has no free slot (held by stranger)"
        #expect(await eventually { queue.explain(waiting).contains(reason) })
        next.finish(withResult: 1)
        stranger.finish(withResult: 1)
        #expect(await waiting.calls.events(atLeast: 1) == ["main"])
        #expect(category.holders == [waiting])
        waiting.finish(withResult: 1)
        await queue.drained()
        #expect(await eventually { category.waitingCount == 0 })
    }

    @Test(arguments: StartingWay.allCases)
    func `an operation does not hold its category during its start delay`(way: StartingWay) async throws {
        let (clock, starter) = (ManualClock(), Starter(way))
        let delayed = driven("delayed"), stranger = driven("stranger")
        delayed.clock = clock
        delayed.startDelay = .seconds(3)
        try starter.start(delayed)
        #expect(await eventually { clock.pendingCount == 1 })
        stranger.start()
        #expect(stranger.calls.events == ["main"])
        clock.advance(by: .seconds(3))
        #expect(await eventually { category.waiters == [delayed] })
        #expect(delayed.calls.events == [])
        stranger.finish(withResult: 1)
        #expect(await delayed.calls.events(atLeast: 1) == ["main"])
        delayed.finish(withResult: 1)
    }

    @Test func `a category that becomes free while a queue is suspended goes to operations outside`() async throws {
        let queue = QueueManager("suspended")
        let holder = driven("holder"), waiting = driven("waiting"), stranger = driven("stranger")
        holder.start()
        try queue.add(waiting)
        queue.isSuspended = true
        holder.finish(withResult: 1)
        #expect(category.holders.isEmpty && waiting.calls.events == [])
        stranger.start()
        #expect(stranger.calls.events == ["main"])
        queue.isSuspended = false
        #expect(await eventually { queue.counts.held == 1 && queue.counts.running == 0 })
        #expect(waiting.calls.events == [])
        stranger.finish(withResult: 1)
        #expect(await waiting.calls.events(atLeast: 1) == ["main"])
        waiting.finish(withResult: 1)
    }

    @Test func `an operation refused its category with a slot can be canceled without a started event`() async throws {
        let queue = QueueManager("refusing", width: 1)
        let updates = queue.events(keeping: 1_024).makeAsyncIterator()
        let filler = try await busy(queue)
        let waiting = driven("waiting"), stranger = driven("stranger")
        try queue.add(waiting)
        stranger.start()
        filler.finish(withResult: 1)
        #expect(await eventually { queue.counts.held == 1 && queue.counts.running == 0 })
        await waiting.cancelAndEnd()
        // The refused thread may still be about to leave the line.
        #expect(await eventually { category.waitingCount == 0 && category.holders == [stranger] })
        stranger.finish(withResult: 1)
        var lines: [String] = []
        while let update = await updates.next() {
            guard let event = update.event else { continue }
            lines.append(event.description)
            if case .ended(let entry, _) = event.change, entry.name == "waiting" { break }
        }
        #expect(lines.contains { $0.hasSuffix("held waiting") } && !lines.contains { $0.contains("started waiting") })
    }

    @Test func `an operation is not starved if others take its category whenever it has a slot`() async throws {
        let narrow = QueueManager("starving", width: 1), other = QueueManager("eager", width: 2)
        let isOver = Locked(false)
        // Each body adds the next operation before it ends, so that the slot and the category always have a waiter.
        @Sendable func fill(_ queue: QueueManager, _ categories: [OperationCategory]) {
            let operation = ClosureOperation<Void, any Error> {
                if !isOver.withLock({ $0 }) { fill(queue, categories) }
            }
            operation.categories = categories
            try? queue.add(operation)
        }
        fill(narrow, [])
        fill(other, [category])
        fill(other, [category])
        for number in 0..<20 {
            let operation = closure(number)
            try narrow.add(operation)
            #expect(try await operation.value == number)
        }
        isOver.withLock { $0 = true }
        await narrow.drained()
        await other.drained()
        #expect(await eventually { category.holders.isEmpty && category.waitingCount == 0 })
    }

    @Test func `an operation refused its category keeps its turn in the queue`() throws {
        let workers = ManualWorkers()
        let queue = workers.makeQueue("long", width: 1)
        let began = Locked<[Int]>([])
        let waiting = ClosureOperation<Void, any Error> { began.withLock { $0.append(0) } }
        waiting.categories = [category]
        try queue.add(waiting)
        for number in 1...20 {
            try queue.add(ClosureOperation<Void, any Error> { began.withLock { $0.append(number) } })
        }
        let stranger = driven("stranger")
        stranger.start()
        // The thread takes the operation and is refused the category.
        workers.step()
        workers.step()
        #expect(queue.counts.held == 1 && began.withLock { $0.isEmpty })
        stranger.finish(withResult: 1)
        workers.runAll()
        #expect(began.withLock { $0 } == Array(0...20))
    }

    @Test func `a stream of operations outside queues does not starve a queued operation of a category`() async throws {
        let queue = QueueManager("waits", width: 1), eager = OperationQueue()
        eager.maxConcurrentOperationCount = 2
        let isOver = Locked(false), category = category
        // Each body adds another operation before it ends, so that one always waits in line.
        @Sendable func feed() {
            let operation = ClosureOperation<Void, any Error> { if !isOver.withLock({ $0 }) { feed() } }
            operation.categories = [category]
            eager.addOperation(operation)
        }
        for _ in 0..<3 { feed() }
        for number in 0..<5 {
            let operation = closure(number)
            try queue.add(operation)
            #expect(try await operation.value == number)
        }
        isOver.withLock { $0 = true }
        #expect(await eventually { category.holders.isEmpty && category.waitingCount == 0 })
    }

    @Test
    func `a child that needs a category held by its group is canceled with the cause waitsForItself`() async throws {
        let child = closure(1)
        let group = GroupOperation.all([GroupOperation.all([child])]).named("group")
        group.categories = [category]
        await #expect(throws: OperationFailure<GroupFailure>.self) { try await group.run() }
        #expect(child.cancellationCause?.code == .waitsForItself)
        #expect(child.cancellationCause?.message.contains("→ group →") == true)
        #expect(await eventually { category.holders.isEmpty && category.waitingCount == 0 })
    }

    @Test func `a child of a suspended group does not keep the category from others of its queue`() async throws {
        let queue = QueueManager("of a group")
        let holder = driven("holder"), child = driven("child"), next = driven("next")
        holder.start()
        let group = GroupOperation.all([child])
        try queue.add(group)
        #expect(await eventually { category.waiters == [child] })
        try queue.add(next)
        #expect(group.suspend())
        holder.finish(withResult: 1)
        #expect(await next.calls.events(atLeast: 1) == ["main"])
        #expect(child.calls.events == [])
        group.resume()
        next.finish(withResult: 1)
        #expect(await child.calls.events(atLeast: 1) == ["main"])
        child.finish(withResult: 1)
        await queue.drained()
        #expect(await eventually { category.holders.isEmpty && category.waitingCount == 0 })
    }
}
