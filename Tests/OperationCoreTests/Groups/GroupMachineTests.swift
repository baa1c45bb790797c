// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct GroupMachineTests {
    private typealias Machine = GroupMachine

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

    @Test func `children are kept until the start, then begin as the width allows, in their order`() {
        var machine = GroupMachine(policy: .failFast, width: 2)
        for _ in 0..<4 { _ = machine.add() }
        #expect(machine.takeNext() == nil)
        #expect(machine.start() && !machine.start())
        #expect([machine.takeNext(), machine.takeNext(), machine.takeNext()] == [0, 1, nil])
        _ = machine.ended(1, .success)
        #expect([machine.takeNext(), machine.takeNext()] == [2, nil])
    }

    @Test func `a child that waits for another takes no place`() {
        var machine = GroupMachine(policy: .failFast, width: 1)
        _ = machine.start()
        #expect(machine.add(isReady: false) == .taken(0) && machine.add() == .taken(1))
        #expect([machine.takeNext(), machine.takeNext()] == [1, nil])
        machine.becameReady(0)
        #expect(machine.takeNext() == nil)
        _ = machine.ended(1, .success)
        #expect(machine.takeNext() == 0)
    }

    @Test func `fail fast: the first without a result dooms the others`() {
        var (machine, slots) = started(.failFast, children: 3)
        _ = machine.ended(slots[0], .success)
        #expect(machine.takeDoomed() == [])
        _ = machine.ended(slots[1], .failure)
        #expect(machine.takeDoomed() == [2] && machine.takeDoomed() == [] && machine.takeOver() == nil)
        _ = machine.ended(slots[2], .cancelled)
        #expect(machine.takeOver() == .failure && machine.takeOver() == nil)
    }

    @Test func `collect all: nobody is cancelled, and one failure is one`() {
        var (machine, slots) = started(.collectAll, children: 2)
        _ = machine.ended(slots[0], .failure)
        #expect(machine.takeDoomed() == [] && machine.takeOver() == nil)
        _ = machine.ended(slots[1], .success)
        #expect(machine.takeOver() == .failure)
    }

    @Test func `first success: failures count only if there is nothing else`() {
        var (machine, slots) = started(.firstSuccess, children: 3)
        #expect(!machine.ended(slots[0], .failure) && machine.takeDoomed() == [])
        #expect(machine.ended(slots[1], .success) && machine.takeDoomed() == [2])
        _ = machine.ended(slots[2], .success)
        #expect(machine.takeOver() == .success)
        var (hopeless, all) = started(.firstSuccess, children: 2)
        for slot in all { _ = hopeless.ended(slot, .failure) }
        #expect(hopeless.takeOver() == .failure)
    }

    @Test func `quorum: decided as soon as it is reached, or out of reach`() {
        var (machine, slots) = started(.quorum(2), children: 4)
        _ = machine.ended(slots[0], .success)
        _ = machine.ended(slots[1], .failure)
        #expect(machine.takeDoomed() == [])
        #expect(machine.ended(slots[2], .success) && machine.takeDoomed() == [3])
        var (hopeless, all) = started(.quorum(3), children: 4)
        _ = hopeless.ended(all[0], .failure)
        #expect(hopeless.takeDoomed() == [])
        _ = hopeless.ended(all[1], .failure)
        #expect(hopeless.takeDoomed() == [2, 3])
        #expect(started(.quorum(5), children: 4).0.isDooming && started(.quorum(0), children: 4).0.isDooming)
    }

    @Test(arguments: [
        (GroupPolicy.failFast, true), (.collectAll, true), (.firstSuccess, false), (.firstEnd, false),
        (.quorum(0), true), (.quorum(1), false),
    ])
    func `a group without children is over at the start`(policy: GroupPolicy, isSuccess: Bool) {
        var (machine, _) = started(policy, children: 0)
        #expect(machine.takeDoomed() == [] && machine.takeOver() == (isSuccess ? .success : .failure))
        #expect(machine.add() == .refused)
    }

    @Test func `what is shielded goes on and begins after a cancellation, the rest is doomed`() {
        var machine = GroupMachine(policy: .failFast, width: 1)
        _ = machine.start()
        _ = (machine.add(), machine.add(isShielded: true), machine.add())
        #expect(machine.takeNext() == 0 && machine.cancel() && !machine.cancel())
        #expect(machine.takeDoomed() == [0, 2])
        #expect(machine.add() == .doomed(3) && machine.add(isShielded: true) == .taken(4))
        for slot in [0, 2, 3] as [GroupMachine.Slot] { _ = machine.ended(slot, .cancelled) }
        #expect(machine.takeNext() == 1 && machine.takeNext() == nil && machine.takeOver() == nil)
        _ = machine.ended(1, .success)
        #expect(machine.takeNext() == 4)
        _ = machine.ended(4, .success)
        #expect(machine.takeOver() == .cancelled)
    }

    @Test func `cancelled before it began, it shields nothing`() {
        var machine = GroupMachine(policy: .failFast, width: 1)
        _ = (machine.add(), machine.add(isShielded: true))
        #expect(machine.cancel() && machine.takeDoomed() == [0, 1])
        #expect(machine.add(isShielded: true) == .doomed(2) && !machine.start() && machine.takeNext() == nil)
        for slot in [0, 1, 2] as [GroupMachine.Slot] { _ = machine.ended(slot, .cancelled) }
        #expect(machine.takeOver() == .cancelled)
    }

    @Test func `a child that was taken and depends on something after all gives its place back`() {
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

    @Test func `slots are used again`() {
        var machine = GroupMachine(policy: .failFast, hasBody: true)
        _ = machine.start()
        for _ in 0..<1_000 {
            guard case .taken(let slot) = machine.add(), machine.takeNext() == slot else {
                Issue.record("not taken")
                return
            }
            _ = machine.ended(slot, .success)
        }
        #expect(machine.slotCount == 1)
    }

    @Test func `whatever happens in whatever order, it is over once, after all, and no child is lost`() {
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(Rounds.count(ci: 20_000, soak: 2_000_000)) {
            var course = GroupCourse(seed: seed)
            if let flaw = course.run() {
                Issue.record("seed \(seed): \(flaw)")
                return
            }
        }
    }
}

