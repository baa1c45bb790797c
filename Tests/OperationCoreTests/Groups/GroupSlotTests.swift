// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Groups in queues with few slots, which the children of the groups need.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(Rounds.minutes)))
struct GroupSlotTests {
    enum Form: CaseIterable {
        case task, thread, afterRun, shielded, nested, nestedThread, whileTaskWaits, shared

        func makeGroup() -> GroupOperation<Int, any Error> {
            switch self {
            case .task, .shared:
                GroupOperation { scope in
                    try scope.add(ClosureOperation { 1 })
                    return 2
                }
            case .thread:
                GroupOperation(synchronous: { scope in
                    try scope.add(ClosureOperation { 1 })
                    return 2
                })
            case .afterRun:
                GroupOperation { scope in
                    let one = try await scope.run(ClosureOperation { 1 })
                    try scope.add(ClosureOperation { 1 })
                    return one + 1
                }
            case .shielded:
                GroupOperation { scope in
                    try scope.shield { try $0.add(ClosureOperation { 1 }) }
                    throw Flaw.first
                }
            case .nested:
                GroupOperation { scope in
                    try scope.add(Form.task.makeGroup())
                    return 2
                }
            case .nestedThread:
                GroupOperation(synchronous: { scope in
                    _ = try scope.perform(Form.thread.makeGroup())
                    return 2
                })
            case .whileTaskWaits:
                GroupOperation { scope in
                    let begun = Gate(), first = ClosureOperation { 1 }, last = ClosureOperation { 1 }
                    // The group cannot end before the task has run its first child.
                    try last.depend(on: first, otherwise: .runAnyway)
                    try scope.add(last)
                    Task {
                        begun.open()
                        _ = try? await scope.run(first)
                        _ = try? await scope.run(ClosureOperation { 1 })
                    }
                    await begun.passage()
                    return 2
                }
            }
        }

        func makeOperation() -> AsyncOperation<Int, any Error> {
            guard self == .shared else { return makeGroup() }
            return SharedOperations<Int, Int, any Error>().operation(for: 1) { makeGroup() }
        }
    }

    @Test(arguments: Form.allCases, [1, 2])
    func `the children that a body leaves behind get the slot of their group`(form: Form, width: Int) async throws {
        let queue = QueueManager("narrow", width: width)
        let groups = (0..<width).map { _ in form.makeOperation() }
        try queue.add(groups)
        for group in groups { await group.ended() }
        #expect(groups.allSatisfy { ($0.outcome?.result == 2) == (form != .shielded) })
        await queue.drained()
        #expect(queue.counts.unended == 0 && queue.counts.resting == 0)
    }

    @Test(arguments: Form.allCases, [1, 4])
    func `a barrier that is a group runs its children`(form: Form, width: Int) async throws {
        let queue = QueueManager("barriers", width: width), group = form.makeOperation()
        let earlier = ClosureOperation { !group.isExecuting }, later = ClosureOperation { group.isFinished }
        try queue.add(earlier)
        try queue.addBarrier(group)
        try queue.add(later)
        await queue.drained()
        #expect((group.outcome?.result == 2) == (form != .shielded))
        #expect(earlier.outcome?.result == true && later.outcome?.result == true)
    }

    @Test(arguments: [1, 4])
    func `a barrier waits for a group that then still adds children`(width: Int) async throws {
        let queue = QueueManager("barriers", width: width), made = Gate(), isAdded = Gate()
        let group = GroupOperation.map(0..<20, width: 2) { number in
            TaskOperation {
                made.open()
                await isAdded.passage()
                return number
            }
        }
        let outer = GroupOperation<[Int], any Error> { try await $0.run(group) }
        let barrier = ClosureOperation { outer.isFinished }, later = ClosureOperation { barrier.isFinished }
        try queue.add(outer)
        await made.passage()
        try queue.addBarrier(barrier)
        try queue.add(later)
        isAdded.open()
        await queue.drained()
        #expect(outer.outcome?.result == Array(0..<20))
        #expect(barrier.outcome?.result == true && later.outcome?.result == true)
    }

    @Test func `a barrier waits for a shared operation whose run is added later`() async throws {
        let queue = QueueManager("barriers", width: 1), blocker = HandDriven("blocker")
        let flights = SharedOperations<Int, Int, any Error>(on: queue)
        let operation = flights.operation(for: 1) { ClosureOperation { 2 } }
        let barrier = ClosureOperation { operation.isFinished }
        try queue.add([blocker, operation])
        try queue.addBarrier(barrier)
        blocker.finish(withResult: 1)
        await queue.drained()
        #expect(operation.outcome?.result == 2 && barrier.outcome?.result == true)
    }

