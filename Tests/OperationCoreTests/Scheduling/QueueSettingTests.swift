// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Barriers, chains, limits and changes to them, waiting for room, and shutdown.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(3)))
struct QueueSettingTests {
    @Test func `a barrier runs alone, after earlier operations and before later ones`() async throws {
        let queue = QueueManager("barrier", width: 8), running = Tally(), order = EventRecorder<Int>()
        let alone = Locked(true)
        for round in 0..<20 {
            for _ in 0..<10 {
                try queue.add {
                    running.during { order.record(round) }
                }
            }
            try queue.addBarrier(
                ClosureOperation {
                    if running.value > 0 { alone.withLock { $0 = false } }
                    running.during {}
                })
        }
        await queue.drained()
        #expect(alone.withLock { $0 })
        #expect(order.events == order.events.sorted())
        #expect(running.runs == 220)
    }

    @Test func `a barrier waits for operations whose dependencies have not ended`() async throws {
        let queue = QueueManager(), upstream = HandDriven(), waiting = HandDriven(), barrier = HandDriven()
        let later = HandDriven()
        try waiting.depend(on: upstream, otherwise: .cancel)
        try queue.add(waiting)
        try queue.addBarrier(barrier)
        try queue.add(later)
        upstream.startAndFinish(withResult: 1)
        _ = await waiting.calls.events(atLeast: 1)
        #expect(barrier.state == .notStarted)
        waiting.finish(withResult: 1)
        _ = await barrier.calls.events(atLeast: 1)
        #expect(later.state == .notStarted)
        barrier.finish(withResult: 1)
        await later.finishOnceBegun(withResult: 1)
        await queue.drained()
    }

    @Test func `a barrier that is added during the addition of an array comes after the whole array`() async throws {
        let queue = QueueManager("array"), clock = HookClock()
        let operations = (0..<200).map { number in ClosureOperation { number } }
        let barrier = ClosureOperation { operations.allSatisfy(\.isFinished) }
        operations[0].clock = clock
        operations[0].startDelay = .seconds(1)
        operations[1].addDependency(operations[199])
        clock.beforeNextSchedule { try? queue.addBarrier(barrier) }
        try queue.add(operations)
        clock.manual.advance(by: .seconds(1))
        await queue.drained()
        #expect(barrier.outcome?.result == true)
    }

    @Test func `operations on both sides of a canceled barrier run together`() async throws {
        let queue = QueueManager(), before = HandDriven("before"), after = HandDriven("after")
        let barriers = (0..<3).map { HandDriven("barrier \($0)") }
        try before.depend(on: after, otherwise: .cancel)
        try queue.add(before)
        for barrier in barriers { try queue.addBarrier(barrier) }
        try queue.add(after)
        barriers[1].cancel()
        barriers[0].cancel()
        #expect(Look(barriers[0]) == .cancelled && Look(barriers[1]) == .cancelled)
        #expect(queue.explain(after).contains("barrier 2"))
        barriers[2].cancel()
        await after.finishOnceBegun(withResult: 1)
        _ = await before.calls.events(atLeast: 1)
        // Operations that are added now join them, up to the next barrier.
        let joining = HandDriven("joining"), last = HandDriven("last"), behind = HandDriven("behind")
        try await queue.addAndBegin(joining)
        try queue.addBarrier(last)
        try queue.add(behind)
        before.finish(withResult: 1)
        #expect(last.state == .notStarted)
        joining.finish(withResult: 1)
        _ = await last.calls.events(atLeast: 1)
        #expect(behind.state == .notStarted)
        last.finish(withResult: 1)
        await behind.finishOnceBegun(withResult: 1)
        await queue.drained()
    }

