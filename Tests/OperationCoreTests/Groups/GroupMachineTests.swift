// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct GroupMachineTests {
    private func started(
        _ policy: GroupPolicy, children: Int, width: Int? = nil, isFixed: Bool = true
    ) -> (GroupMachine, [GroupMachine.Slot]) {
        var machine = GroupMachine(policy: policy, width: width, isFixed: isFixed)
        for _ in 0..<children { _ = machine.add() }
        _ = machine.start()
        var slots: [GroupMachine.Slot] = []
        while let slot = machine.takeNext() { slots.append(slot) }
        return (machine, slots)
    }

    @Test func `children wait until the start, and then begin in order as the width allows`() {
        var machine = GroupMachine(policy: .failFast, width: 2)
        for _ in 0..<4 { _ = machine.add() }
        #expect(machine.takeNext() == nil)
        #expect(machine.start() && !machine.start())
        #expect([machine.takeNext(), machine.takeNext(), machine.takeNext()] == [0, 1, nil])
        _ = machine.ended(1, .success)
        #expect([machine.takeNext(), machine.takeNext()] == [2, nil])
    }

    @Test func `a ready child is held by the width while all slots are taken`() {
        var machine = GroupMachine(policy: .failFast, width: 1)
        for isReady in [true, true, false] { _ = machine.add(isReady: isReady) }
        #expect(!machine.isHeldByWidth(1))
        _ = machine.start()
        #expect(machine.takeNext() == 0)
        #expect((0..<3).map { machine.isHeldByWidth($0) } == [false, true, false])
        machine.setSuspended(true)
        #expect(machine.isHeldByWidth(1))
        _ = machine.ended(0, .success)
        #expect(!machine.isHeldByWidth(1))
    }

    @Test func `first success: failures count only if no child succeeds`() {
        var (machine, slots) = started(.firstSuccess, children: 3)
        #expect(!machine.ended(slots[0], .failure) && machine.takeChildrenToCancel() == [])
        #expect(machine.ended(slots[1], .success) && machine.takeChildrenToCancel() == [2])
        _ = machine.ended(slots[2], .success)
        #expect(machine.takeOver() == .success)
        var (hopeless, all) = started(.firstSuccess, children: 2)
        for slot in all { _ = hopeless.ended(slot, .failure) }
        #expect(hopeless.takeOver() == .failure)
    }

    @Test func `quorum: the group is decided as soon as the quorum is reached or out of reach`() {
        var (machine, slots) = started(.quorum(2), children: 4)
        _ = machine.ended(slots[0], .success)
        _ = machine.ended(slots[1], .failure)
        #expect(machine.takeChildrenToCancel() == [])
        #expect(machine.ended(slots[2], .success) && machine.takeChildrenToCancel() == [3])
        var (hopeless, all) = started(.quorum(3), children: 4)
        _ = hopeless.ended(all[0], .failure)
        #expect(hopeless.takeChildrenToCancel() == [])
        _ = hopeless.ended(all[1], .failure)
        #expect(hopeless.takeChildrenToCancel() == [2, 3])
        #expect(
            started(.quorum(5), children: 4).0.isCancellingChildren
                && started(.quorum(0), children: 4).0.isCancellingChildren)
    }

    @Test(arguments: [
        (GroupPolicy.failFast, true), (.collectAll, true), (.firstSuccess, false), (.firstEnd, false),
        (.quorum(0), true), (.quorum(1), false),
    ])
    func `a group without children is over at its start`(policy: GroupPolicy, isSuccess: Bool) {
        var (machine, _) = started(policy, children: 0)
        #expect(machine.takeChildrenToCancel() == [] && machine.takeOver() == (isSuccess ? .success : .failure))
        #expect(machine.add() == .refused)
    }

    @Test func `after a cancellation, shielded children still begin and all others are canceled`() {
        var machine = GroupMachine(policy: .failFast, width: 1)
        _ = machine.start()
        _ = (machine.add(), machine.add(isShielded: true), machine.add())
        #expect(machine.takeNext() == 0 && machine.cancel() && !machine.cancel())
        #expect(machine.takeChildrenToCancel() == [0, 2])
        #expect(machine.add() == .toCancel(3) && machine.add(isShielded: true) == .taken(4))
        for slot in [0, 2, 3] as [GroupMachine.Slot] { _ = machine.ended(slot, .cancelled) }
        #expect(machine.takeNext() == 1 && machine.takeNext() == nil && machine.takeOver() == nil)
        _ = machine.ended(1, .success)
        #expect(machine.takeNext() == 4)
        _ = machine.ended(4, .success)
        #expect(machine.takeOver() == .cancelled)
    }

    @Test func `a group canceled before its start cancels shielded children, too`() {
        var machine = GroupMachine(policy: .failFast, width: 1)
        _ = (machine.add(), machine.add(isShielded: true))
        #expect(machine.cancel() && machine.takeChildrenToCancel() == [0, 1])
        #expect(machine.add(isShielded: true) == .toCancel(2) && !machine.start() && machine.takeNext() == nil)
        for slot in [0, 1, 2] as [GroupMachine.Slot] { _ = machine.ended(slot, .cancelled) }
        #expect(machine.takeOver() == .cancelled)
    }

    @Test func `an active child that gets a new dependency gives its slot back`() {
        var machine = GroupMachine(policy: .failFast, width: 1)
        _ = (machine.add(), machine.add())
        _ = machine.start()
        #expect(machine.takeNext() == 0)
        machine.block(0)
        #expect(machine.active == 0 && machine.present == 2 && machine.takeNext() == 1)
        machine.becameReady(0)
        #expect(machine.takeNext() == nil)
        _ = machine.ended(1, .success)
        #expect(machine.takeNext() == 0)
    }

    @Test func `a child in recovery takes up no slot, and keeps the group from ending`() {
        var (machine, slots) = started(.failFast, children: 2, width: 1)
        #expect(slots == [0] && machine.beginRecovery(0) && !machine.beginRecovery(0))
        #expect(machine.takeNext() == 1 && machine.takeNext() == nil)
        _ = machine.ended(1, .success)
        #expect(machine.takeOver() == nil && machine.present == 1 && machine.isRecovering(0))
        #expect(machine.replace(0, isReady: false) && !machine.replace(0, isReady: true) && machine.takeNext() == nil)
        machine.becameReady(0)
        #expect(machine.takeNext() == 0)
        _ = machine.ended(0, .success)
        #expect(machine.takeOver() == .success)
    }

    @Test func `a canceled group recovers only shielded children and abandons other recoveries`() {
        var machine = GroupMachine(policy: .collectAll)
        _ = (machine.add(), machine.add(), machine.add(isShielded: true))
        let isEarly = machine.beginRecovery(0)
        #expect(!isEarly && machine.start())
        while machine.takeNext() != nil {}
        #expect(machine.beginRecovery(0) && machine.cancel() && machine.takeChildrenToCancel() == [0, 1])
        #expect(machine.isRecovering(0) && !machine.beginRecovery(1) && machine.beginRecovery(2))
        for slot in [0, 1, 2] as [GroupMachine.Slot] { _ = machine.ended(slot, .failure) }
        #expect(machine.takeOver() == .cancelled && !machine.beginRecovery(0))
    }

    @Test func `a child from a source counts against the width until its end, even while it waits`() {
        var machine = GroupMachine(policy: .failFast, width: 1, hasSource: true)
        _ = machine.start()
        #expect(machine.beginPull() && machine.add(isReady: false, isMade: true) == .taken(0))
        machine.endPull(.child)
        #expect(!machine.beginPull() && machine.add(isReady: false) == .taken(1))
        _ = machine.ended(0, .success)
        let mayPull = machine.beginPull()
        #expect(mayPull)
    }

    @Test func `a source without a child is asked again after news, even if the news came meanwhile`() {
        var machine = GroupMachine(policy: .failFast, width: 1, hasSource: true)
        _ = machine.start()
        let (isFirst, isOver) = (machine.beginPull(), machine.takeOver() != nil)
        machine.endPull(.notNow)
        let isAskedWithoutNews = machine.beginPull()
        machine.sourceDidChange()
        let isAskedAfterNews = machine.beginPull()
        machine.sourceDidChange()
        machine.endPull(.notNow)
        let isAskedAfterNewsInBetween = machine.beginPull()
        machine.endPull(.noMore)
        #expect(isFirst && !isOver && !isAskedWithoutNews && isAskedAfterNews && isAskedAfterNewsInBetween)
        #expect(machine.takeOver() == .success)
    }

    @Test(arguments: [
        (GroupPolicy.failFast, [GroupMachine.Slot(0)], GroupMachine.Verdict.failure), (.firstEnd, [0], .failure),
        (.collectAll, [], .failure), (.firstSuccess, [], .success), (.quorum(1), [], .success),
        (.quorum(2), [], .failure),
    ])
    func `a failing source counts like a failing child`(
        policy: GroupPolicy, toCancel: [GroupMachine.Slot], verdict: GroupMachine.Verdict
    ) {
        var machine = GroupMachine(policy: policy, hasSource: true)
        _ = machine.start()
        _ = machine.beginPull()
        _ = machine.add(isMade: true)
        machine.endPull(.child)
        let (isFirst, counts) = (machine.takeNext(), machine.sourceFailed())
        #expect(isFirst == 0 && counts && machine.takeChildrenToCancel() == toCancel && machine.takeOver() == nil)
        if machine.beginPull() { machine.endPull(.noMore) }
        _ = machine.ended(0, .success)
        #expect(machine.takeChildrenToCancel() == [] && machine.takeOver() == verdict)
        let isLate = !machine.sourceFailed()
        #expect(isLate)
    }

    @Test func `slots are reused`() {
        var machine = GroupMachine(policy: .failFast, hasBody: true)
        _ = machine.start()
        for _ in 0..<1_000 {
            guard case .taken(let slot) = machine.add(), machine.takeNext() == slot
            else { return unmet("The machine did not accept a child.") }
            _ = machine.ended(slot, .success)
        }
        #expect(machine.slotCount == 1)
    }

    @Test func `with random events, the group is over once, after all children, and loses no child`() {
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(Rounds.count(ci: 20_000, soak: 2_000_000)) {
            var course = GroupCourse(seed: seed)
            if let flaw = course.run() {
                Issue.record("seed \(seed): \(flaw)")
                return
            }
        }
    }
}