    @Test(arguments: [false, true])
    func `a barrier waits for a shared operation whose run was added behind it`(isCreating: Bool) async throws {
        let queue = QueueManager("barriers", width: 1), blocker = HandDriven("blocker"), made = Gate(), joined = Gate()
        let flights = SharedOperations<Int, Int, any Error>(on: queue)
        let inside = flights.operation(for: 1) { ClosureOperation { 2 } }
        let outside = flights.operation(for: 1) {
            made.open()
            if isCreating { joined.wait() }
            return ClosureOperation { 2 }
        }
        let barrier = ClosureOperation { inside.isFinished && outside.isFinished }
        try queue.add([blocker, inside])
        try queue.addBarrier(barrier)
        DispatchQueue.global().async { outside.start() }
        await made.passage()
        #expect(await eventually { queue.counts.unended == (isCreating ? 3 : 4) })
        blocker.finish(withResult: 1)
        if isCreating { #expect(await eventually { queue.counts.resting == 1 }) }
        joined.open()
        await queue.drained()
        #expect(inside.outcome?.result == 2 && outside.outcome?.result == 2 && barrier.outcome?.result == true)
    }

    @Test(arguments: [false, true])
    func `a barrier waits for a shared operation whose run shares a run behind the barrier`(
        beginsLate: Bool
    ) async throws {
        let queue = QueueManager("barriers", width: 1), blocker = HandDriven("blocker"), late = HandDriven("late")
        let inner = SharedOperations<Int, Int, any Error>(on: queue), outer = SharedOperations<Int, Int, any Error>()
        let make = { @Sendable () -> TypedOperation<Int, any Error> in
            let run = inner.operation(for: 1) { ClosureOperation { 2 } }
            if beginsLate { run.addDependency(late) }
            return run
        }
        let inside = outer.operation(for: 1, make: make), outside = outer.operation(for: 1, make: make)
        let barrier = ClosureOperation { inside.isFinished }
        try queue.add([blocker, inside])
        if beginsLate {
            blocker.finish(withResult: 1)
            #expect(await eventually { queue.counts.resting == 1 })
            try queue.addBarrier(barrier)
            late.startAndFinish(withResult: 1)
        } else {
            try queue.addBarrier(barrier)
            outside.start()
            #expect(queue.counts.unended == 4)
            blocker.finish(withResult: 1)
        }
        await queue.drained()
        #expect(inside.outcome?.result == 2 && barrier.outcome?.result == true)
    }

    @Test func `a group that is canceled after its body returned occupies no slot`() async throws {
        let queue = QueueManager("narrow", width: 1), child = HandDriven("child", windsDown: true)
        let group = GroupOperation<Int, any Error> { scope in
            try scope.add(child)
            return 2
        }
        try queue.add(group)
        // The child gets the slot only when the body has returned.
        _ = await child.calls.events(atLeast: 1)
        group.cancel()
        #expect(child.isCancelled && !group.isFinished && !group.engineIsRunningBody)
        child.finish(withResult: 1)
        await queue.drained()
        #expect(group.isFinished && queue.counts.unended == 0 && queue.counts.resting == 0)
    }

    @Test(arguments: [1, 2])
    func `a closure of a map that waits does not take the slot of the children`(width: Int) async throws {
        let queue = QueueManager("narrow", width: width)
        let groups = (0..<width).map { _ in
            GroupOperation.map([1, 2], width: 2) { number in
                _ = try? TaskOperation { number }.startAndWait()
                return ClosureOperation { number }
            }
        }
        try queue.add(groups)
        for group in groups { await group.ended() }
        await queue.drained()
        #expect(groups.allSatisfy { $0.outcome?.result == [1, 2] })
    }

    @Test func `a child that is added to an empty group at its start gets the slot of the group`() async throws {
        let queue = QueueManager("narrow", width: 1)
        for round in 0..<Rounds.count(ci: 2_000, soak: 200_000) {
            let group = GroupOperation(policy: .collectAll)
            let child = ClosureOperation { 1 }
            try queue.add(group)
            for _ in 0..<round % 50 { _ = group.state }
            let isTaken = (try? group.add(child)) != nil
            await group.ended()
            #expect(child.isFinished == isTaken)
        }
        await queue.drained()
    }

    @Test func `a body that runs children on its thread leaves nothing behind in the line of the group`() {
        var machine = GroupMachine(policy: .collectAll, hasBody: true)
        _ = machine.start()
        for _ in 0..<10_000 {
            guard case .taken(let slot) = machine.add() else { return unmet("the child was not taken") }
            let isTaken = machine.take(slot)
            #expect(isTaken)
            _ = machine.ended(slot, .success)
        }
        #expect(machine.lineCount <= 64)
    }

    @Test func `a child does not take the place of a canceled child in the line`() {
        var machine = GroupMachine(policy: .collectAll, width: 1)
        for _ in 0..<3 { _ = machine.add() }
        _ = machine.start()
        let first = machine.takeNext()
        _ = machine.activateImmediately(1)
        _ = machine.ended(1, .cancelled)
        // The new child gets the number of the canceled one.
        let new = machine.add()
        _ = machine.ended(0, .success)
        let second = machine.takeNext()
        _ = machine.ended(2, .success)
        let third = machine.takeNext()
        #expect(new == .taken(1) && [first, second, third] == [0, 2, 1])
    }

    @Test func `canceled waits for an operation outside of the group leave no actions behind`() async throws {
        let other = HandDriven("other")
        other.start()
        let group = GroupOperation { scope in
            for _ in 0..<100 {
                let wait = Task { try await scope.run(other) }
                while other.endActionCount == 0 { await Task.yield() }
                wait.cancel()
                _ = await wait.result
            }
            return other.endActionCount
        }
        #expect(try await group.run() <= 1)
        other.finish(withResult: 1)
    }

    /// A pool whose threads may not wait.
    private struct FullPool: ThreadOwner {
        func threadWillWait() -> Bool { false }
        func threadDidWait() {}
    }

    @Test func `refused waits for an operation outside of the group leave nothing behind`() {
        let other = HandDriven.started()
        let group = GroupOperation(synchronous: { scope in
            for _ in 0..<100 { _ = try? scope.perform(other) }
            return scope.engine.externalWaitCount
        })
        BorrowedThread.run(by: FullPool()) { group.start() }
        #expect(group.outcome?.result == 0)
        other.finish(withResult: 1)
    }
}
