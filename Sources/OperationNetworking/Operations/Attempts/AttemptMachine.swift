// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// The attempts of one network operation as a pure value: each event moves it and says what the shell must do now.
///
/// It knows nothing of requests, types, threads or time. Events carry the number of their attempt, or the round of their
/// preparation; one that is not the present one's moves nothing.
///
/// ```text
///             prepared      cleared      created          transferred        evaluated
/// preparing ─────────▶ clearing ──▶ creating ─────▶ transferring ─────▶ evaluating ─────▶ concluding ─────▶ ended
///     ▲ └─ failed ─────┴─┬──────────────┴────────────────┴───────────────────┘ ▲             ▲
///     │           holding◀─ hold               ▼                               │             │
///     │              │                      deciding ─────────── fail ─────────────────────────┘
///     │              ▼                         │ again after a pause, or when something comes
/// returning ◀────────┴─── waiting, parked ◀────┘
/// ```
///
/// While it is suspended no step begins: the one that is due is kept for the resumption. While it is holding, waiting or
/// parked, the operation rests: it takes no place of its queue, and has to return to one.
package struct AttemptMachine: Sendable, Equatable {
    package enum Phase: Sendable, Equatable {
        case idle
        case preparing
        /// The request is ready, and those are asked who may hold it back.
        case clearing
        /// One of them does.
        case holding
        case creating
        case transferring
        case evaluating
        case deciding
        /// A pause before the next attempt.
        case waiting
        /// The next attempt waits for something to come.
        case parked
        /// The wait is over; the operation needs a place again.
        case returning
        case concluding
        case ended
    }

    /// What the shell is to do.
    package enum Action: Sendable, Equatable {
        case none
        /// Make the request of the present attempt.
        case prepare
        /// Ask whether it may leave.
        case clear
        /// Make its task.
        case createTask
        /// Bring the task to what is wanted now: running or suspended.
        case settleTask
        /// Make the result.
        case evaluate
        /// Ask what becomes of the failure.
        case decide
        /// Rest, and say when so much time is over.
        case wait(Duration)
        /// Rest, until somebody says that it may go on.
        case rest(WaitReason)
        /// Get a place again.
        case takePlace
        /// Give the operation its outcome.
        case conclude
    }

    package enum Decision: Sendable, Equatable {
        case fail
        /// Another attempt, after a pause.
        case again(after: Duration)
        /// Another attempt that does not count as one, for the last one was not to blame.
        case replay(after: Duration)
        /// It is put aside until it is decided again; that attempt does not count, either.
        case park(WaitReason)
    }

    package private(set) var phase = Phase.idle
    /// The number of the present attempt, from 1.
    package private(set) var attempt = 0
    /// How often a request was prepared: more often than there are attempts, if some were held back.
    package private(set) var round = 0
    /// How many attempts do not count.
    package private(set) var replays = 0
    package private(set) var isSuspended = false { didSet { changes += 1 } }
    /// How often that was said.
    private var changes = 0
    /// The step that is due when the suspension is over.
    private var due = Action.none
    /// Whether somebody was asked whether the present request may leave.
    private var isGated = false
    /// How often the suspension had changed when that was answered.
    private var clearedAt = 0

    package init() {}

    /// What is wanted of the present task.
    package var order: BrakeOrder { BrakeOrder(number: changes, isSuspended: isSuspended) }

    /// Whether the present attempt is that one, and what its task tells counts.
    ///
    /// A hook may resume or cancel the task that it makes, which may thus tell its end before the hook has returned.
    package func mayBeTold(_ number: Int) -> Bool { isAt(.creating, number) || isAt(.transferring, number) }

    /// Whether it is held back or put aside, so that who ends that does so for others, too.
    package var isAside: Bool { phase == .holding || phase == .parked }

    /// Whether that attempt failed, and it is still to be decided what becomes of it.
    package func awaitsDecision(_ number: Int) -> Bool { isAt(.deciding, number) || isAt(.parked, number) }

    /// The operation's body begins.
    package mutating func start() -> Action {
        guard phase == .idle else { return .none }
        attempt = 1
        return prepare()
    }

    private mutating func prepare() -> Action {
        round += 1
        return enter(.preparing, .prepare)
    }

    private mutating func enter(_ phase: Phase, _ action: Action) -> Action {
        self.phase = phase
        guard isSuspended else { return action }
        due = action
        return .none
    }

    private func isAt(_ phase: Phase, _ number: Int) -> Bool { self.phase == phase && attempt == number }

    /// The request is ready; somebody has to be asked whether it may leave if it is gated.
    package mutating func prepared(_ number: Int, isGated: Bool = false) -> Action {
        guard isAt(.preparing, number) else { return .none }
        self.isGated = isGated
        return isGated ? enter(.clearing, .clear) : enter(.creating, .createTask)
    }

    /// The task was made, and not resumed.
    package mutating func created(_ number: Int) -> Action {
        guard isAt(.creating, number) else { return .none }
        phase = .transferring
        return .settleTask
    }

    /// The response is complete.
    package mutating func transferred(_ number: Int) -> Action {
        mayBeTold(number) ? enter(.evaluating, .evaluate) : .none
    }

    /// There is a result.
    package mutating func evaluated(_ number: Int) -> Action {
        isAt(.evaluating, number) ? enter(.concluding, .conclude) : .none
    }

    /// The present step of the attempt failed.
    package mutating func failed(_ number: Int) -> Action {
        switch phase {
        case .preparing, .clearing, .creating, .transferring, .evaluating:
            attempt == number ? enter(.deciding, .decide) : .none
        case .idle, .holding, .deciding, .waiting, .parked, .returning, .concluding, .ended: .none
        }
    }

    /// Its time is over, which counts as long as the response is not complete.
    package mutating func ranOut(_ number: Int) -> Action {
        let isUnderWay = isAt(.preparing, number) || isAt(.clearing, number) || mayBeTold(number)
        return isUnderWay ? enter(.deciding, .decide) : .none
    }

    /// Whether that attempt is the present one, and a task for it is of use, or was.
    package func wantsTask(_ number: Int) -> Bool {
        attempt == number && [.creating, .transferring, .evaluating, .concluding].contains(phase)
    }

    /// The task came to its turn with a request that is out of date: it is made anew, as an attempt that does not count.
    package mutating func takenBack(_ number: Int) -> Action {
        guard mayBeTold(number) else { return .none }
        replays += 1
        attempt += 1
        return prepare()
    }

    /// The task ended without a complete response: maybe before it was resumed, and maybe after nobody wanted more of it.
    package mutating func transferFailed(_ number: Int) -> Action {
        mayBeTold(number) ? enter(.deciding, .decide) : .none
    }

    /// It was decided what becomes of the failure, or of the attempt that was put aside.
    package mutating func decided(_ decision: Decision, _ number: Int) -> Action {
        guard awaitsDecision(number) else { return .none }
        let isFirst = phase == .deciding
        switch decision {
        case .fail: return enter(.concluding, .conclude)
        case .again(let pause): return next(after: pause)
        case .replay(let pause):
            if isFirst { replays += 1 }
            return next(after: pause)
        case .park(let reason):
            if isFirst { replays += 1 }
            // Neither this wait nor that for a time is a step: they may as well run out while nothing may begin.
            phase = .parked
            return .rest(reason)
        }
    }

    private mutating func next(after pause: Duration) -> Action {
        guard pause > .zero else { return beginNext() }
        phase = .waiting
        return .wait(pause)
    }

    private mutating func beginNext() -> Action {
        attempt += 1
        return enter(.returning, .takePlace)
    }

    /// The pause before the next attempt is over.
    package mutating func waited(_ number: Int) -> Action {
        isAt(.waiting, number) ? beginNext() : .none
    }

    /// There is a place.
    package mutating func returned(_ number: Int) -> Action {
        isAt(.returning, number) ? prepare() : .none
    }

    /// No step may begin.
    package mutating func suspend() -> Action {
        isSuspended = true
        return phase == .transferring ? .settleTask : .none
    }

    /// What is due may begin.
    package mutating func resume() -> Action {
        isSuspended = false
        if phase == .transferring { return .settleTask }
        defer { due = .none }
        return due
    }

    /// It is over, however; false if it was before.
    package mutating func end() -> Bool {
        guard phase != .ended else { return false }
        phase = .ended
        due = .none
        return true
    }
}

