// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Cancellation of nested groups, shields and suspension.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(1)))
struct GroupCancellationTests {
    @Test func `canceling a group cancels all operations in it, and each cause has the path to it`() async {
        let began = Gate()
        let leaf = HandDriven("leaf", windsDown: true, hooks: .init(main: { _ in began.open() }))
        let pending = HandDriven("pending")
        let album = GroupOperation(policy: .collectAll, width: 1).named("album 3")
        try? album.add([leaf, pending])
        let music = GroupOperation { group in try await group.run(album) }.named("music")
        music.start()
        await began.passage()
        music.cancel(because: .requested("the screen is gone"))
        #expect(music.isCancelled && album.isCancelled && leaf.isCancelled && pending.isCancelled)
        #expect(pending.isFinished && !leaf.isFinished && !album.isFinished && !music.isFinished)
        #expect(music.cancellationCause == .requested("the screen is gone"))
        #expect(album.cancellationCause?.path == ["music"] && leaf.cancellationCause?.path == ["music", "album 3"])
        #expect(
            leaf.cancellationCause?.description
                == "[groupCancelled] The operation was canceled with its group (music › album 3). ← [groupCancelled] "
                + "The operation was canceled with its group (music). ← [requested] the screen is gone")
        leaf.finish(withResult: 1)
        await music.ended()
        #expect(album.isFinished && leaf.isFinished)
    }

    @Test func `canceling a group before its start cancels its children, which end before it`() async {
        let order = EventRecorder<String>()
        let leaf = ClosureOperation { 1 }.named("leaf")
        let inner = GroupOperation(policy: .failFast).named("inner")
        let outer = GroupOperation(policy: .failFast).named("outer")
        try? inner.add(leaf)
        try? outer.add(inner)
        for operation in [leaf, inner, outer] as [ManagedOperation] {
            operation.whenEnded { order.record(operation.name ?? "") }
        }
        outer.cancel()
        #expect(order.events == ["leaf", "inner"])
        outer.start()
        #expect(order.events == ["leaf", "inner", "outer"])
        #expect(leaf.cancellationCause?.path == ["outer", "inner"])
        #expect(throws: OperationSetupError.self) { try outer.add(ClosureOperation { 1 }) }
    }

    @Test func `a group canceled before its start cancels shielded children and refuses new ones`() throws {
        let order = EventRecorder<String>()
        let group = GroupOperation(policy: .failFast)
        let (first, late) = (HandDriven("first"), HandDriven("late"))
        for operation in [first, late, group] as [ManagedOperation] {
            operation.whenEnded { order.record(operation === group ? "group" : operation.name ?? "") }
        }
        try group.add(first, isShielded: true)
        group.cancel()
        #expect(first.isFinished && first.cancellationCause?.code == .groupCancelled)
        #expect(throws: OperationSetupError.self) { try group.add(late, isShielded: true) }
        group.start()
        #expect(order.events == ["first", "group"] && late.state == .notStarted)
        // The observer keeps the operation alive until its end.
        late.cancel()
        late.start()
    }

    @Test func `a nested group that begins while it is canceled has the cause of its outer group`() throws {
        let workers = ManualWorkers()
        let queue = workers.makeQueue(width: 2)
        let leaf = HandDriven("leaf")
        let inner = GroupOperation(policy: .failFast).named("inner")
        let outer = GroupOperation(policy: .failFast).named("outer")
        try inner.add(leaf)
        try outer.add(inner)
        try queue.add(outer)
        #expect(workers.step() && !inner.isExecuting)
        // The child of the inner group is canceled, but the inner group itself is not canceled yet.
        let isUndecided = Locked(false)
        leaf.whenEnded {
            isUndecided.withLock { $0 = !inner.isCancelled }
            workers.step()
        }
        outer.cancel()
        workers.runAll()
        #expect(isUndecided.withLock { $0 })
        #expect(outer.isFinished && inner.cancellationCause?.path == ["outer"])
        #expect(inner.cancellationCause?.code == .groupCancelled)
    }

    @Test func `the sibling of a failed child is canceled with that failure as its cause`() async {
        let (failing, waiting) = (HandDriven("failing"), HandDriven("waiting"))
        let group = GroupOperation.all([failing, waiting]).named("both")
        await group.start(untilExecuting: failing)
        failing.finish(withError: .first)
        await group.ended()
        let cause = waiting.cancellationCause
        #expect(cause?.code == .groupFailed && cause?.path == ["both"] && cause?.underlyingError as? Flaw == .first)
        #expect(group.outcome?.error?.child?.name == "failing" && group.outcome?.error?.siblings.isEmpty == true)
    }

    @Test func `the child of a group that fails because of a dependency has the code groupFailed`() async throws {
        let (before, child) = (HandDriven.started(), HandDriven())
        let group = GroupOperation<Int, Flaw> { group async throws(Flaw) in 1 }
        try group.add(child)
        try group.depend(on: before, otherwise: .fail { _ in .second })
        group.start()
        before.finish(withError: .first)
        await group.ended()
        #expect(group.outcome == .failure(.second) && child.cancellationCause?.code == .groupFailed)
    }

    @Test func `a shielded part completes despite a cancellation, and the group ends after it`() async {
        let (began, gate) = (Gate(), Gate())
        let group = GroupOperation { group in
            try await group.shield { group in
                began.open()
                await gate.passage()
                let number = try await group.run(ClosureOperation { 5 })
                return Task.isCancelled ? 0 : number
            }
        }
        let outer = GroupOperation { scope in
            try scope.add(group)
            return try await scope.run(ClosureOperation { 1 })
        }
        outer.start()
        await began.passage()
        outer.cancel()
        #expect(group.isCancelled && !group.isFinished && !outer.isFinished)
        gate.open()
        await outer.ended()
        #expect(group.isFinished && outer.isCancelled)
    }

    @Test func `a shield can be entered after the cancellation`() async throws {
        let began = Gate()
        let saved = Locked(0)
        let group = GroupOperation { group in
            do {
                _ = try await group.run(HandDriven(hooks: .init(main: { _ in began.open() })))
            } catch {
                let number = try await group.shield { try await $0.run(TaskOperation { Task.isCancelled ? 0 : 7 }) }
                saved.withLock { $0 = number }
                throw error
            }
        }
        group.start()
        await began.passage()
        await group.cancelAndEnd()
        #expect(saved.withLock { $0 } == 7 && group.cancellationCause == .requested)
        let isSynchronousRight = try await TestThread.run {
            let value = Locked(0)
            let cancel = Locked<@Sendable () -> Void>({})
            let group = GroupOperation(synchronous: { group in
                _ = try? group.perform(HandDriven(hooks: .init(main: { _ in cancel.withLock { $0 }() })))
                let number = try group.shield { try $0.perform(ClosureOperation { 8 }) }
                value.withLock { $0 = number }
            })
            cancel.withLock { cancel in cancel = { [weak group] in group?.cancel() } }
            let queue = QueueManager(width: 1)
            try queue.add(group)
            group.waitUntilFinished()
            return value.withLock { $0 } == 8 && group.isCancelled
        }
        #expect(isSynchronousRight)
    }

    @Test func `a shielded wait for an operation outside the group continues after a cancellation`() async {
        let stranger = HandDriven("stranger")
        stranger.start()
        let got = Locked(0)
        let group = GroupOperation { group in
            let number = try await group.shield { try await $0.run(stranger) }
            got.withLock { $0 = number }
        }
        group.start()
        while group.externalWaitCount == 0 { await Task.yield() }
        group.cancel()
        #expect(group.externalWaitCount == 1 && !group.isFinished)
        stranger.finish(withResult: 4)
        await group.ended()
        #expect(got.withLock { $0 } == 4 && group.isCancelled)
    }

    @Test func `a shielded child continues after a cancellation, and a child added later is canceled`() async throws {
        let (kept, gone) = (HandDriven("kept"), HandDriven("gone"))
        let group = GroupOperation(policy: .failFast)
        try group.add(kept, isShielded: true)
        try group.add(gone)
        await group.start(untilExecuting: kept)
        group.cancel()
        #expect(gone.isCancelled && !kept.isCancelled && !group.isFinished)
        let late = HandDriven("late")
        try group.add(late)
        #expect(late.isFinished && late.cancellationCause?.code == .groupCancelled)
        kept.finish(withResult: 1)
        await group.ended()
        #expect(group.outcome?.cancellationCause == .requested && kept.outcome == .success(1))
    }

    @Test(arguments: [false, true])
    func `a cancellation ends all waiting children before it cancels one that runs`(haveHandlers: Bool) async throws {
        let waiting = (0..<100).map { HandDriven("\($0)") }
        // A child with a completion block does not end in the same step as the others.
        if haveHandlers { waiting.forEach { $0.completionBlock = {} } }
        let areEnded = Locked(false)
        let running = HandDriven(
            hooks: .init(cancel: { _ in areEnded.withLock { $0 = waiting.allSatisfy(\.isFinished) } }))
        let group = GroupOperation(policy: .collectAll, on: QueueManager(width: 1))
        try group.add([running] + waiting)
        await group.start(untilExecuting: running)
        group.cancel()
        #expect(areEnded.withLock { $0 } && waiting.allSatisfy { $0.calls.events.isEmpty })
        await group.ended()
    }

    @Test func `a shielded child that gets a free slot during the cancellation continues`() async throws {
        let queue = QueueManager(width: 1)
        let group = GroupOperation(policy: .collectAll, on: queue)
        let (kept, last) = (HandDriven("kept"), HandDriven("last"))
        last.queuePriority = .veryHigh
        // The closure of the first child is released before the cancellation reaches the slot of the last one.
        let freeSlot: @Sendable () -> Void = { [weak group] in
            let isFree = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                last.finish(withResult: 1)
                isFree.signal()
            }
            isFree.wait()
            try? group?.add(kept, isShielded: true)
        }
        try group.add(ClosureOperation { [word = LastWord(freeSlot)] in withExtendedLifetime(word) { 1 } })
        try group.add((0..<80).map { HandDriven("\($0)") } + [last])
        queue.isSuspended = true
        group.start()
        while queue.counts.ready < 82 { await Task.yield() }
        queue.isSuspended = false
        while last.state != .executing { await Task.yield() }
        group.cancel()
        #expect(last.outcome == .success(1) && !kept.isCancelled && !group.isFinished)
        await kept.finishOnceBegun(withResult: 2)
        await group.ended()
        #expect(kept.outcome == .success(2) && group.isCancelled)
    }

    @Test func `a suspended group begins no children, and its body keeps waiting`() async throws {
        let queue = QueueManager("hold")
        let began = Gate()
        let went = Locked(false)
        let first = HandDriven("first", hooks: .init(main: { _ in began.open() }))
        let second = HandDriven("second", hooks: .init(main: { $0.finish(withResult: 2) }))
        let group = GroupOperation { group in
            let number = try await group.run(first)
            went.withLock { $0 = true }
            return try await number + group.run(second)
        }
        try queue.add(group)
        await began.passage()
        #expect(group.suspend() && first.state == .suspended && first.calls.events == ["main", "suspend"])
        await first.finishAndEnd(withResult: 1)
        #expect(!went.withLock { $0 } && second.state == .notStarted)
        let late = HandDriven("late", hooks: .init(main: { $0.finish(withResult: 3) }))
        try group.add(late)
        #expect(late.state == .notStarted)
        #expect(group.resume())
        await group.ended()
        #expect(group.outcome?.result == 3 && late.outcome == .success(3))
    }

    @Test func `children in a queue do not begin while their group is suspended, and can be canceled`() async throws {
        let queue = QueueManager("hold", width: 1)
        let blocker = HandDriven("blocker")
        try queue.add(blocker)
        let children = (0..<3).map { HandDriven("\($0)", hooks: .init(main: { $0.finish(withResult: 1) })) }
        let group = GroupOperation.all(children, on: queue)
        group.start()
        #expect(group.suspend())
        blocker.finish(withResult: 0)
        let probe = ClosureOperation { 1 }
        try queue.add(probe)
        await probe.ended()
        #expect(children.allSatisfy { $0.state == .notStarted })
        #expect(queue.explain(children[0]).contains("its group is suspended"))
        children[0].cancel()
        await children[0].ended()
        await group.ended()
        #expect(children.allSatisfy(\.isCancelled) && group.outcome?.error?.child?.name == "0")
    }

    @Test func `a timeout of a group is the cause of its cancellation and that of its children`() async {
        let clock = ManualClock()
        let child = HandDriven("child")
        let group = GroupOperation.all([child]).named("timed")
        group.clock = clock
        group.timeout = .seconds(5)
        await group.start(untilExecuting: child)
        clock.advance(by: .seconds(5))
        await group.ended()
        #expect(group.cancellationCause?.code == .timedOut)
        #expect(child.cancellationCause?.underlyingCause?.code == .timedOut)
    }

    @Test func `a child of a group cannot be added to another group or a queue`() throws {
        let child = HandDriven("child")
        let group = GroupOperation(policy: .failFast)
        try group.add(child)
        #expect(throws: OperationSetupError.self) { try QueueManager().add(child) }
        let other = GroupOperation(policy: .failFast)
        let nested = #expect(throws: OperationSetupError.self) { try other.add(child) }
        #expect(nested?.code == .alreadyAdded && nested?.message.contains("it is already a child") == true)
        child.startIfNeeded()
        #expect(child.state == .notStarted)
        #expect(QueueManager().explain(child).contains("a child of a group"))
        let queued = HandDriven("queued")
        let queue = QueueManager.suspended()
        try queue.add(queued)
        let held = #expect(throws: OperationSetupError.self) { try group.add(queued) }
        #expect(held?.code == .alreadyAdded && held?.message.contains("it is in a queue") == true)
        let started = HandDriven("started")
        started.start()
        #expect { try group.add(started) } throws: { ($0 as? OperationSetupError)?.code == .alreadyStarted }
        started.finish(withResult: 1)
        #expect { try group.add(started) } throws: { ($0 as? OperationSetupError)?.code == .alreadyFinished }
    }
}
