// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The life of a group as a pure value: who of its children may begin, and when it is over.
///
/// It knows no operations, threads or times, only slots. Each event is one call; what follows from it is asked for
/// afterwards (`takeNext`, `takeDoomed`, `beginPull`, `takeOver`), so that a shell does it in portions and in a loop.
package struct GroupMachine: Sendable {
    /// The place of a child, which is another's after its end.
    package typealias Slot = Int32

    /// What is to become of the group when all have ended.
    package enum Verdict: Sendable { case success, failure, cancelled }

    package enum Phase: Sendable, Equatable {
        /// Not started: children are kept.
        case collecting
        case running
        /// The body gave its result; children go on.
        case closing
        /// The children were or are cancelled.
        case dooming(Verdict)
        /// All have ended.
        case over(Verdict)
    }

    enum Stage: UInt8, Sendable {
        case free
        /// What it depends on has not ended.
        case blocked
        /// It may begin when there is room.
        case waiting
        case active
        /// It ended, and may be recovered.
        case recovering
    }

    struct Entry: Sendable {
        var stage = Stage.free
        var isShielded = false
        /// Whether the source made it.
        var isMade = false
    }

    package private(set) var phase = Phase.collecting
    package let policy: GroupPolicy
    /// How many children may be active.
    package let width: Int
    /// Whether no child is added after the start.
    let isFixed: Bool
    /// Whether there is a body that has not returned.
    private(set) var hasBody: Bool
    var source: Source
    package private(set) var isSuspended = false

    var entries: [Entry] = []
    private var freeSlots: [Slot] = []
    private var line = Fifo<Slot>()
    /// Children that have not ended.
    package private(set) var present = 0
    package internal(set) var active = 0
    /// How many of those that have not ended the source made.
    private(set) var made = 0
    var waiting = 0
    var successes = 0
    var failures = 0
    private var isDoomToTell = false
    /// Whether it was cancelled before it began: nothing in it will run, shielded or not.
    private var ignoresShields = false
    /// Whether the source is being asked, and whether a child ended meanwhile.
    var asking = RepeatFlag()

    /// What makes children, if something does.
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

    /// How many slots there are, free ones included.
    package var slotCount: Int { entries.count }

    /// Whether the children were cancelled because of the group.
    package var isDooming: Bool { if case .dooming = phase { true } else { false } }

    package var isOver: Bool { if case .over = phase { true } else { false } }

    /// Whether a child has to tell whether what it depends on has ended.
    package var asksForReadiness: Bool { width != .max }

    private var mayBringMore: Bool { source != .none && source != .exhausted }
}

// Children.
extension GroupMachine {
    package enum Admission: Sendable, Equatable {
        case taken(Slot)
        /// Taken, and to be cancelled at once.
        case doomed(Slot)
        /// The group is over.
        case refused
    }

    /// A child is added.
    package mutating func add(isShielded: Bool = false, isReady: Bool = true, isMade: Bool = false) -> Admission {
        if isOver { return .refused }
        let isShielded = isShielded && !ignoresShields
        let isDoomed = isDooming && !isShielded
        let slot = freeSlots.popLast() ?? Slot(entries.count)
        if Int(slot) == entries.count { entries.append(Entry()) }
        present += 1
        if isMade { made += 1 }
        entries[Int(slot)].isShielded = isShielded
        entries[Int(slot)].isMade = isMade
        if isDoomed {
            entries[Int(slot)].stage = .active
            active += 1
            return .doomed(slot)
        }
        entries[Int(slot)].stage = .blocked
        if isReady { becameReady(slot) }
        return .taken(slot)
    }

    /// What the child depends on has ended.
    package mutating func becameReady(_ slot: Slot) {
        guard entries[Int(slot)].stage == .blocked else { return }
        entries[Int(slot)].stage = .waiting
        waiting += 1
        line.append(slot)
    }

    /// The child is not to wait any more, whatever the width; false if it was active already.
    package mutating func hurry(_ slot: Slot) -> Bool {
        switch entries[Int(slot)].stage {
        case .free, .active, .recovering: return false
        case .blocked: break
        case .waiting: waiting -= 1
        }
        entries[Int(slot)].stage = .active
        active += 1
        return true
    }

    /// The next child that may begin, which is active from now on.
    package mutating func takeNext() -> Slot? {
        guard mayBegin, waiting > 0, active < width else { return nil }
        while let slot = line.popFirst() {
            guard entries[Int(slot)].stage == .waiting else { continue }
            // Those that are not shielded were taken out by `takeDoomed`.
            waiting -= 1
            entries[Int(slot)].stage = .active
            active += 1
            return slot
        }
        return nil
    }