/// Plays events of a group in an order that is drawn, beside a slow account of what must hold.
private struct GroupCourse {
    private var random: SeededGenerator
    private var machine: GroupMachine
    private let width: Int
    private var hasBody: Bool
    private var isPulling = false
    private var mayPull: Int
    private var blocked: Set<GroupMachine.Slot> = []
    private var waiting: Set<GroupMachine.Slot> = []
    private var active: Set<GroupMachine.Slot> = []
    private var shielded: Set<GroupMachine.Slot> = []
    private var hasStarted = false
    private var wasCancelled = false
    private var overs: [GroupMachine.Verdict] = []

    init(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        width = Int.random(in: 1...3, using: &random)
        hasBody = random.chance(1, in: 3)
        mayPull = !hasBody && random.chance(1, in: 3) ? Int.random(in: 0...5, using: &random) : -1
        let policies: [GroupPolicy] = [.failFast, .collectAll, .firstSuccess, .firstEnd, .quorum(2)]
        machine = GroupMachine(
            policy: hasBody ? .bodyDecides : policies.randomElement(using: &random) ?? .failFast,
            width: width == 3 ? nil : width, hasBody: hasBody, hasSource: mayPull >= 0)
        self.random = random
    }

    mutating func run() -> String? {
        for _ in 0..<60 {
            if let flaw = step() ?? check() { return flaw }
        }
        // To its end: nothing more is added.
        if !hasStarted { hasStarted = machine.start() || true }
        machine.setSuspended(false)
        for _ in 0..<400 where overs.isEmpty {
            if hasBody {
                hasBody = false
                machine.bodyEnded(.success)
            }
            if isPulling {
                isPulling = false
                machine.endPull(.nothingMore)
            }
            for slot in blocked { machine.becameReady(slot) }
            waiting.formUnion(blocked)
            blocked = []
            collect()
            if let slot = active.min() { end(slot, .success) }
            mayPull = min(mayPull, 0)
            if machine.beginPull() { machine.endPull(.nothingMore) }
            collect()
            if let flaw = check() { return flaw }
        }
        if overs.count != 1 { return "over \(overs.count) times, \(machine.phase), present \(machine.present)" }
        if wasCancelled, hasStarted, overs != [.cancelled] { return "a cancellation was lost" }
        return machine.add() == .refused ? nil : "a child after the end"
    }

