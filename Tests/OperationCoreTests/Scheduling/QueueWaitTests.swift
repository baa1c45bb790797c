// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Bodies that block, in calls of the package and in other ways.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(Rounds.minutes)))
struct QueueWaitTests {
    /// Adds an operation whose body adds the next one to the same queue and waits for it.
    private static func nest(_ depth: Int, in queue: QueueManager, _ running: Tally) -> SyncProbe {
        SyncProbe("\(depth)") { operation in
            running.add()
            defer { running.add(-1) }
            guard depth > 0 else { return operation.finish(withResult: 0) }
            let next = nest(depth - 1, in: queue, running)
            do {
                try queue.add(next)
                running.add(-1)
                next.waitUntilFinished()
                running.add()
                operation.finish(withResult: (next.outcome?.result ?? -1_000) + 1)
            } catch {
                operation.finish(withError: .first)
            }
        }
    }

    @Test func `operations nested 200 deep in each other end on a queue of width 2`() async throws {
        let queue = QueueManager("deep", width: 2), running = Tally()
        let first = Self.nest(200, in: queue, running)
        try queue.add(first)
        await first.ended()
        #expect(first.outcome == .success(200))
        #expect(running.peak <= 2)
        #expect(WorkerPool.shared.count <= QueueManager.threadLimit)
    }

    @Test func `1,000 operations that each wait for their own operation end on a queue of width 2`() async throws {
        let queue = QueueManager("wide", width: 2), running = Tally()
        let operations = (0..<1_000).map { _ in Self.nest(1, in: queue, running) }
        try await queue.addAndDrain(operations)
        #expect(operations.allSatisfy { $0.outcome == .success(1) })
        #expect(running.peak <= 2)
        #expect(WorkerPool.shared.count <= QueueManager.threadLimit)
    }

    @Test func `bodies that start and wait for their own operations need no more threads`() async throws {
        let queue = QueueManager("own", width: 1)
        let operations = (0..<300).map { number in
            SyncProbe { operation in
                let inner = ClosureOperation { number }
                let result = try? inner.startAndWait()
                operation.finish(withResult: result ?? -1)
            }
        }
        try await queue.addAndDrain(operations)
        #expect(operations.enumerated().allSatisfy { $1.outcome == .success($0) })
    }

    @Test func `an operation that waits does not hold up other operations`() async throws {
        let queue = QueueManager("one", width: 1), never = HandDriven()
        let waiting = SyncProbe { operation in
            never.waitUntilFinished()
            operation.finish(withResult: 1)
        }
        try queue.add(waiting)
        let others = (0..<100).map { _ in SyncProbe { $0.finish(withResult: 2) } }
        try queue.add(others)
        for other in others { await other.ended() }
        #expect(waiting.state == .executing)
        never.startAndFinish(withResult: 1)
        await queue.drained()
    }

    @Test func `bodies that block in other ways get additional threads up to the width`() async throws {
        let queue = QueueManager("blocked", width: 20), release = Gate(), running = Tally()
        for _ in 0..<30 {
            try queue.add {
                running.add()
                release.wait()
                running.add(-1)
            }
        }
        while running.value < 20 { await Task.yield() }
        release.open()
        await queue.drained()
        #expect(running.peak == 20)
        #expect(running.runs == 30)
    }

    @Test func `a body can block on an operation of another queue`() async throws {
        let outer = QueueManager("outer", width: 1), inner = QueueManager("inner", width: 1)
        let operation = SyncProbe { operation in
            let sum = ClosureOperation { 1 + 1 }
            do {
                try inner.add(sum)
                sum.waitUntilFinished()
                try inner.waitUntilAllFinished()
                operation.finish(withResult: sum.outcome?.result ?? 0)
            } catch {
                operation.finish(withError: .first)
            }
        }
        try await outer.addAndDrain([operation])
        #expect(operation.outcome == .success(2))
    }

