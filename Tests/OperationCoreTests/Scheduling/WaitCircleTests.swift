// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// A reference from a body to an operation that is created after it.
private final class Reference<Kind: ManagedOperation>: Sendable {
    private let kept = Locked<Kind?>(nil)

    var operation: Kind? {
        get { kept.withLock { $0 } }
        set { kept.withLock { $0 = newValue } }
    }
}

/// A body that waits for itself, directly or through others, gets an error if the call throws, and otherwise a notice.
///
/// Without this, each of these tests would wait forever.
@Suite("Circular waits", .timeLimit(.minutes(3)))
struct WaitCircleTests {
    @Test(arguments: StartingWay.allCases)
    func `a body that waits for its own operation gets an error`(way: StartingWay) async throws {
        let (errors, reference, starter) = (EventRecorder<any Error>(), Reference<Closure>(), Starter(way))
        let operation = blocking("own", errors) { _ = try reference.operation?.startAndWait() }
        reference.operation = operation
        if way == .byHand {
            let started = operation
            _ = try await TestThread.run { try started.startAndWait() }
        } else {
            try starter.start(operation)
        }
        #expect(try await operation.value == 1)
        #expect(isCircle(errors.events[0], "own", "own"))
    }

    @Test func `a TaskOperation that awaits itself gets an error and is not canceled`() async throws {
        let reference = Reference<Body>()
        let operation = Body {
            do {
                return try await reference.operation?.value ?? 0
            } catch {
                return isCircle(error, "own task", "own task") ? 1 : 2
            }
        }.named("own task")
        reference.operation = operation
        #expect(try await operation.run() == 1)
    }

    @Test func `a shared run that requests its own key gets an error, directly or through another key`() async throws {
        let (errors, shared) = (EventRecorder<any Error>(), SharedOperations<String, Int, any Error>())
        let onThread = { @Sendable in
            blocking("run on thread", errors) {
                _ = try shared.operation(for: "thread") { Closure { 2 } }.startAndWait()
            }
        }
        let inTask = { @Sendable () -> Body in
            let run = Body {
                let other = shared.operation(for: "other") {
                    Body { try await shared.operation(for: "task") { Body { 2 } }.run() }
                }
                do { _ = try await other.run() } catch { errors.record(error) }
                return 1
            }.named("run in task")
            return run
        }
        #expect(try await shared.operation(for: "thread", make: onThread).run() == 1)
        #expect(try await shared.operation(for: "task", make: inTask).run() == 1)
        #expect(errors.count == 2 && errors.events.allSatisfy { isCircle($0, "run ") })
    }

    @Test func `a child at any depth that waits for its own group gets an error`() async throws {
        let errors = EventRecorder<any Error>()
        let reference = Reference<GroupOperation<(Int, Int), GroupFailure>>()
        let onThread = blocking("child", errors) { _ = try reference.operation?.startAndWait() }
        let inTask = Body {
            do { _ = try await reference.operation?.value } catch { errors.record(error) }
            return 2
        }
        let inner = GroupOperation.all([onThread], combine: { $0[0] })
        let group = GroupOperation.all(inner, inTask).named("group")
        reference.operation = group
        #expect(try await group.run() == (1, 2))
        #expect(errors.events.count == 2 && errors.events.allSatisfy { isCircle($0, "group") })
    }

    @Test func `a task in one of many groups that awaits their outer group gets an error`() async throws {
        let errors = EventRecorder<any Error>()
        let reference = Reference<GroupOperation<[[Int]], GroupFailure>>()
        let groups = (0..<100).map { number in
            GroupOperation.all([
                Body {
                    guard number == 99 else { return 1 }
                    do { _ = try await reference.operation?.value } catch { errors.record(error) }
                    return 2
                }
            ])
        }
        let group = GroupOperation.all(groups).named("around many")
        reference.operation = group
        #expect(try await group.run().last == [2])
        #expect(errors.events.count == 1 && errors.events.allSatisfy { isCircle($0, "around many") })
    }

