// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The life of a group as a pure value, which decides which children may begin and when the group is over.
///
/// The machine contains no operations, threads or times, only slots. Each event is one call. The shell then asks what
/// follows from it (`takeNext`, `takeChildrenToCancel`, `beginPull`, `takeOver`), so it can do that in portions and in
/// a loop.
package struct GroupMachine: Sendable {
    /// The slot of a child, which another child may get after its end.
    package typealias Slot = Int32

    /// The outcome of the group when everything in it has ended.
    package typealias Verdict = LifecycleMachine.Ending

    package enum Phase: Sendable, Equatable {
        /// The group was not started, and keeps its children.
        case collecting
        case running
        /// The body gave its result, and the children continue.
        case closing
        /// The children are being canceled, or were canceled.
        case cancellingChildren(Verdict)
        /// The body and all children have ended.
        case over(Verdict)
    }

    enum Stage: UInt8, Sendable {
        case free
        /// The dependencies of the child have not ended.
        case blocked
        /// The child may begin when there is room.
        case waiting
        case active
        /// The child ended, and may be recovered.
        case recovering
    }

    struct Entry: Sendable {
        var stage = Stage.free
        var isShielded = false
        /// Whether the source made the child.
        var isMade = false
        /// The number of the child's last position in the line.
        var turn: UInt32 = 0
    }

    package private(set) var phase = Phase.collecting
    package let policy: GroupPolicy
    /// The maximum number of active children.
    package let width: Int
    /// Whether no child is added after the start.
    let isFixed: Bool
    /// Whether there is a body that has not returned.
    private(set) var hasBody: Bool
    var source: Source
    package private(set) var isSuspended = false

    var entries: [Entry] = []
    private var freeSlots: [Slot] = []
    /// The children that wait, in their order.
    ///
    /// A child that leaves the line in another way keeps its position in the list.
    private var line = Fifo<(slot: Slot, turn: UInt32)>()
    private var lastTurn: UInt32 = 0
    /// The number of children that have not ended.
    package private(set) var present = 0
    package internal(set) var active = 0
    /// The number of children that the source made and that have not ended.
    private(set) var made = 0
    var waiting = 0
    var successes = 0
    var failures = 0
    private var hasChildrenToCancel = false
    /// Whether the group was canceled before it began, so that no child is shielded.
    private var ignoresShields = false
    /// Whether the source is being queried, and whether a child ended in the meantime.
    var asking = RepeatFlag()

    /// The state of the source that makes children, if there is one.
    enum Source: Sendable { case none, open, pulling, dry, exhausted }

    package init(
        policy: GroupPolicy, width: Int? = nil, isFixed: Bool = false, hasBody: Bool = false, hasSource: Bool = false
    ) {
        self.policy = policy
        self.width = width.map { max($0, 1) } ?? .max
        self.isFixed = isFixed
        self.hasBody = hasBody
        source = hasSource ? .open : .none
    }

    /// The number of slots, including free ones.
    package var slotCount: Int { entries.count }

    /// Whether the children were canceled because of the group.
    package var isCancellingChildren: Bool { if case .cancellingChildren = phase { true } else { false } }

    package var isOver: Bool { if case .over = phase { true } else { false } }

    /// Whether children must report the end of their dependencies.
    package var asksForReadiness: Bool { width != .max }
}

// Children.
extension GroupMachine {
    package enum Admission: Sendable, Equatable {
        case taken(Slot)
        /// The child was taken, and must be canceled immediately.
        case toCancel(Slot)
        /// The group is over.
        case refused
    }

    /// Adds a child.
    package mutating func add(isShielded: Bool = false, isReady: Bool = true, isMade: Bool = false) -> Admission {
        if isOver { return .refused }
        let isShielded = isShielded && !ignoresShields
        let isCancelledByGroup = isCancellingChildren && !isShielded
        let stage: Stage = isCancelledByGroup ? .active : isReady ? .waiting : .blocked
        let entry = Entry(stage: stage, isShielded: isShielded, isMade: isMade)
        let slot = freeSlots.popLast() ?? Slot(entries.count)
        if Int(slot) == entries.count { entries.append(entry) } else { entries[Int(slot)] = entry }
        present += 1
        if isMade { made += 1 }
        if stage == .active { active += 1 }
        if stage == .waiting {
            waiting += 1
            lineUp(slot)
        }
        return isCancelledByGroup ? .toCancel(slot) : .taken(slot)
    }

    /// Moves a child to another stage, and counts it there.
    private mutating func move(_ slot: Slot, to stage: Stage) {
        let old = exchange(&entries[Int(slot)].stage, with: stage)
        waiting += (stage == .waiting ? 1 : 0) - (old == .waiting ? 1 : 0)
        active += (stage == .active ? 1 : 0) - (old == .active ? 1 : 0)
    }

    /// Notes that the dependencies of a child have ended.
    package mutating func becameReady(_ slot: Slot) {
        guard entries[Int(slot)].stage == .blocked else { return }
        move(slot, to: .waiting)
        lineUp(slot)
    }