    /// Makes just this child active, if it may begin.
    package mutating func take(_ slot: Slot) -> Bool {
        guard mayBegin, active < width, entries[Int(slot)].stage == .waiting else { return false }
        return hurry(slot)
    }

    /// The child that was just taken depends on something after all; it is told when that has ended.
    package mutating func block(_ slot: Slot) {
        guard entries[Int(slot)].stage == .active else { return }
        entries[Int(slot)].stage = .blocked
        active -= 1
    }

    private var mayBegin: Bool {
        switch phase {
        case .running, .closing, .dooming: !isSuspended || isDooming
        case .collecting, .over: false
        }
    }

    /// Whether the child is active.
    package func isActive(_ slot: Slot) -> Bool { entries[Int(slot)].stage == .active }

    /// Whether the child could begin if fewer children were active.
    package func isHeldByWidth(_ slot: Slot) -> Bool { entries[Int(slot)].stage == .waiting && active >= width }

    /// Whether the child goes on when the group is cancelled.
    package func isShielded(_ slot: Slot) -> Bool { entries[Int(slot)].isShielded }

    /// The child ended; returns whether it is one of those that make the result.
    package mutating func ended(_ slot: Slot, _ ending: LifecycleMachine.Ending) -> Bool {
        leave(slot)
        sourceHasNews()
        if phase == .collecting, ending != .success { failures += 1 }
        guard phase == .running else { return false }
        if ending == .success { successes += 1 } else { failures += 1 }
        let hasWon = wins(ending)
        if let verdict = verdictAtEnd(ending) { doom(verdict) }
        return hasWon
    }

    /// The child was added by mistake and has not begun.
    package mutating func expel(_ slot: Slot) { leave(slot) }

    private mutating func leave(_ slot: Slot) {
        switch entries[Int(slot)].stage {
        case .free: return
        case .blocked, .recovering: break
        case .waiting: waiting -= 1
        case .active: active -= 1
        }
        entries[Int(slot)].stage = .free
        present -= 1
        if entries[Int(slot)].isMade { made -= 1 }
        freeSlots.append(slot)
    }
}

// The group itself.
extension GroupMachine {
    /// The group began; false if it was cancelled before.
    package mutating func start() -> Bool {
        guard phase == .collecting else { return false }
        phase = .running
        // One that was refused before.
        if failures > 0, let verdict = verdictAtEnd(.failure) {
            doom(verdict)
            return true
        }
        if case .quorum(let count) = policy.rule {
            if count <= 0 { doom(.success) } else if isFixed, present < count { doom(.failure) }
        }
        return true
    }

    /// The body returned.
    package mutating func bodyEnded(_ verdict: Verdict) {
        hasBody = false
        guard phase == .running else { return }
        if verdict == .success { phase = .closing } else { doom(verdict) }
    }

    /// The group was cancelled; false if it was over, or cancelled before.
    package mutating func cancel() -> Bool {
        switch phase {
        case .collecting:
            // It will not run any more.
            hasBody = false
            ignoresShields = true
            for slot in entries.indices { entries[slot].isShielded = false }
            doom(.cancelled)
            return true
        case .running, .closing:
            doom(.cancelled)
            return true
        case .dooming(.cancelled), .over: return false
        case .dooming:
            // The children know already.
            phase = .dooming(.cancelled)
            return true
        }
    }

    mutating func doom(_ verdict: Verdict) {
        phase = .dooming(verdict)
        isDoomToTell = true
        if source != .none, source != .pulling { source = .exhausted }
    }

    /// The children that are to be cancelled, once; they are all active from now on.
    package mutating func takeDoomed() -> [Slot] {
        guard isDoomToTell else { return [] }
        isDoomToTell = false
        var doomed: [Slot] = []
        doomed.reserveCapacity(present)
        for slot in entries.indices where entries[slot].stage != .free && !entries[slot].isShielded {
            _ = hurry(Slot(slot))
            doomed.append(Slot(slot))
        }
        return doomed
    }

    package mutating func setSuspended(_ isSuspended: Bool) { self.isSuspended = isSuspended }

    /// What has become of the group, once, when its body and all children have ended.
    package mutating func takeOver() -> Verdict? {
        guard present == 0, !hasBody, source != .pulling, !isDoomToTell else { return nil }
        switch phase {
        case .collecting, .over: return nil
        case .running:
            if mayBringMore { return nil }
            phase = .over(verdictAtRest)
        case .closing: phase = .over(.success)
        case .dooming(let verdict): phase = .over(verdict)
        }
        if case .over(let verdict) = phase { return verdict }
        return nil
    }
}

// Children that are made as there is room for them.
extension GroupMachine {
    /// What a source answered.
    package enum Pull: Sendable {
        case child
        /// Nothing now; it is asked again when a child has ended, or when the source has news.
        case nothingNow
        case nothingMore
    }