    @Test func `a group's body that waits for the group, directly or through a child, gets an error`() async throws {
        let (errors, reference) = (EventRecorder<any Error>(), Reference<GroupOperation<Int, GroupFailure>>())
        let child = Closure { 1 }
        let group = GroupOperation<Int, GroupFailure>(synchronous: { group in
            do { _ = try reference.operation?.startAndWait() } catch { errors.record(error) }
            let last = Closure { 2 }
            last.addDependency(child)
            // The child is never started before the group has ended.
            if let group = reference.operation { child.addDependency(group) }
            do { _ = try group.perform(last) } catch { errors.record(error) }
            return 3
        }).named("body")
        reference.operation = group
        #expect(try await group.run() == 3)
        #expect(errors.events.count == 2 && errors.events.allSatisfy { isCircle($0, "body") })
        child.cancel()
        child.start()
    }

    /// The ways in which a child gets into its group.
    enum Joining: CaseIterable { case declared, narrow, run, added }

    @Test(arguments: Joining.allCases, [false, true])
    func `a child that depends on its group, directly or through another operation, is canceled`(
        joining: Joining, isIndirect: Bool
    ) async throws {
        let child = Closure { 1 }.named("child"), between = Closure { 2 }.named("between")
        func connect(_ group: ManagedOperation) {
            group.name = "group"
            (isIndirect ? between : child).addDependency(group)
            if isIndirect { child.addDependency(between) }
        }
        switch joining {
        case .declared, .narrow:
            let group = GroupOperation.outcomes(of: [child, Closure { 3 }], width: joining == .narrow ? 1 : nil)
            connect(group)
            #expect(try await group.run().map(\.result) == [nil, 3])
        case .run:
            let group = GroupOperation<Int, any Error> { group in try await group.run(child) }
            connect(group)
            await #expect(throws: OperationFailure<any Error>.self) { try await group.run() }
        case .added:
            let group = GroupOperation<Int, any Error> { group in
                try group.add(child)
                return 4
            }
            connect(group)
            #expect(try await group.run() == 4)
        }
        let cause = child.cancellationCause
        #expect(cause?.code == .waitsForItself)
        #expect(cause?.message.contains(isIndirect ? "child → between → group" : "child → group") == true)
        between.start()
    }

    @Test func `a child that depends on its group is canceled even if the group needs only one child`() async throws {
        let child = Closure { 1 }, failing = Closure { throw Flaw.first }
        let group = GroupOperation.firstSuccess(of: [child, failing])
        child.addDependency(group)
        await #expect(throws: OperationFailure<GroupFailure>.self) { try await group.run() }
        #expect(child.cancellationCause?.code == .waitsForItself)
    }

    @Test func `children that depend on a group are canceled in the group and in a group in it`() async throws {
        let inmost = Closure { 1 }, direct = Closure { 2 }, between = Closure { 3 }
        let group = GroupOperation(policy: .collectAll)
        try group.add(GroupOperation.all([inmost]))
        try group.add(direct)
        inmost.addDependency(group)
        between.addDependency(group)
        direct.addDependency(between)
        await group.startAndEnd()
        #expect(inmost.cancellationCause?.code == .waitsForItself)
        #expect(direct.cancellationCause?.code == .waitsForItself)
        between.start()
    }

    @Test func `a child waits for an operation that starts later, although others depend on its group`() async throws {
        let outside = Closure { 1 }, child = Closure { 2 }, after = Closure { 3 }
        child.addDependency(outside)
        let group = GroupOperation.all([child])
        after.addDependency(group)
        group.start()
        after.start()
        #expect(group.outcome == nil && child.cancellationCause == nil)
        outside.start()
        #expect(try await group.value == [2])
        #expect(try await after.value == 3)
    }

    @Test func `if two bodies wait for each other, at least one of them gets an error`() async throws {
        let (queue, errors) = (QueueManager("two bodies", width: 2), EventRecorder<any Error>())
        let (reference, gates) = (Reference<Closure>(), [Gate(), Gate()])
        let first = blocking("first", errors) {
            gates[0].open()
            gates[1].wait()
            _ = try reference.operation?.startAndWait()
        }
        let second = blocking("second", errors) {
            gates[1].open()
            gates[0].wait()
            _ = try first.startAndWait()
        }
        reference.operation = second
        try await queue.addAndDrain([first, second])
        #expect(errors.events.count >= 1)
        #expect(errors.events.allSatisfy { isCircle($0, "first") || isCircle($0, "second") })
    }