    /// Adds a waiting child at the end of the line.
    private mutating func lineUp(_ slot: Slot) {
        lastTurn &+= 1
        entries[Int(slot)].turn = lastTurn
        line.append((slot, lastTurn))
        guard line.count > 64, line.count > 2 * waiting else { return }
        let entries = entries
        _ = line.removeAll { Self.hasLeft($0, entries) }
    }

    /// Returns whether the child at a position in the line has begun or ended, so another child can use the slot.
    private static func hasLeft(_ position: (slot: Slot, turn: UInt32), _ entries: [Entry]) -> Bool {
        entries[Int(position.slot)].stage != .waiting || entries[Int(position.slot)].turn != position.turn
    }

    /// The number of positions in the line, for tests.
    package var lineCount: Int { line.count }

    /// Makes a child active whatever the width, and returns `false` if it did not wait.
    package mutating func activateImmediately(_ slot: Slot) -> Bool {
        guard entries[Int(slot)].stage == .blocked || entries[Int(slot)].stage == .waiting else { return false }
        move(slot, to: .active)
        return true
    }

    /// Returns the next child that may begin, and makes it active.
    package mutating func takeNext() -> Slot? {
        guard mayBegin, waiting > 0, active < width else { return nil }
        while let position = line.popFirst() {
            if Self.hasLeft(position, entries) { continue }
            // `takeChildrenToCancel` took out the children that are not shielded.
            move(position.slot, to: .active)
            return position.slot
        }
        return nil
    }

    /// Makes this child active if it may begin, and returns whether it does.
    package mutating func take(_ slot: Slot) -> Bool {
        guard mayBegin, active < width, entries[Int(slot)].stage == .waiting else { return false }
        return activateImmediately(slot)
    }

    /// Blocks a child that was just taken, because one of its dependencies has not ended.
    package mutating func block(_ slot: Slot) {
        guard entries[Int(slot)].stage == .active else { return }
        move(slot, to: .blocked)
    }

    private var mayBegin: Bool {
        switch phase {
        case .running, .closing, .cancellingChildren: !isSuspended || isCancellingChildren
        case .collecting, .over: false
        }
    }

    /// Whether the child is active.
    package func isActive(_ slot: Slot) -> Bool { entries[Int(slot)].stage == .active }

    /// Whether the child could begin if fewer children were active.
    package func isHeldByWidth(_ slot: Slot) -> Bool { entries[Int(slot)].stage == .waiting && active >= width }

    /// Whether the child continues when the group is canceled.
    package func isShielded(_ slot: Slot) -> Bool { entries[Int(slot)].isShielded }

    /// Removes a child that ended, and returns whether it is one of those that make the result.
    package mutating func ended(_ slot: Slot, _ ending: LifecycleMachine.Ending) -> Bool {
        leave(slot)
        sourceDidChange()
        if phase == .collecting, ending != .success { failures += 1 }
        guard phase == .running else { return false }
        if ending == .success { successes += 1 } else { failures += 1 }
        let hasWon = wins(ending)
        if let verdict = verdictAtEnd(ending) { decide(verdict) }
        return hasWon
    }

    private mutating func leave(_ slot: Slot) {
        if entries[Int(slot)].stage == .free { return }
        move(slot, to: .free)
        present -= 1
        if entries[Int(slot)].isMade { made -= 1 }
        freeSlots.append(slot)
    }
}

// The group itself.
extension GroupMachine {
    /// Starts the group, and returns `false` if it was canceled before.
    package mutating func start() -> Bool {
        guard phase == .collecting else { return false }
        phase = .running
        // A child was refused before.
        if failures > 0, let verdict = verdictAtEnd(.failure) {
            decide(verdict)
            return true
        }
        if case .quorum(let count) = policy.rule {
            if count <= 0 { decide(.success) } else if isFixed, present < count { decide(.failure) }
        }
        return true
    }

    /// Notes that the body returned.
    package mutating func bodyEnded(_ verdict: Verdict) {
        hasBody = false
        guard phase == .running else { return }
        if verdict == .success { phase = .closing } else { decide(verdict) }
    }

    /// Cancels the group, and returns `false` if it was over or canceled before.
    package mutating func cancel() -> Bool {
        switch phase {
        case .collecting:
            // The body will not run any more.
            hasBody = false
            ignoresShields = true
            for slot in entries.indices { entries[slot].isShielded = false }
            decide(.cancelled)
            return true
        case .running, .closing:
            decide(.cancelled)
            return true
        case .cancellingChildren(.cancelled), .over: return false
        case .cancellingChildren:
            // The children were canceled already.
            phase = .cancellingChildren(.cancelled)
            return true
        }
    }

    mutating func decide(_ verdict: Verdict) {
        phase = .cancellingChildren(verdict)
        hasChildrenToCancel = true
        if source != .none, source != .pulling { source = .exhausted }
    }