// Requests that are ready, and may be held back.
extension AttemptMachine {
    /// The request may leave now: a suspension may last until what it got is out of date, so that it is made anew then.
    package mutating func cleared(_ round: Int) -> Action {
        guard self.round == round, phase == .clearing else { return .none }
        clearedAt = changes
        return isSuspended ? prepare() : enter(.creating, .createTask)
    }

    /// Its task is about to be made, unless there was a suspension since then: the same.
    package mutating func creation() -> Action {
        guard phase == .creating else { return .none }
        return isGated && clearedAt != changes ? prepare() : .createTask
    }

    /// It may not for now.
    package mutating func held(_ reason: WaitReason, _ round: Int) -> Action {
        guard self.round == round, phase == .clearing || phase == .holding else { return .none }
        phase = .holding
        return .rest(reason)
    }

    /// What it was held back for came: it is made anew.
    package mutating func released(_ round: Int) -> Action {
        guard self.round == round, phase == .clearing || phase == .holding else { return .none }
        return enter(.returning, .takePlace)
    }

    /// It may not leave at all.
    package mutating func refused(_ round: Int) -> Action {
        guard self.round == round, phase == .clearing || phase == .holding else { return .none }
        return enter(.deciding, .decide)
    }
}

/// What became of the attempts of one operation, and for how long it has been at them: a pure value, told the time.
package struct AttemptHistory: Sendable {
    /// A download that came so much further is a new beginning.
    private static let leastProgress: Int64 = 64 << 10

    package private(set) var records: [AttemptRecord] = []
    /// How often a download got somewhere before it failed.
    package private(set) var advances = 0
    private var firstBegan: OperationInstant?
    private var present: (number: Int, began: OperationInstant, failed: OperationInstant?)?
    /// Since when it is counted for how long.
    private var counted: OperationInstant?
    /// For how much of that the operation stood still, since when it does, and why.
    private var still = Duration.zero
    private var stillSince: OperationInstant?
    private var isSuspended = false
    private var isAside = false
    /// How much of a file there was when an attempt failed.
    private var saved: Int64 = 0
    /// How many attempts do not count since a download got somewhere, and how many of them did not anyway.
    private var discounted = (all: 0, anyway: 0)

    package init() {}

    /// The preparation of an attempt begins, maybe not for the first time.
    package mutating func begin(_ number: Int, now: OperationInstant, isSuspended: Bool) {
        if firstBegan == nil { (firstBegan, counted) = (now, now) }
        if present?.number != number { present = (number, now, nil) }
        (self.isSuspended, isAside) = (isSuspended, false)
        settle(now)
    }

    /// The operation was suspended, or resumed.
    package mutating func suspend(_ isSuspended: Bool, now: OperationInstant) {
        self.isSuspended = isSuspended
        settle(now)
    }

    /// It was put aside, or held back, until the next preparation.
    package mutating func putAside(now: OperationInstant) {
        isAside = true
        settle(now)
    }

    private mutating func settle(_ now: OperationInstant) {
        let isStill = isSuspended || isAside
        guard firstBegan != nil, isStill != (stillSince != nil) else { return }
        if let since = exchange(&stillSince, with: isStill ? now : nil) { still += since.duration(to: now) }
    }

    /// How long ago the first attempt that counts began, without the time for which the operation stood still.
    package func elapsed(at now: OperationInstant) -> Duration {
        let standing = stillSince.map { $0.duration(to: now) } ?? .zero
        return (counted ?? now).duration(to: now) - still - standing
    }

    /// An attempt failed; of a download so many bytes are there, and so many attempts were not to blame.
    package mutating func fail(_ number: Int, saved: Int64? = nil, replays: Int = 0, now: OperationInstant) {
        if present?.number == number { present?.failed = now }
        guard let saved, saved >= self.saved + Self.leastProgress else { return }
        self.saved = saved
        advances += 1
        discounted = (number - 1, replays)
        (counted, still) = (now, .zero)
        if stillSince != nil { stillSince = now }
    }

    /// How many attempts do not count, if so many were not to blame.
    package func uncounted(_ replays: Int) -> Int { discounted.all + replays - discounted.anyway }

    /// What became of it.
    package mutating func note(
        _ number: Int, _ error: NetworkError, _ decision: AttemptMachine.Decision, now: OperationInstant
    ) {
        // One that was put aside is decided again, and told once.
        guard records.last?.number != number else { return }
        let began = present?.began ?? now
        records.append(
            AttemptRecord(
                number: number, code: error.code, phase: error.phase, status: error.status,
                began: (firstBegan ?? now).duration(to: began), duration: began.duration(to: present?.failed ?? now),
                pause: decision.pause, putAside: decision.reason))
        if decision.reason != nil { putAside(now: now) }
    }
}

extension AttemptMachine.Decision {
    fileprivate var pause: Duration? {
        switch self {
        case .again(let pause), .replay(let pause): pause
        case .fail, .park: nil
        }
    }

    fileprivate var reason: WaitReason? {
        if case .park(let reason) = self { reason } else { nil }
    }
}

extension NetworkAttempts {
    /// What became of the attempts before, where anybody has a say about them.
    var records: [AttemptRecord] { state.withLock { $0.story.records } }

    /// For how long the operation has been at it.
    func elapsed(at now: OperationInstant) -> Duration { state.withLock { $0.story.elapsed(at: now) } }

    /// The preparation of an attempt begins.
    func beginStory(_ number: Int, _ host: any AttemptHost) {
        guard state.withLock({ !$0.policies.isEmpty }) else { return }
        let now = host.clock.now
        state.withLock { $0.story.begin(number, now: now, isSuspended: $0.machine.isSuspended) }
    }

    /// The operation was suspended, or resumed.
    func storyMayGoOn(_ mayGoOn: Bool) {
        guard let (host, _) = running(), state.withLock({ !$0.policies.isEmpty }) else { return }
        let now = host.clock.now
        state.withLock { $0.story.suspend(!mayGoOn, now: now) }
    }
}