    @Test
    func `a circular wait through a body, a dependency, a mapped operation and a category is detected`() async throws {
        let (errors, category) = (EventRecorder<any Error>(), OperationCategory("held"))
        let (queue, reference, gate) = (QueueManager("long circle"), Reference<Closure>(), Gate())
        let holder = blocking("holder", errors) {
            gate.wait()
            _ = try reference.operation?.mapResult { $0 }.startAndWait()
        }
        holder.categories = [category]
        let wanting = Closure { 1 }.named("wanting")
        wanting.categories = [category]
        let last = Closure { 2 }
        last.addDependency(wanting)
        reference.operation = last
        try queue.add(holder)
        #expect(await eventually { category.holders == [holder] })
        try queue.add(wanting)
        #expect(await eventually { category.waitingCount == 1 })
        gate.open()
        #expect(try await last.value == 2)
        #expect(errors.events.count == 1 && isCircle(errors.events[0], "wanting", "holder"))
    }

    @Test func `waiting for an operation that needs a category held by the waiter or its group throws`() async throws {
        let (errors, category) = (EventRecorder<any Error>(), OperationCategory("its own"))
        @Sendable func wanting() -> Closure {
            let operation = Closure { 1 }
            operation.categories = [category]
            return operation
        }
        let holder = blocking("holder", errors) {
            let inner = wanting()
            defer { inner.cancel() }
            try inner.startAndWait()
        }
        holder.categories = [category]
        #expect(try await holder.run() == 1)
        await holder.ended()
        let child = blocking("child", errors) {
            let inner = wanting()
            defer { inner.cancel() }
            try inner.startAndWait()
        }
        let group = GroupOperation.all([child])
        group.categories = [category]
        #expect(try await group.run() == [1])
        #expect(errors.events.count == 2)
        #expect(isCircle(errors.events[0], "holder") && isCircle(errors.events[1], "child"))
    }

