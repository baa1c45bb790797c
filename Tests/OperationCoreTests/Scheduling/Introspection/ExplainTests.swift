// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Explaining why an operation does not run", .nothingStaysAlive, .timeLimit(.minutes(3)))
struct ExplainTests {
    @Test func `explain lists the dependencies of a waiting operation and their states`() async throws {
        let queue = QueueManager("uploads"), other = QueueManager("net")
        let running = HandDriven("load"), forgotten = HandDriven("prepare"), foreign = BlockOperation {}
        foreign.name = "block"
        let upload = HandDriven("upload")
        for dependency in [running, forgotten, foreign] { upload.addDependency(dependency) }
        try other.add(running)
        try queue.add(upload)
        _ = await running.calls.events(atLeast: 1)
        #expect(
            queue.explain(upload)
                == "upload waits in queue uploads: it depends on load (running in queue net); "
                + "it depends on prepare (not started, and in no queue that would start it); "
                + "it depends on block (not started, and in no queue that would start it).")
        upload.cancel()
        running.cancel()
        #expect(queue.explain(running) == "load is not in queue uploads (canceled).")
    }

    @Test func `explain names the earlier operations with the same key`() async throws {
        let queue = QueueManager("sync")
        let operations = ["first", "second", "third"].map { HandDriven($0) }
        for operation in operations { try queue.addUnique(operation, key: "sync", policy: .append) }
        _ = await operations[0].calls.events(atLeast: 1)
        #expect(
            queue.explain(operations[2])
                == "third waits in queue sync: it depends on first (running in queue sync); "
                + "it depends on second (waiting in queue sync).")
        queue.cancelAll()
        await queue.drained()
    }

    @Test func `explain names the operations that take all slots and counts the operations ahead`() async throws {
        let queue = QueueManager("narrow", width: 1)
        let first = HandDriven("first"), urgent = HandDriven("urgent"), second = HandDriven("second")
        urgent.queuePriority = .high
        try await queue.addAndBegin(first)
        try queue.add([second, urgent])
        #expect(
            queue.explain(second)
                == "second is ready in queue narrow: all slots of the queue are occupied (width 1, held by first); "
                + "1 ready operation is more urgent.")
        #expect(queue.explain(first) == "first runs in queue narrow.")
        queue.cancelAll()
        await queue.drained()
        #expect(queue.explain(first) == "first is not in queue narrow (canceled).")
    }

    @Test func `explain reports a suspended queue and barriers`() async throws {
        let queue = QueueManager("barred")
        let first = HandDriven("first"), barrier = HandDriven("barrier"), last = HandDriven("last")
        try await queue.addAndBegin(first)
        try queue.addBarrier(barrier)
        try queue.add(last)
        #expect(
            queue.explain(barrier)
                == "barrier is ready in queue barred: it is a barrier, and first must end first.")
        #expect(
            queue.explain(last)
                == "last is ready in queue barred: it is behind the barrier barrier, and barrier, first must end first."
        )
        queue.isSuspended = true
        #expect(
            queue.explain(last).contains("ready in queue barred: the queue is suspended; it is behind"))
        queue.isSuspended = false
        queue.cancelAll()
        await queue.drained()
    }

    @Test func `explain reports a barrier that is a group, but none of its children as barriers`() async throws {
        let queue = QueueManager("barred"), child = HandDriven("child"), last = HandDriven("last")
        try queue.addBarrier(GroupOperation.all([child]).named("group"))
        _ = await child.calls.events(atLeast: 1)
        try queue.add(last)
        #expect(
            queue.explain(last)
                == "last is ready in queue barred: it is behind the barrier group, and child, group must end first.")
        child.finish(withResult: 1)
        await last.finishOnceBegun(withResult: 1)
        await queue.drained()
    }

    @Test func `explain reports a start delay that is not over`() async throws {
        let queue = QueueManager("slow")
        let operation = HandDriven("late")
        let clock = ManualClock()
        operation.clock = clock
        operation.startDelay = .seconds(5)
        try queue.add(operation)
        #expect(queue.explain(operation) == "late is held in queue slow: its startDelay has not elapsed.")
        clock.advance(by: .seconds(5))
        await operation.finishOnceBegun(withResult: 1)
        await queue.drained()
        #expect(queue.explain(operation) == "late is not in queue slow (ended).")
    }

    @Test func `explain reports a start delay of an operation that was started directly`() {
        let operation = HandDriven("late")
        operation.clock = ManualClock()
        operation.startDelay = .seconds(5)
        operation.start()
        #expect(
            QueueManager("other").explain(operation)
                == "late is not in queue other (started directly, and held by a start condition).")
        operation.cancel()
    }

    @Test func `explain names the holder of a category and the key of a throttle`() async throws {
        let queue = QueueManager("admitting"), database = OperationCategory("database")
        let holder = HandDriven("holder"), waiting = HandDriven("waiting")
        holder.categories = [database]
        waiting.categories = [database]
        try await queue.addAndBegin(holder)
        try queue.add(waiting)
        #expect(
            queue.explain(waiting)
                == "waiting is held in queue admitting: category database has no free slot (held by holder).")
        holder.finish(withResult: 1)
        await waiting.finishOnceBegun(withResult: 1)

        let clock = ManualClock(), register = OperationThrottle(clock: clock)
        let first = HandDriven("first"), second = HandDriven("second")
        for operation in [first, second] {
            operation.throttle = ThrottleRule(key: "refresh", interval: .seconds(5), early: .wait, in: register)
        }
        try await queue.addAndBegin(first)
        try queue.add(second)
        #expect(
            queue.explain(second)
                == "second is held in queue admitting: its key \"refresh\" may run again after first has ended.")
        first.finish(withResult: 1)
        clock.advance(by: .seconds(5))
        await second.finishOnceBegun(withResult: 1)
        await queue.drained()
    }

    @Test func `explain names the operations ahead in the line for a category`() async throws {
        let queue = QueueManager("lines")
        let database = OperationCategory("database"), photos = OperationCategory("photos")
        let holder = HandDriven("holder"), both = HandDriven("both"), last = HandDriven("last")
        holder.categories = [photos]
        both.categories = [database, photos]
        last.categories = [database]
        try await queue.addAndBegin(holder)
        try queue.add([both, last])
        #expect(
            queue.explain(last)
                == "last is held in queue lines: it is behind both, which came first for category database, and both "
                + "waits for category photos (held by holder).")
        #expect(
            queue.explain(both)
                == "both is held in queue lines: category photos has no free slot (held by holder).")
        holder.finish(withResult: 1)
        await both.finishOnceBegun(withResult: 1)
        await last.finishOnceBegun(withResult: 1)
        await queue.drained()
    }

    @Test func `explain reports the dependencies and isReady of plain operations`() async throws {
        let queue = QueueManager("mixed")
        let own = HandDriven("own"), plain = BlockOperation {}, waiting = BlockOperation {}
        plain.name = "plain"
        waiting.name = "waiting"
        waiting.addDependency(own)
        waiting.addDependency(plain)
        try queue.add(waiting)
        #expect(
            queue.explain(waiting)
                == "waiting waits in queue mixed: it depends on own (not started, and in no queue that would start "
                + "it); it depends on plain (not started, and in no queue that would start it).")
        let stubborn = Stubborn()
        try queue.add(stubborn)
        #expect(queue.explain(stubborn) == "Stubborn waits in queue mixed: its isReady is false.")
        #expect(
            queue.explain(plain) == "plain is not in queue mixed (not started, and in no queue that would start it).")
        stubborn.allow.open()
        try queue.add(own)
        try queue.add(plain)
        await own.finishOnceBegun(withResult: 1)
        await queue.drained()
        #expect(queue.explain(waiting) == "waiting is not in queue mixed (ended).")
    }

    @Test func `explain reports that all threads are busy although the width is not reached`() throws {
        let workers = ManualWorkers(), queue = workers.makeQueue("busy")
        let count = ProcessInfo.processInfo.activeProcessorCount
        for _ in 0..<count { try queue.add(name: "body") {} }
        let next = HandDriven("next")
        next.queuePriority = .low
        try queue.add(next)
        queue.isSuspended = true
        #expect(queue.explain(next).hasPrefix("next is ready in queue busy: the queue is suspended"))
        queue.isSuspended = false
        // Each thread takes one closure and has not run it yet.
        for index in 0..<count { workers.step(index) }
        let names = repeatElement("body", count: min(count, 5)).joined(separator: ", ")
        let holders = count > 5 ? "\(names) and \(count - 5) more" : names
        #expect(
            queue.explain(next)
                == "next is ready in queue busy: all threads of the queue are busy (now \(count), held by \(holders)).")
        workers.runAll()
        next.finish(withResult: 1)
    }

    @Test func `explain reports threads that are busy with bodies of finished operations`() throws {
        let workers = ManualWorkers(), queue = workers.makeQueue("busy", width: 1)
        let next = HandDriven("next"), seen = EventRecorder<String>()
        let stuck = HandDriven(
            "stuck",
            hooks: .init(main: { operation in
                operation.finish(withResult: 1)
                seen.record(queue.explain(next))
            }))
        try queue.add([stuck, next])
        workers.step()
        workers.step()
        #expect(
            seen.events == [
                "next is ready in queue busy: all threads of the queue are busy (now 1, held by bodies of operations "
                    + "that ended)."
            ])
        workers.runAll()
        next.finish(withResult: 1)
    }

    @Test func `explain names the run that an operation shares`() async throws {
        let queue = QueueManager("shop")
        let shared = SharedOperations<String, Int, Flaw>(on: QueueManager("runs"))
        let run = HandDriven("load")
        let asker = shared.operation(for: "key") { run }.named("asker")
        try queue.add(asker)
        _ = await run.calls.events(atLeast: 1)
        #expect(queue.explain(asker) == "asker runs in queue shop: waiting for a shared run: load.")
        run.finish(withResult: 1)
        await queue.drained()
    }

    @Test func `explain reports an executing operation that is suspended or winds down`() async throws {
        let queue = QueueManager("paused")
        let operation = HandDriven("paused", windsDown: true)
        try await queue.addAndBegin(operation)
        operation.suspend()
        #expect(queue.explain(operation) == "paused runs in queue paused: it began and was suspended.")
        operation.cancel()
        #expect(
            queue.explain(operation)
                == "paused runs in queue paused: it was canceled, and its body is still running.")
        operation.finish(withResult: 1)
        await queue.drained()
    }
}

/// A plain operation that is not ready before the gate opens.
private final class Stubborn: Operation, @unchecked Sendable {
    let allow = Gate()
    override var isReady: Bool { allow.isOpen && super.isReady }
}