    @Test func `an operation that ends while its body waits releases its slot once`() async throws {
        let queue = QueueManager("once", width: 1), blocker = HandDriven("blocker"), returned = Gate()
        let ended = HandDriven(
            "ended",
            hooks: .init(main: { _ in
                blocker.waitUntilFinished()
                returned.open()
            }))
        let holder = HandDriven("holder"), next = HandDriven("next")
        try queue.add([ended, holder, next])
        // The holder runs in the slot that the body of the first operation gave up.
        _ = await holder.calls.events(atLeast: 1)
        ended.finish(withResult: 1)
        #expect(isKeptByWidth(next, in: queue))
        blocker.startAndFinish(withResult: 1)
        await returned.passage()
        #expect(isKeptByWidth(next, in: queue))
        holder.finish(withResult: 1)
        _ = await next.calls.events(atLeast: 1)
        let last = HandDriven("last")
        try queue.add(last)
        #expect(isKeptByWidth(last, in: queue))
        for operation in [next, last] {
            await operation.finishOnceBegun(withResult: 1)
        }
        await queue.drained()
    }

    @Test func `a body that first waits after its operation ended takes no slot`() async throws {
        let queue = QueueManager("after", width: 1), blocker = HandDriven("blocker"), go = Gate(), returned = Gate()
        let ended = HandDriven(
            "ended",
            hooks: .init(main: { operation in
                operation.finish(withResult: 1)
                go.wait()
                blocker.waitUntilFinished()
                returned.open()
            }))
        let holder = HandDriven("holder"), next = HandDriven("next")
        try queue.add(ended)
        await ended.ended()
        try queue.add([holder, next])
        go.open()
        // The queue's thread is free because the body waits.
        _ = await holder.calls.events(atLeast: 1)
        #expect(isKeptByWidth(next, in: queue))
        blocker.startAndFinish(withResult: 1)
        await returned.passage()
        #expect(isKeptByWidth(next, in: queue))
        holder.finish(withResult: 1)
        await next.finishOnceBegun(withResult: 1)
        await queue.drained()
    }

    private func isKeptByWidth(_ operation: ManagedOperation, in queue: QueueManager) -> Bool {
        queue.explain(operation).contains("all slots of the queue are occupied")
    }

    @Test func `a rule that waits does not hold up operations that became ready with it`() async throws {
        let queue = QueueManager("rule", width: 2), other = Gate()
        let failing = SyncProbe("failing") { $0.finish(withError: .first) }
        let anyway = SyncProbe("anyway") { operation in
            other.open()
            operation.finish(withResult: 1)
        }
        let judged = SyncProbe("judged") { $0.finish(withResult: 1) }
        try anyway.depend(on: failing, otherwise: .runAnyway)
        try judged.depend(
            on: failing,
            otherwise: .fail { _ in
                other.wait()
                return .second
            })
        try await queue.addAndDrain([anyway, judged, failing])
        #expect(anyway.outcome == .success(1))
        #expect(judged.outcome == .failure(.second))
    }

    @Test func `a conversion that waits does not hold up operations that became ready with it`() async throws {
        let queue = QueueManager("conversion", width: 2), other = Gate()
        let failing = SyncProbe("failing") { $0.finish(withError: .first) }
        let anyway = SyncProbe("anyway") { operation in
            other.open()
            operation.finish(withResult: 1)
        }
        let original = HandDriven("original")
        let mapped = original.mapError { error in
            other.wait()
            return error
        }
        try anyway.depend(on: failing, otherwise: .runAnyway)
        try original.depend(on: failing, otherwise: .cancel)
        mapped.start()
        try await queue.addAndDrain([anyway, failing])
        await mapped.ended()
        #expect(anyway.outcome == .success(1))
        #expect(mapped.cancellationCause?.code == .dependencyFailed)
    }