    @Test func `a chain stops at a failure, or continues if it is added with runThrough`() async throws {
        let queue = QueueManager()
        func chain(_ order: EventRecorder<Int>) -> [SyncProbe] {
            (0..<5).map { number in
                SyncProbe("\(number)") { operation in
                    order.record(number)
                    if number == 2 { operation.finish(withError: .first) } else { operation.finish(withResult: 0) }
                }
            }
        }
        let stopped = EventRecorder<Int>(), through = EventRecorder<Int>()
        let stopping = chain(stopped)
        try queue.addChain(stopping)
        try queue.addChain(chain(through), .runThrough)
        await queue.drained()
        #expect(stopped.events == [0, 1, 2])
        #expect(stopping[3].cancellationCause?.code == .dependencyFailed)
        #expect(stopping[4].cancellationCause?.code == .dependencyCancelled)
        #expect(through.events == [0, 1, 2, 3, 4])
    }

    @Test func `a chain that cannot be added leaves no dependencies or operations behind`() async throws {
        let queue = QueueManager(), a = HandDriven("a"), b = HandDriven("b"), ended = HandDriven("c")
        ended.startAndFinish(withResult: 1)
        #expect(
            thrown { () throws(OperationSetupError) in try queue.addChain([a, b, ended]) }?.code == .alreadyFinished)
        #expect(
            thrown { () throws(OperationSetupError) in try queue.addChain([ended, a, b]) }?.code == .alreadyFinished)
        #expect(a.dependencies + b.dependencies == [])
        #expect(!a.isCancelled && !b.isCancelled)
        try a.depend(on: b, otherwise: .cancel)
        let cycle = thrown { () throws(OperationSetupError) in try queue.addChain([a, b]) }
        #expect(cycle?.code == .chain)
        #expect(cycle?.message.contains("a") == true)
        a.removeDependency(b)
        #expect(queue.engine.operations == [])
        try queue.addChain([a, b])
        queue.cancelAll()
        await queue.drained()
    }

    @Test func `adding an invalid operation throws an error with an explanation, and nothing is lost`() async throws {
        let queue = QueueManager.suspended("one"), other = QueueManager("two")
        let twice = HandDriven("twice"), started = HandDriven("started"), ended = HandDriven("ended")
        try queue.add(twice)
        #expect(thrown { () throws(OperationSetupError) in try queue.add(twice) }?.code == .alreadyAdded)
        let second = thrown { () throws(OperationSetupError) in try other.add(twice) }
        #expect(
            second?.message
                == "twice was not added to queue two: it is in queue one. An operation runs only once, so create "
                + "another one.")
        started.start()
        #expect(thrown { () throws(OperationSetupError) in try queue.add(started) }?.code == .alreadyStarted)
        ended.startAndFinish(withResult: 1)
        #expect(thrown { () throws(OperationSetupError) in try queue.add(ended) }?.code == .alreadyFinished)
        let fresh = HandDriven("fresh")
        #expect(thrown { () throws(OperationSetupError) in try queue.add([fresh, twice]) }?.code == .alreadyAdded)
        #expect(thrown { () throws(OperationSetupError) in try queue.add([fresh, fresh]) }?.code == .alreadyAdded)
        let foundation = OperationQueue()
        foundation.isSuspended = true
        let held = HandDriven("held")
        foundation.addOperation(held)
        #expect(thrown { () throws(OperationSetupError) in try queue.add(held) }?.code == .alreadyAdded)
        held.cancel()
        foundation.isSuspended = false
        try other.add(fresh)
        await fresh.finishOnceBegun(withResult: 1)
        started.finish(withResult: 1)
        queue.isSuspended = false
        await twice.finishOnceBegun(withResult: 1)
        await queue.drained()
        await other.drained()
    }

    @Test func `calling start on an operation that a queue holds only reports a notice`() async throws {
        let queue = QueueManager.suspended(), operation = HandDriven("held by a queue")
        let recorder = NoticeHub.recorder(for: "held by a queue")
        try queue.add(operation)
        operation.start()
        #expect(operation.state == .notStarted)
        #expect(recorder.events.map(\.kind) == [.startedTwice])
        async let value = operation.run()
        queue.isSuspended = false
        await operation.finishOnceBegun(withResult: 5)
        #expect(try await value == 5)
    }

    @Test(arguments: [0, -3])
    func `a width, capacity or ageing below 1 becomes 1`(number: Int) {
        let queue = QueueManager("narrow", width: number)
        #expect(queue.width == 1)
        queue.width = number
        #expect(queue.width == 1)
        queue.capacity = number
        #expect(queue.capacity == 1)
        queue.ageing = number
        #expect(queue.ageing == 1)
        queue.width = nil
        #expect(queue.width == nil)
    }

    @Test func `the width can change while the queue is running`() async throws {
        let queue = QueueManager("width", width: 1), operations = (0..<6).map { _ in HandDriven() }
        try queue.add(operations)
        _ = await operations[0].calls.events(atLeast: 1)
        queue.width = 3
        _ = await operations[2].calls.events(atLeast: 1)
        #expect(operations[3].state == .notStarted)
        queue.width = 1
        operations[0].finish(withResult: 1)
        operations[1].finish(withResult: 1)
        #expect(operations[3].state == .notStarted)
        operations[2].finish(withResult: 1)
        _ = await operations[3].calls.events(atLeast: 1)
        #expect(operations[4].state == .notStarted)
        queue.width = nil
        _ = await operations[5].calls.events(atLeast: 1)
        for operation in operations[3...] { operation.finish(withResult: 1) }
        await queue.drained()
    }

    @Test func `a full queue rejects operations and adds waiting ones when there is room`() async throws {
        let queue = QueueManager("full")
        queue.capacity = 2
        let operations = (0..<5).map { HandDriven("\($0)") }
        try queue.add([operations[0], operations[1]])
        #expect(thrown { () throws(OperationSetupError) in try queue.add(operations[2]) }?.code == .full)
        #expect(thrown { () throws(OperationSetupError) in try queue.add {} }?.code == .full)
        let waiting = Task { try await queue.addWhenThereIsRoom(operations[2]) }
        let impatient = Task { try await queue.addWhenThereIsRoom(operations[3]) }
        impatient.cancel()
        let given = await #expect(throws: OperationSetupError.self) { try await impatient.value }
        #expect(given?.code == .cancelled)
        operations[0].finish(withResult: 1)
        try await waiting.value
        _ = await operations[2].calls.events(atLeast: 1)
        #expect(operations[3].state == .notStarted)
        for operation in operations[1...2] { operation.finish(withResult: 1) }
        await queue.drained()
        try queue.add([operations[3], operations[4]])
        queue.cancelAll()
    }

    @Test func `canceled waits do not accumulate in memory`() async throws {
        let queue = QueueManager.suspended("given up", width: 1)
        queue.capacity = 1
        try queue.add {}
        for _ in 0..<300 {
            let draining = Task { await queue.drained() }
            draining.cancel()
            await draining.value
            let adding = Task { try? await queue.addWhenThereIsRoom(ClosureOperation { 1 }) }
            adding.cancel()
            await adding.value
        }
        #expect(queue.engine.drainWaiterCount <= 64 && queue.engine.roomWaiterCount <= 64)
        await queue.resumeAndDrain()
    }

    @Test func `an operation started manually while it is added runs once and leaves the queue empty`() async throws {
        let rounds = Rounds.count(ci: 2_000, soak: 100_000)
        try await TestThread.run {
            let team = ThreadTeam(count: 2), clock = ManualClock()
            for _ in 0..<rounds {
                let queue = QueueManager("raced", width: 1)
                let operation = SyncProbe { $0.finish(withResult: 1) }
                // The timeout makes the start take the slower path.
                operation.timeout = .seconds(1)
                operation.clock = clock
                team.run([{ operation.start() }, { try? queue.add(operation) }])
                operation.waitUntilFinished()
                try queue.waitUntilAllFinished()
                if operation.calls.count != 1 { Issue.record("The operation ran \(operation.calls.count) times.") }
            }
        }
    }

    @Test func `a slot stays reserved for a waiter that was notified`() async throws {
        let queue = QueueManager("kept")
        queue.capacity = 1
        let order = EventRecorder<String>()
        let hooks = HandDriven.Hooks(main: { order.record($0.displayName) })
        let first = HandDriven("first"), second = HandDriven("second", hooks: hooks)
        let third = HandDriven("third", hooks: hooks)
        try queue.add(first)
        let tasks = [second, third].map { operation in Task { try await queue.addWhenThereIsRoom(operation) } }
        while queue.engine.roomWaiterCount < 2 { await Task.yield() }
        await first.finishOnceBegun(withResult: 1)
        // The slot is taken or reserved, whether or not the task has run yet.
        #expect(thrown { () throws(OperationSetupError) in try queue.add {} }?.code == .full)
        queue.capacity = 1
        #expect(queue.engine.roomWaiterCount == 1)
        for count in 1...2 {
            let begun = await order.events(atLeast: count)
            (begun[count - 1] == "second" ? second : third).finish(withResult: 1)
        }
        for task in tasks { try await task.value }
        await queue.drained()
        try queue.add {}
    }

    @Test func `a set of operations is added completely or not at all despite concurrent changes`() async throws {
        let rounds = Rounds.count(ci: 200, soak: 20_000)
        try await TestThread.run {
            let team = ThreadTeam(count: 3)
            for _ in 0..<rounds {
                let queue = QueueManager("crowd", width: 2)
                queue.capacity = 250
                let sets = (0..<2).map { _ in (0..<150).map { _ in SyncProbe { $0.finish(withResult: 1) } } }
                let taken = Locked<[Int]>([]), abandoned = Locked<[Operation]>([])
                let over = DispatchSemaphore(value: 0)
                team.run([
                    { if (try? queue.add(sets[0])) != nil { taken.withLock { $0.append(0) } } },
                    { if (try? queue.add(sets[1])) != nil { taken.withLock { $0.append(1) } } },
                    {
                        Task { @Sendable in
                            let left = await queue.shutDown(grace: .zero)
                            abandoned.withLock { $0 = left }
                            await queue.drained()
                            over.signal()
                        }
                        over.wait()
                    },
                ])
                let isTaken = taken.withLock { $0 }
                for (number, set) in sets.enumerated() {
                    let ended = set.count { $0.isFinished }
                    if ended != (isTaken.contains(number) ? set.count : 0) {
                        Issue.record("\(ended) of \(set.count) ended, accepted: \(isTaken)")
                    }
                }
                for operation in abandoned.withLock({ $0 }) where !operation.isFinished {
                    Issue.record("\(operation) was returned and has not ended")
                }
            }
        }
    }

    @Test func `shutDown rejects new operations, waits, and returns operations that have not ended`() async throws {
        let queue = QueueManager("closing", width: 1), clock = ManualClock()
        let quick = HandDriven("quick"), slow = HandDriven("slow"), never = HandDriven("never")
        try queue.add([quick, slow, never])
        _ = await quick.calls.events(atLeast: 1)
        let closing = Task { await queue.shutDown(grace: .seconds(5), clock: clock) }
        while clock.pendingCount == 0 { await Task.yield() }
        #expect(thrown { () throws(OperationSetupError) in try queue.add(HandDriven()) }?.code == .closed)
        quick.finish(withResult: 1)
        _ = await slow.calls.events(atLeast: 1)
        clock.advance(by: .seconds(5))
        let abandoned = await closing.value
        #expect(Set(abandoned.map { $0.name ?? "" }) == ["slow", "never"])
        #expect(slow.cancellationCause?.code == .shutDown)
        #expect(never.calls.events == [])
        await queue.drained()
        #expect(await QueueManager().shutDown(grace: .seconds(100)).isEmpty)
    }

    @Test(.comparesObjects) func `a shutdown without a grace period does not wait for its clock`() async throws {
        let (queue, operation) = (QueueManager(), HandDriven())
        try queue.add(operation)
        let rest = await queue.shutDown(grace: .zero, clock: ManualClock())
        #expect(rest == [operation] && operation.cancellationCause?.code == .shutDown)
    }

    @Test func `shutDown in a canceled task still waits for the whole grace period`() async throws {
        let queue = QueueManager("closing", width: 1), clock = ManualClock()
        let quick = HandDriven("quick"), slow = HandDriven("slow")
        try queue.add([quick, slow])
        _ = await quick.calls.events(atLeast: 1)
        let cancelled = Gate()
        let closing = Task {
            await cancelled.passage()
            return await queue.shutDown(grace: .seconds(5), clock: clock)
        }
        closing.cancel()
        cancelled.open()
        while clock.pendingCount == 0 { await Task.yield() }
        // The canceled task begins its wait here, and only the clock ends it.
        for _ in 0..<100 { await Task.yield() }
        quick.finish(withResult: 1)
        await slow.finishOnceBegun(withResult: 2)
        #expect(await closing.value.isEmpty)
        #expect(quick.outcome == .success(1) && slow.outcome == .success(2))
        #expect(clock.pendingCount == 0)
    }

    @Test func `waitUntilAllFinished throws an error in a body of the same queue`() async throws {
        let queue = QueueManager("itself"), seen = EventRecorder<OperationSetupError.Code?>()
        try queue.add {
            seen.record(thrown { () throws(OperationSetupError) in try queue.waitUntilAllFinished() }?.code)
        }
        await queue.drained()
        #expect(seen.events == [.cannotWait])
    }

    @Test func `awaiting drained() in an async body of the same queue reports a notice`() async throws {
        let queue = QueueManager("awaits itself"), notices = NoticeHub.recorder(for: queue.name)
        let seen = EventRecorder<OperationSetupError.Code?>()
        let operation = TaskOperation {
            blockUntilEmpty(queue, seen)
            await queue.drained()
        }
        let group = GroupOperation.all([operation])
        try queue.add(group)
        #expect(await notices.events(atLeast: 1).map(\.kind) == [.waitsForItself])
        group.cancel()
        await queue.drained()
        #expect(seen.events == [.cannotWait] && notices.count == 1)
    }

    @Test(arguments: [false, true])
    func `bodies that fill their queue and wait for room in it report a notice`(areChildren: Bool) async throws {
        let name = areChildren ? "children fill" : "bodies fill"
        let queue = QueueManager(name), notices = NoticeHub.recorder(for: name), gates = [Gate(), Gate()]
        // A group counts, too, because it cannot end before its children.
        queue.capacity = areChildren ? 3 : 2
        let bodies = gates.map { gate in
            TaskOperation<Void, any Error> {
                await gate.passage()
                try await queue.addWhenThereIsRoom(ClosureOperation {})
            }
        }
        if areChildren { try queue.add(GroupOperation.all(bodies)) } else { try queue.add(bodies) }
        #expect(await eventually { bodies.allSatisfy(\.isExecuting) })
        gates[0].open()
        #expect(await eventually { queue.engine.roomWaiterCount == 1 })
        #expect(notices.events.isEmpty)
        gates[1].open()
        #expect(await notices.events(atLeast: 1).map(\.kind) == [.waitsForItself])
        queue.capacity = nil
        await queue.drained()
        #expect(bodies.allSatisfy { $0.outcome?.result != nil } && notices.count == 1)
    }
}

/// Blocks the thread of a task in a way that the compiler does not see.
private func blockUntilEmpty(_ queue: QueueManager, _ seen: EventRecorder<OperationSetupError.Code?>) {
    seen.record(thrown { () throws(OperationSetupError) in try queue.waitUntilAllFinished() }?.code)
}