    private mutating func step() -> String? {
        switch Int.random(in: 0..<12, using: &random) {
        case 0, 1, 2:
            let (isShielded, isReady) = (random.chance(1, in: 4), random.chance(2, in: 3))
            let before = machine.isOver
            switch machine.add(isShielded: isShielded, isReady: isReady) {
            case .refused: return before ? nil : "refused though it is not over"
            case .doomed(let slot): active.insert(slot)
            case .taken(let slot):
                if isReady { waiting.insert(slot) } else { blocked.insert(slot) }
                if isShielded { shielded.insert(slot) }
            }
            if before { return "taken though it is over" }
        case 3:
            if !hasStarted {
                hasStarted = true
                if !machine.start() { hasBody = false }
            }
        case 4, 5, 6:
            if let slot = active.randomElement(using: &random) {
                end(slot, [.success, .success, .failure, .cancelled].randomElement(using: &random) ?? .success)
            }
        case 7:
            if let slot = blocked.randomElement(using: &random) {
                blocked.remove(slot)
                waiting.insert(slot)
                machine.becameReady(slot)
            }
        case 8:
            if random.chance(1, in: 4), machine.cancel() { wasCancelled = true }
            if wasCancelled, !hasStarted { hasBody = false }
        case 9:
            if hasBody, hasStarted, random.chance(1, in: 3) {
                hasBody = false
                machine.bodyEnded(random.chance(1, in: 2) ? .success : .failure)
            }
        case 10: machine.setSuspended(random.chance(1, in: 3))
        default: pull()
        }
        collect()
        return nil
    }

    private mutating func pull() {
        if isPulling {
            isPulling = false
            if mayPull > 0, random.chance(2, in: 3) {
                mayPull -= 1
                switch machine.add() {
                case .taken(let slot): waiting.insert(slot)
                case .doomed(let slot): active.insert(slot)
                case .refused: break
                }
                machine.endPull(.child)
            } else {
                machine.endPull(mayPull > 0 ? .nothingNow : .nothingMore)
            }
        } else {
            isPulling = machine.beginPull()
        }
    }

    private mutating func end(_ slot: GroupMachine.Slot, _ ending: LifecycleMachine.Ending) {
        active.remove(slot)
        shielded.remove(slot)
        _ = machine.ended(slot, ending)
    }

    private mutating func collect() {
        for slot in machine.takeDoomed() {
            blocked.remove(slot)
            waiting.remove(slot)
            active.insert(slot)
        }
        while let slot = machine.takeNext() {
            waiting.remove(slot)
            active.insert(slot)
        }
        if let verdict = machine.takeOver() { overs.append(verdict) }
    }

    private func check() -> String? {
        let present = blocked.count + waiting.count + active.count
        if machine.present != present { return "\(machine.present) present instead of \(present)" }
        if machine.active != active.count { return "\(machine.active) active instead of \(active.count)" }
        if !machine.isDooming, active.count > width, width < 3 { return "more active than the width" }
        if !overs.isEmpty, present > 0 || hasBody || isPulling { return "over before all had ended" }
        if overs.count > 1 { return "over twice" }
        if machine.isDooming, !blocked.union(waiting).isSubset(of: shielded) { return "one that is doomed waits" }
        return nil
    }
}