    /// Takes out the children to cancel, which all become active.
    package mutating func takeChildrenToCancel() -> [Slot] {
        guard hasChildrenToCancel else { return [] }
        hasChildrenToCancel = false
        var toCancel: [Slot] = []
        toCancel.reserveCapacity(present)
        for slot in entries.indices where entries[slot].stage != .free && !entries[slot].isShielded {
            _ = activateImmediately(Slot(slot))
            toCancel.append(Slot(slot))
        }
        return toCancel
    }

    package mutating func setSuspended(_ isSuspended: Bool) { self.isSuspended = isSuspended }

    /// Returns the verdict of the group when its body and all children have ended, but only once.
    package mutating func takeOver() -> Verdict? {
        guard present == 0, !hasBody, source != .pulling, !hasChildrenToCancel else { return nil }
        switch phase {
        case .collecting, .over: return nil
        case .running:
            if source != .none, source != .exhausted { return nil }
            phase = .over(verdictAtRest)
        case .closing: phase = .over(.success)
        case .cancellingChildren(let verdict): phase = .over(verdict)
        }
        if case .over(let verdict) = phase { return verdict }
        return nil
    }
}

// Children that a source makes when there is room.
extension GroupMachine {
    /// The answer of a source.
    package enum Pull: Sendable {
        case child
        /// The source has nothing now, and is queried again when a child has ended or the source has news.
        case notNow
        case noMore
    }

    /// Returns whether the caller must query the source, and then call `endPull`.
    ///
    /// A child that the source made counts until its end, even while it waits for dependencies or is being recovered.
    package mutating func beginPull() -> Bool {
        guard source == .open, phase == .running, !isSuspended, waiting < 64, active + waiting < width, made < width
        else { return false }
        source = .pulling
        return asking.request()
    }

    /// Notes the answer of the source, after its child was added.
    ///
    /// If a child ended while the source was queried, the answer `notNow` may be outdated, so the source is queried
    /// again.
    package mutating func endPull(_ pull: Pull) {
        guard source == .pulling else { return }
        let hasUpdate = asking.stop()
        switch pull {
        case _ where phase != .running: source = .exhausted
        case .child: source = .open
        case .notNow: source = hasUpdate ? .open : .dry
        case .noMore: source = .exhausted
        }
    }

    /// Notes that the source may have something again, because a child ended or an element was read.
    package mutating func sourceDidChange() {
        if source == .dry { source = .open }
        if source == .pulling { _ = asking.request() }
    }

    /// Notes that the sequence of elements failed, which counts like a child that failed.
    ///
    /// The source still has to report that it has nothing more.
    ///
    /// - Returns: Whether the failure counts. A failure after the decision of the group does not count.
    package mutating func sourceFailed() -> Bool {
        guard phase == .running else { return false }
        failures += 1
        if let verdict = verdictAtEnd(.failure) { decide(verdict) }
        return true
    }
}

// The policy.
extension GroupMachine {
    func wins(_ ending: LifecycleMachine.Ending) -> Bool {
        switch policy.rule {
        case .firstEnd: true
        case .firstSuccess, .quorum: ending == .success
        case .failFast, .collectAll, .bodyDecides: false
        }
    }

    func verdictAtEnd(_ ending: LifecycleMachine.Ending) -> Verdict? {
        switch policy.rule {
        case .failFast: ending == .success ? nil : .failure
        case .firstSuccess: ending == .success ? .success : nil
        case .firstEnd: ending == .success ? .success : .failure
        case .quorum(let count):
            if successes >= count { .success } else if isFixed, successes + present < count { .failure } else { nil }
        case .collectAll, .bodyDecides: nil
        }
    }

    /// The verdict if no child is left and nothing was decided before.
    var verdictAtRest: Verdict {
        switch policy.rule {
        case .failFast, .bodyDecides: .success
        case .collectAll: failures == 0 ? .success : .failure
        case .firstSuccess, .firstEnd: .failure
        case .quorum(let count): successes >= count ? .success : .failure
        }
    }
}

// Recovery of children that failed or were canceled.
extension GroupMachine {
    /// Begins the recovery of a child that failed or was canceled.
    ///
    /// The child does not count toward the width in the meantime, and the group does not end before `replace` or
    /// `ended` is called.
    ///
    /// - Returns: `false` if there is nothing to recover, because the child is canceled with the group or has left.
    package mutating func beginRecovery(_ slot: Slot) -> Bool {
        switch phase {
        case .running, .closing: break
        case .cancellingChildren where isShielded(slot): break
        case .collecting, .cancellingChildren, .over: return false
        }
        if entries[Int(slot)].stage == .free || isRecovering(slot) { return false }
        move(slot, to: .recovering)
        return true
    }

    /// Lets another operation take the place of a child, and returns `false` if the child is not being recovered.
    package mutating func replace(_ slot: Slot, isReady: Bool) -> Bool {
        guard isRecovering(slot) else { return false }
        move(slot, to: .blocked)
        if isReady { becameReady(slot) }
        return true
    }

    /// Whether the child ended and is being recovered.
    package func isRecovering(_ slot: Slot) -> Bool { entries[Int(slot)].stage == .recovering }
}