    @Test func `if two bodies hold a category of two and wait for it again, one gets an error`() async throws {
        let (errors, category) = (EventRecorder<any Error>(), OperationCategory("for two", limit: 2))
        let (queue, gate) = (QueueManager("for two", width: 2), Gate())
        let holders = [0, 1].map { number in
            let holder = blocking("holder \(number)", errors) {
                if number == 1 { gate.wait() }
                let inner = Closure { 1 }.named("inner \(number)")
                inner.categories = [category]
                defer { inner.cancel() }
                try inner.startAndWait()
            }
            holder.categories = [category]
            return holder
        }
        try queue.add([holders[1]])
        #expect(await eventually { category.holders.count == 1 })
        try queue.add([holders[0]])
        #expect(await eventually { category.holders.count == 2 && category.waitingCount == 1 })
        #expect(errors.events.isEmpty)
        gate.open()
        #expect(await eventually { holders.allSatisfy(\.isFinished) })
        // The body of holder 0 may detect the circle at the same time as the body of holder 1, or later.
        #expect([1, 2].contains(errors.events.count))
        #expect(
            errors.events.allSatisfy { isCircle($0, "holder 1", "inner 1") || isCircle($0, "holder 0", "inner 0") })
        for waiter in category.waiters { waiter.cancel() }
        await queue.drained()
    }

    @Test
    func `if two groups hold a category that their children need, a child is canceled and both end`() async throws {
        let category = OperationCategory("for two groups", limit: 2)
        let first = HandDriven("before both")
        let children = [0, 1].map { _ in
            let child = Closure { 1 }
            child.categories = [category]
            child.addDependency(first)
            return child
        }
        let groups = children.map { child in
            let group = GroupOperation.all([child])
            group.categories = [category]
            return group
        }
        for group in groups { group.start() }
        #expect(await eventually { category.holders.count == 2 })
        first.startAndFinish(withResult: 1)
        #expect(await eventually { groups.allSatisfy(\.isFinished) })
        #expect(children.contains { $0.cancellationCause?.code == .waitsForItself })
        for group in groups { group.cancel() }
    }

    private enum Call: CaseIterable {
        case startAndWait, perform, performElsewhere, waitUntilFinished
    }

    @Test(arguments: Call.allCases)
    private func `a circular wait that arises while a body already waits is detected later`(call: Call) async throws {
        let (clock, errors) = (ManualClock(), EventRecorder<any Error>())
        let hold = HandDriven("hold"), awaited = Closure { 1 }
        let name = "awaited by \(call)"
        awaited.name = name
        awaited.clock = clock
        awaited.addDependency(hold)
        let notices = NoticeHub.recorder(for: name)
        let body: ManagedOperation
        switch call {
        case .startAndWait: body = blocking("early", errors) { _ = try awaited.startAndWait() }
        case .waitUntilFinished:
            body = blocking("early", errors) {
                awaited.start()
                awaited.waitUntilFinished()
            }
        case .perform, .performElsewhere:
            let group = GroupOperation<Int, GroupFailure>(synchronous: { group in
                if call == .performElsewhere { awaited.start() }
                do { _ = try group.perform(awaited) } catch { errors.record(error) }
                return 1
            }).named("early")
            body = group
        }
        DispatchQueue.global().async { body.start() }
        #expect(await eventually { clock.pendingCount == 1 })
        clock.advance(by: .seconds(1))
        #expect(clock.pendingCount == 1 && errors.events.isEmpty && notices.events.isEmpty)
        hold.addDependency(body)
        clock.advance(by: .seconds(2))
        if call == .waitUntilFinished {
            #expect(notices.events.count == 1)
            #expect(notices.events.first?.kind == .waitsForItself)
            #expect(notices.events.first?.message.contains("early → \(name) → hold → early") == true)
        } else {
            #expect(await eventually { errors.events.count == 1 })
            #expect(errors.events.allSatisfy { isCircle($0, "early", name, "hold") })
        }
        #expect(clock.pendingCount == 0)
        hold.cancel()
        hold.start()
        await body.ended()
        await awaited.ended()
    }

    @Test func `a circular wait through a category that is requested after a delay is detected later`() async throws {
        let (clock, errors) = (ManualClock(), EventRecorder<any Error>())
        let category = OperationCategory("wanted later")
        let inner = Closure { 1 }
        inner.clock = clock
        inner.startDelay = .milliseconds(500)
        inner.categories = [category]
        let holder = blocking("holder", errors) { try inner.startAndWait() }
        holder.categories = [category]
        DispatchQueue.global().async { holder.start() }
        #expect(await eventually { clock.pendingCount == 2 })
        clock.advance(by: .seconds(1))
        #expect(await eventually { holder.isFinished })
        #expect(errors.events.count == 1 && errors.events.allSatisfy { isCircle($0, "holder") })
        inner.cancel()
        await holder.ended()
    }

    @Test func `a later check leaves no timer even if the previous timer fired while it was set`() async throws {
        let clock = HookClock(), awaited = HandDriven("awaited")
        awaited.clock = clock
        awaited.start()
        let body = Closure {
            awaited.waitUntilFinished()
            return 1
        }
        clock.afterNextSchedule { clock.manual.advance(by: .seconds(1)) }
        DispatchQueue.global().async { body.start() }
        #expect(await eventually { clock.pendingCount == 1 && clock.manual.now.offset == .seconds(1) })
        awaited.finish(withResult: 1)
        await body.ended()
        #expect(clock.pendingCount == 0)
    }

    @Test(arguments: [false, true])
    func `a wait for an operation behind a barrier that waits for the body gets an error`(isChild: Bool) async throws {
        let queue = QueueManager("barrier", width: 2), clock = ManualClock(), errors = EventRecorder<any Error>()
        let began = Gate(), isAdded = Gate(), behind = Closure { 1 }.named("behind")
        behind.clock = clock
        let group = GroupOperation<Int, any Error>(on: queue) { scope in
            let body = Body {
                began.open()
                await isAdded.passage()
                do { _ = try await isChild ? scope.run(behind) : behind.value } catch { errors.record(error) }
                return 2
            }
            return try await scope.run(body.named("body"))
        }
        group.startAndKeepAlive()
        await began.passage()
        try queue.addBarrier(Closure { 3 }.named("barrier"))
        if !isChild { try queue.add(behind) }
        isAdded.open()
        #expect(await eventually { clock.pendingCount == 1 })
        clock.advance(by: .seconds(1))
        #expect(try await group.value == 2)
        await queue.drained()
        #expect(isCircle(errors.events[0], "body", "behind", "barrier", "body") && behind.isCancelled == isChild)
    }

    @Test func `a circular wait of 500 operations is detected later`() async throws {
        let (clock, errors) = (ManualClock(), EventRecorder<any Error>())
        let chain = (0..<500).map { _ in Closure { 1 } }
        for (earlier, later) in zip(chain, chain.dropFirst()) { later.addDependency(earlier) }
        chain[499].clock = clock
        let body = blocking("large", errors) { try chain[499].startAndWait() }
        chain[0].addDependency(body)
        DispatchQueue.global().async { body.start() }
        #expect(await eventually { clock.pendingCount == 1 })
        clock.advance(by: .seconds(1))
        #expect(await eventually { body.isFinished })
        #expect(errors.events.count == 1 && errors.events.allSatisfy { isCircle($0, "large") })
        for operation in chain { operation.cancel() }
        for operation in chain { operation.startIfNeeded() }
        await body.ended()
    }

    @Test func `a fail rule that waits for a sibling gets an error`() async throws {
        let errors = EventRecorder<any Error>()
        let bad = HandDriven("bad"), first = HandDriven("first"), second = HandDriven("second")
        let wait: @Sendable (HandDriven) -> Flaw = { other in
            do { _ = try other.startAndWait() } catch { errors.record(error) }
            return .second
        }
        // Whichever of the two rules runs first waits for the other operation.
        try first.depend(on: bad, otherwise: .fail { _ in wait(second) })
        try second.depend(on: bad, otherwise: .fail { _ in wait(first) })
        bad.start()
        try await TestThread.run { bad.finish(withError: .first) }
        #expect(first.outcome == .failure(.second) && second.outcome == .failure(.second))
        #expect(errors.events.contains { isCircle($0, "bad") })
        first.start()
        second.start()
    }

    @Test func `a circular wait in a call that cannot throw is reported as a notice and by explain`() async throws {
        let queue = QueueManager("noticed", width: 2)
        let dependent = Closure { 1 }.named("dependent of its waiter")
        let notices = NoticeHub.recorder(for: "dependent of its waiter")
        let waiter = Closure {
            dependent.waitUntilFinished()
            return 2
        }.named("waiter")
        dependent.addDependency(waiter)
        dependent.start()
        try queue.add(waiter)
        let notice = await notices.events(atLeast: 1)[0]
        #expect(notice.kind == .waitsForItself)
        #expect(notice.message.contains("waiter → dependent of its waiter → waiter"))
        #expect(
            queue.explain(waiter)
                == "waiter runs in queue noticed: its body waits for dependent of its waiter.")
        dependent.cancel()
        #expect(try await waiter.value == 2)
    }

    @Test func `waits that can end cause no error and no notice`() async throws {
        let (queue, errors) = (QueueManager("harmless", width: 2), EventRecorder<any Error>())
        let upstream = Closure { 1 }, awaited = Closure { 2 }
        awaited.addDependency(upstream)
        let body = blocking("body", errors) {
            // Only the second wait starts its operation.
            try queue.add(upstream)
            try queue.add(awaited)
            _ = try awaited.startAndWait()
            let group = GroupOperation.all([Closure { 3 }, Closure { 4 }])
            _ = try group.startAndWait()
        }
        try queue.add(body)
        #expect(try await body.value == 1 && errors.events.isEmpty)
        // An operation that another thread ends does not wait for its body.
        let own = HandDriven(
            "ended elsewhere",
            hooks: .init(main: { operation in
                DispatchQueue.global().async { operation.finish(withResult: 5) }
                operation.waitUntilFinished()
            }))
        #expect(try await own.run() == 5)
        // A race can be decided by another child.
        let reference = Reference<GroupOperation<Int, GroupFailure>>()
        let waiting = Body {
            await reference.operation?.ended()
            return 7
        }
        let race = GroupOperation.race([waiting, Body { 6 }]).named("race that is waited for")
        let notices = NoticeHub.recorder(for: "race that is waited for")
        reference.operation = race
        #expect(try await race.run() == 6 && notices.events.isEmpty)
    }
}
