// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit

/// Plays random events of a group, and compares the machine with a slow model.
struct GroupCourse {
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
    private var recovering: Set<GroupMachine.Slot> = []
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
        // From here on, the group runs to its end without new children.
        if !hasStarted { hasStarted = machine.start() || true }
        machine.setSuspended(false)
        for _ in 0..<400 where overs.isEmpty {
            if hasBody {
                hasBody = false
                machine.bodyEnded(.success)
            }
            if isPulling {
                isPulling = false
                machine.endPull(.noMore)
            }
            for slot in blocked { machine.becameReady(slot) }
            waiting.formUnion(blocked)
            blocked = []
            collect()
            if let slot = active.min() { end(slot, .success) }
            if let slot = recovering.min() { end(slot, .failure) }
            mayPull = min(mayPull, 0)
            machine.sourceDidChange()
            if machine.beginPull() { machine.endPull(.noMore) }
            collect()
            if let flaw = check() { return flaw }
        }
        if overs.count != 1 { return "over \(overs.count) times, \(machine.phase), present \(machine.present)" }
        if wasCancelled, hasStarted, overs != [.cancelled] { return "a cancellation was lost" }
        return machine.add() == .refused ? nil : "a child after the end"
    }

    private mutating func step() -> String? {
        switch Int.random(in: 0..<16, using: &random) {
        case 14: machine.sourceDidChange()
        case 15: if mayPull >= 0, random.chance(1, in: 8) { _ = machine.sourceFailed() }
        case 12: recover()
        case 13: answer()
        case 0, 1, 2:
            let (isShielded, isReady) = (random.chance(1, in: 4), random.chance(2, in: 3))
            let before = machine.isOver
            switch machine.add(isShielded: isShielded, isReady: isReady) {
            case .refused: return before ? nil : "refused though it is not over"
            case .toCancel(let slot): active.insert(slot)
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
                switch machine.add(isMade: true) {
                case .taken(let slot): waiting.insert(slot)
                case .toCancel(let slot): active.insert(slot)
                case .refused: break
                }
                machine.endPull(.child)
            } else {
                machine.endPull(mayPull > 0 ? .notNow : .noMore)
            }
        } else {
            isPulling = machine.beginPull()
        }
    }

    private mutating func recover() {
        guard let slot = active.randomElement(using: &random), machine.beginRecovery(slot) else { return }
        active.remove(slot)
        recovering.insert(slot)
    }

    private mutating func answer() {
        guard let slot = recovering.randomElement(using: &random) else { return }
        guard random.chance(1, in: 2) else { return end(slot, random.chance(1, in: 2) ? .success : .failure) }
        recovering.remove(slot)
        let isReady = random.chance(1, in: 2)
        _ = machine.replace(slot, isReady: isReady)
        if isReady { waiting.insert(slot) } else { blocked.insert(slot) }
    }

    private mutating func end(_ slot: GroupMachine.Slot, _ ending: LifecycleMachine.Ending) {
        active.remove(slot)
        recovering.remove(slot)
        shielded.remove(slot)
        _ = machine.ended(slot, ending)
    }

    private mutating func collect() {
        for slot in machine.takeChildrenToCancel() {
            // The recovery is abandoned.
            if recovering.contains(slot) {
                end(slot, .failure)
                continue
            }
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
        let present = blocked.count + waiting.count + active.count + recovering.count
        if machine.present != present { return "\(machine.present) present instead of \(present)" }
        if machine.active != active.count { return "\(machine.active) active instead of \(active.count)" }
        if !machine.isCancellingChildren, active.count > width, width < 3 { return "more active than the width" }
        if !overs.isEmpty, present > 0 || hasBody || isPulling { return "over before all had ended" }
        if overs.count > 1 { return "over twice" }
        if machine.isCancellingChildren, !blocked.union(waiting).union(recovering).isSubset(of: shielded) {
            return "a doomed child waits"
        }
        return nil
    }
}