    @Test func `a queue whose bodies all block outside the package reports it once`() async throws {
        let name = "bodies at a latch", notices = NoticeHub.recorder(for: name), release = Gate()
        let queue = QueueManager(engine: QueueEngine(name: name, width: nil, source: HastySource()))
        for _ in 0..<QueueThreads.mostThreads { try queue.add { release.wait() } }
        try queue.add { release.open() }
        #expect(await notices.events(atLeast: 1).map(\.kind) == [.tooManyWaits])
        release.open()
        await queue.drained()
        #expect(notices.count == 1)
    }

    @Test func `a queue that got no thread is offered one, even while it registers for later`() async throws {
        let source = LateSource(), queue = QueueManager(engine: QueueEngine(name: "late", width: 1, source: source))
        try queue.add(SyncProbe { $0.finish(withResult: 1) })
        await queue.drained()
        #expect(source.offers.events == [true])
    }

    @Test func `an operation that a body waits for runs first`() async throws {
        let queue = QueueManager("first", width: 1), order = EventRecorder<String>()
        let awaited = SyncProbe { operation in
            order.record("awaited")
            operation.finish(withResult: 1)
        }
        awaited.queuePriority = .veryLow
        let gate = Gate()
        let waiting = SyncProbe { operation in
            gate.wait()
            awaited.waitUntilFinished()
            order.record("waiting")
            operation.finish(withResult: 1)
        }
        try queue.add(waiting)
        let others = (0..<20).map { number in
            SyncProbe { operation in
                order.record("other")
                operation.finish(withResult: 1)
            }
        }
        try queue.add(others)
        try queue.add(awaited)
        gate.open()
        await queue.drained()
        #expect(order.events.first == "awaited")
    }

    @Test func `a body whose operation ended resumes without waiting for a slot`() async throws {
        let queue = QueueManager("ended", width: 1), order = EventRecorder<String>(), continues = Gate()
        let (first, second) = (HandDriven("first"), HandDriven("second"))
        let blocked = HandDriven(
            "blocked",
            hooks: .init(main: { _ in
                first.waitUntilFinished(); order.record("blocked")
            }))
        let ended = HandDriven(
            "ended",
            hooks: .init(main: { _ in
                second.waitUntilFinished()
                order.record("ended")
                continues.open()
            }))
        let holder = HandDriven("holder")
        try queue.add([blocked, ended, holder])
        while holder.state != .executing { await Task.yield() }
        for (number, operation) in [first, second].enumerated() {
            operation.startAndFinish(withResult: 1)
            while queue.engine.returningCount <= number { await Task.yield() }
        }
        ended.finish(withResult: 1)
        await continues.passage()
        #expect(order.events == ["ended"])
        holder.finish(withResult: 1)
        while order.count < 2 { await Task.yield() }
        blocked.finish(withResult: 1)
        await queue.drained()
    }
}

/// Provides no thread at first, and offers one while the queue registers for later.
private final class LateSource: WorkerSource {
    let offers = EventRecorder<Bool>()

    func provide(for engine: QueueEngine) -> Bool { false }

    func remember(_ engine: QueueEngine) -> Bool {
        let isWanted = engine.offerWorker()
        offers.record(isWanted)
        if isWanted { Thread { engine.work() }.start() }
        return true
    }

    func beginRest() -> Bool { true }
    func endRest() {}
    var watchesForStalls: Bool { false }
    var now: UInt64 { 0 }
}

/// Provides every requested thread, with a clock that advances by one second per call.
private final class HastySource: WorkerSource {
    private let seconds = Locked<UInt64>(0)

    func provide(for engine: QueueEngine) -> Bool {
        Thread { engine.work() }.start()
        return true
    }

    func remember(_ engine: QueueEngine) -> Bool { true }
    func beginRest() -> Bool { true }
    func endRest() {}
    var watchesForStalls: Bool { true }

    var now: UInt64 {
        seconds.withLock { seconds in
            seconds += 1
            return seconds * 1_000_000_000
        }
    }
}