    /// Whether the source is to be asked, by the one who called this and who then says `endPull`.
    ///
    /// What it made counts until its end, also while that waits for what it depends on, or is being recovered.
    package mutating func beginPull() -> Bool {
        guard source == .open, phase == .running, !isSuspended, waiting < 64, active + waiting < width, made < width
        else { return false }
        source = .pulling
        return asking.request()
    }

    /// The source answered; what it gave was added.
    ///
    /// Where a child ended while it was asked, "nothing now" may be out of date: then it is asked again.
    package mutating func endPull(_ pull: Pull) {
        guard source == .pulling else { return }
        let hasNews = asking.stop()
        switch pull {
        case _ where phase != .running: source = .exhausted
        case .child: source = .open
        case .nothingNow: source = hasNews ? .open : .dry
        case .nothingMore: source = .exhausted
        }
    }

    /// The source may have something for a group that it had nothing for: a child ended, or an element was read.
    package mutating func sourceHasNews() {
        if source == .dry { source = .open }
        if source == .pulling { _ = asking.request() }
    }

    /// The sequence of elements failed, which counts like a child that failed.
    ///
    /// The source still has to say that it has nothing more.
    ///
    /// - Returns: Whether the failure counts. It does not if the group was decided before.
    package mutating func sourceFailed() -> Bool {
        guard phase == .running else { return false }
        failures += 1
        if let verdict = verdictAtEnd(.failure) { doom(verdict) }
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

    /// What it comes to if no child is left and nobody decided.
    var verdictAtRest: Verdict {
        switch policy.rule {
        case .failFast, .bodyDecides: .success
        case .collectAll: failures == 0 ? .success : .failure
        case .firstSuccess, .firstEnd: .failure
        case .quorum(let count): successes >= count ? .success : .failure
        }
    }
}

// Children that gave no result, and for which there may be a way out.
extension GroupMachine {
    /// The child ended without a result, and it is to be seen whether it can be recovered: it takes no place meanwhile,
    /// and the group does not end before `replace` or `ended` is said of it.
    ///
    /// - Returns: Whether that makes sense: not if the group is cancelled with the child.
    package mutating func beginRecovery(_ slot: Slot) -> Bool {
        switch phase {
        case .running, .closing: break
        case .dooming where isShielded(slot): break
        case .collecting, .dooming, .over: return false
        }
        switch entries[Int(slot)].stage {
        case .free, .recovering: return false
        case .blocked: break
        case .waiting: waiting -= 1
        case .active: active -= 1
        }
        entries[Int(slot)].stage = .recovering
        return true
    }

    /// Another operation takes the place of the child; false if that is not being recovered.
    package mutating func replace(_ slot: Slot, isReady: Bool) -> Bool {
        guard isRecovering(slot) else { return false }
        entries[Int(slot)].stage = .blocked
        if isReady { becameReady(slot) }
        return true
    }

    /// Whether the child ended, and it is being seen whether it can be recovered.
    package func isRecovering(_ slot: Slot) -> Bool { entries[Int(slot)].stage == .recovering }
}

/// What the ends of its children make of a group that has no body.
public struct GroupPolicy: Sendable, Hashable, CustomStringConvertible {
    enum Rule: Hashable, Sendable {
        case failFast, collectAll, firstSuccess, firstEnd
        case quorum(Int)
        case bodyDecides
    }

    let rule: Rule

    /// The first child that gives no result fails the group, and the others are cancelled.
    public static let failFast = GroupPolicy(rule: .failFast)

    /// All children run to their ends, and then the group fails if one of them gave no result.
    public static let collectAll = GroupPolicy(rule: .collectAll)

    /// The first child that gives a result decides, and the others are cancelled; without any the group fails.
    public static let firstSuccess = GroupPolicy(rule: .firstSuccess)

    /// The first child that ends decides, however it does, and the others are cancelled.
    public static let firstEnd = GroupPolicy(rule: .firstEnd)

    /// So many results suffice, and the others are cancelled.
    ///
    /// The group fails as soon as that can no longer come about. None or fewer needed is a success at the start.
    public static func quorum(_ count: Int) -> GroupPolicy { GroupPolicy(rule: .quorum(count)) }

    /// The children decide nothing: there is a body.
    package static let bodyDecides = GroupPolicy(rule: .bodyDecides)

    /// Whether only those count that ended first.
    var hasWinners: Bool {
        switch rule {
        case .firstSuccess, .firstEnd, .quorum: true
        case .failFast, .collectAll, .bodyDecides: false
        }
    }

    /// The name of the policy.
    public var description: String {
        if case .quorum(let count) = rule { "quorum of \(count)" } else { "\(rule)" }
    }
}
