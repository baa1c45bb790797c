// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// The state machine for the attempts of one network operation, in which each event returns the next action of the
/// shell.
///
/// The machine knows nothing of requests, types, threads and time. An event carries the number of its attempt or the
/// round of its preparation. An event of another attempt or round changes nothing.
///
/// `Docs/Design/NetworkOperations.md` contains a diagram of the phases.
///
/// `takenBack` leads from `creating` and `transferring` back to `preparing`.
///
/// While the operation is suspended, no step begins. The next step is stored and begins when the operation is
/// resumed. While the operation is holding, waiting or paused, it rests, which means that it has no slot in its
/// queue. It must get a slot again before it continues.
package struct AttemptMachine: Sendable, Equatable {
    package enum Phase: Sendable, Equatable {
        case idle
        case preparing
        /// The request is ready, and the policies decide whether it may be sent.
        case clearing
        /// A policy holds the request back.
        case holding
        case creating
        case transferring
        case evaluating
        case deciding
        /// A pause before the next attempt.
        case waiting
        /// The next attempt waits for an event.
        case paused
        /// The wait is over, and the operation needs a slot again.
        case returning
        case concluding
        case ended
    }

    /// The next action of the shell.
    package enum Action: Sendable, Equatable {
        case none
        /// Create the request of the current attempt.
        case prepare
        /// Ask the policies whether the request may be sent.
        case clear
        /// Create the task.
        case createTask
        /// Run or suspend the task, depending on the current state.
        case resumeOrSuspendTask
        /// Create the result.
        case evaluate
        /// Ask the policies how to handle the failure.
        case decide
        /// Rest, and report when the time has passed.
        case wait(Duration)
        /// Rest until a policy lets the operation continue.
        indirect case rest(WaitReason)
        /// Get a slot again.
        case takeSlot
        /// Set the outcome of the operation.
        case conclude
    }

    package enum Decision: Sendable, Equatable {
        case fail
        /// Another attempt, after a pause.
        case again(after: Duration)
        /// Another attempt that is not counted, because the last attempt did not fail on its own account.
        case replay(after: Duration)
        /// A pause until the next decision, after which the next attempt is not counted either.
        case pause(WaitReason)
    }

    package private(set) var phase = Phase.idle
    /// Whether the policies examine the current request.
    private var isGated = false
    /// Whether the operation was suspended or resumed since the policies let the request pass.
    private var hasChanged = false
    /// Whether the creation of the task for the current request has begun.
    private var hasBegunCreation = false
    /// Whether a policy refuses the response, regardless of its status.
    ///
    /// The rest of a refused response is read only so that its connection can be reused.
    package private(set) var isResponseRefused = false
    package private(set) var isSuspended = false {
        didSet {
            changes += 1
            hasChanged = true
        }
    }
    /// The number of the current attempt, starting at 1.
    package private(set) var attempt = 0
    /// The number of prepared requests, which exceeds the number of attempts if requests were held back.
    package private(set) var round = 0
    /// The number of attempts that are not counted.
    package private(set) var replays = 0
    /// The number of changes of `isSuspended`.
    private var changes = 0
    /// The action to perform when the suspension ends.
    private var due = Action.none

    package init() {}

    /// The state that the current task should have.
    package var order: PauseOrder { PauseOrder(number: changes, isSuspended: isSuspended) }

    /// Returns whether `number` is the current attempt and its task may still report events.
    ///
    /// A hook may resume or cancel the task that it creates. So the task may report its end before the hook returns.
    package func acceptsEvents(_ number: Int) -> Bool { isAt(.transferring, number) || isAt(.creating, number) }

    /// Whether the operation is held back or paused, so that the thread that ends the wait may have to wake other
    /// operations too.
    package var isHeldOrPaused: Bool { phase == .holding || phase == .paused }

    /// Returns whether the attempt failed and is not decided yet.
    package func awaitsDecision(_ number: Int) -> Bool { isAt(.deciding, number) || isAt(.paused, number) }

    /// Begins the first attempt.
    package mutating func start() -> Action {
        guard phase == .idle else { return .none }
        attempt = 1
        return prepare()
    }

    private mutating func prepare() -> Action {
        round += 1
        (hasBegunCreation, isResponseRefused) = (false, false)
        return enter(.preparing, .prepare)
    }

    private mutating func enter(_ phase: Phase, _ action: Action) -> Action {
        self.phase = phase
        guard isSuspended else { return action }
        due = action
        return .none
    }

    private func isAt(_ phase: Phase, _ number: Int) -> Bool { (self.phase, attempt) == (phase, number) }

    /// Records that the request is ready, and whether the policies must examine it.
    package mutating func prepared(_ number: Int, isGated: Bool = false) -> Action {
        guard isAt(.preparing, number) else { return .none }
        self.isGated = isGated
        return isGated ? enter(.clearing, .clear) : enter(.creating, .createTask)
    }

    /// Records that the task was created, but not resumed.
    ///
    /// The caller passes the first order itself, so it does not perform the action.
    package mutating func created(_ number: Int) -> Action {
        guard isAt(.creating, number) else { return .none }
        phase = .transferring
        return .resumeOrSuspendTask
    }

    /// Records that the response is complete.
    package mutating func transferred(_ number: Int) -> Action {
        acceptsEvents(number) ? enter(.evaluating, .evaluate) : .none
    }

    /// Records that there is a result.
    package mutating func evaluated(_ number: Int) -> Action {
        isAt(.evaluating, number) ? enter(.concluding, .conclude) : .none
    }

    /// Records that the current step of the attempt failed.
    package mutating func failed(_ number: Int) -> Action {
        switch phase {
        case .preparing, .clearing, .creating, .transferring, .evaluating:
            attempt == number ? enter(.deciding, .decide) : .none
        case .idle, .holding, .deciding, .waiting, .paused, .returning, .concluding, .ended: .none
        }
    }

    /// Records that a policy refuses the response.
    ///
    /// The method returns `false` if this was recorded before or the attempt no longer accepts events.
    package mutating func refusedResponse(_ number: Int) -> Bool {
        guard acceptsEvents(number), !isResponseRefused else { return false }
        isResponseRefused = true
        return true
    }

    /// Records that the time limit of the attempt has passed, which counts only until the response is complete.
    ///
    /// If a policy refused the response, the machine treats the response as complete.
    package mutating func exceededTimeLimit(_ number: Int) -> Action {
        if isResponseRefused { return transferred(number) }
        let isUnderWay = isAt(.preparing, number) || isAt(.clearing, number) || acceptsEvents(number)
        return isUnderWay ? enter(.deciding, .decide) : .none
    }

    /// Returns whether `number` is the current attempt, in a phase that has or had a use for a task.
    package func needsTask(_ number: Int) -> Bool {
        switch phase {
        case .creating, .transferring, .evaluating, .concluding: attempt == number
        case .idle, .preparing, .clearing, .holding, .deciding, .waiting, .paused, .returning, .ended: false
        }
    }

    /// Records that the request was out of date when the task could send it.
    ///
    /// The request is created again, in an attempt that is not counted.
    package mutating func takenBack(_ number: Int) -> Action {
        guard acceptsEvents(number) else { return .none }
        replays += 1
        attempt += 1
        return prepare()
    }

    /// Records that the task ended without a complete response, possibly before it was resumed or after it was no
    /// longer needed.
    package mutating func transferFailed(_ number: Int) -> Action {
        acceptsEvents(number) ? enter(.deciding, .decide) : .none
    }

    /// Records the decision about a failed or paused attempt.
    package mutating func decided(_ decision: Decision, _ number: Int) -> Action {
        guard awaitsDecision(number) else { return .none }
        let isFirst = phase == .deciding
        switch decision {
        case .fail: return enter(.concluding, .conclude)
        case .again(let pause): return next(after: pause)
        case .replay(let pause):
            if isFirst { replays += 1 }
            return next(after: pause)
        case .pause(let reason):
            if isFirst { replays += 1 }
            // Waiting is not a step, so a wait may end while the operation is suspended.
            phase = .paused
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
        return enter(.returning, .takeSlot)
    }

    /// Records that the pause before the next attempt is over.
    package mutating func waited(_ number: Int) -> Action {
        isAt(.waiting, number) ? beginNext() : .none
    }

    /// Records that the operation has a slot again.
    package mutating func returned(_ number: Int) -> Action {
        isAt(.returning, number) ? prepare() : .none
    }

    /// Suspends the operation, so that no step begins.
    package mutating func suspend() -> Action {
        isSuspended = true
        return phase == .transferring ? .resumeOrSuspendTask : .none
    }

    /// Resumes the operation, and returns the stored action.
    package mutating func resume() -> Action {
        isSuspended = false
        if phase == .transferring { return .resumeOrSuspendTask }
        defer { due = .none }
        return due
    }

    /// Ends the attempts, and returns false if they ended before.
    package mutating func end() -> Bool {
        guard phase != .ended else { return false }
        phase = .ended
        due = .none
        return true
    }
}

// Requests that are ready, and may be held back.
extension AttemptMachine {
    /// Records that the policies let the request pass.
    ///
    /// A suspension may last until the request is out of date. So if the operation is suspended, the request is
    /// created again.
    package mutating func cleared(_ round: Int) -> Action {
        guard self.round == round, phase == .clearing else { return .none }
        hasChanged = false
        return isSuspended ? prepare() : enter(.creating, .createTask)
    }

    /// Returns the action that creates the task, or the action that prepares the request again because the operation
    /// was suspended or resumed.
    ///
    /// The method returns the first of these actions only once for each request.
    package mutating func creation() -> Action {
        guard phase == .creating, !hasBegunCreation else { return .none }
        if isGated, hasChanged { return prepare() }
        hasBegunCreation = true
        return .createTask
    }

    /// Records that a policy holds the request back.
    package mutating func held(_ reason: WaitReason, _ round: Int) -> Action {
        guard self.round == round, phase == .clearing || phase == .holding else { return .none }
        phase = .holding
        return .rest(reason)
    }

    /// Records that the request is no longer held back, so that it is created again.
    package mutating func released(_ round: Int) -> Action {
        guard self.round == round, phase == .clearing || phase == .holding else { return .none }
        return enter(.returning, .takeSlot)
    }

    /// Records that a policy refused the request.
    package mutating func refused(_ round: Int) -> Action {
        guard self.round == round, phase == .clearing || phase == .holding else { return .none }
        return enter(.deciding, .decide)
    }
}

/// The failed attempts of one operation and the time that they took, as a value that receives the current time as an
/// argument.
package struct AttemptHistory: Sendable {
    /// The number of additional bytes with which a failed download counts as a new beginning.
    private static let leastProgress: Int64 = 64 << 10

    package private(set) var records: [AttemptRecord] = []
    /// The number of failed attempts in which a download made progress.
    package private(set) var advances = 0
    private var firstBegan: OperationInstant?
    private var present: (number: Int, began: OperationInstant, failed: OperationInstant?)?
    /// The start of the counted time.
    private var counted: OperationInstant?
    /// The time in which the operation was suspended or paused, and the start of the current suspension or pause.
    private var idleTime = Duration.zero
    private var idleSince: OperationInstant?
    private var isSuspended = false
    private var isHeldOrPaused = false
    /// The size of the partial file at the last failure that counted as progress.
    private var saved: Int64 = 0
    /// The number of attempts before the download last made progress, and the number of replays among them.
    private var discounted = (all: 0, anyway: 0)

    package init() {}

    /// Creates the history of an operation whose first attempt began at a given time.
    init(began: OperationInstant?) {
        if let began { begin(1, now: began, isSuspended: false) }
    }

    /// Records that the preparation of an attempt begins, possibly for a second time.
    package mutating func begin(_ number: Int, now: OperationInstant, isSuspended: Bool) {
        if firstBegan == nil { (firstBegan, counted) = (now, now) }
        if present?.number != number { present = (number, now, nil) }
        (self.isSuspended, isHeldOrPaused) = (isSuspended, false)
        updateIdleTime(now)
    }

    /// Records that the operation was suspended or resumed.
    package mutating func suspend(_ isSuspended: Bool, now: OperationInstant) {
        self.isSuspended = isSuspended
        updateIdleTime(now)
    }

    /// Records that the operation was paused or held back until the next preparation.
    package mutating func markHeldOrPaused(now: OperationInstant) {
        isHeldOrPaused = true
        updateIdleTime(now)
    }

    private mutating func updateIdleTime(_ now: OperationInstant) {
        let isIdle = isSuspended || isHeldOrPaused
        guard firstBegan != nil, isIdle != (idleSince != nil) else { return }
        if let since = exchange(&idleSince, with: isIdle ? now : nil) { idleTime += since.duration(to: now) }
    }

    /// Returns the time since the first counted attempt, without the time in which the operation was suspended or
    /// paused.
    package func elapsed(at now: OperationInstant) -> Duration {
        let currentIdleTime = idleSince.map { $0.duration(to: now) } ?? .zero
        return (counted ?? now).duration(to: now) - idleTime - currentIdleTime
    }

    /// Records that an attempt failed.
    ///
    /// - Parameters:
    ///   - number: The number of the attempt.
    ///   - saved: The size of the partial file of a download, or 0 if there is none.
    ///   - replays: The number of attempts that are not counted.
    ///   - now: The current time.
    package mutating func fail(_ number: Int, saved: Int64 = 0, replays: Int = 0, now: OperationInstant) {
        if present?.number == number { present?.failed = now }
        guard saved >= self.saved + Self.leastProgress else { return }
        self.saved = saved
        advances += 1
        discounted = (number - 1, replays)
        (counted, idleTime) = (now, .zero)
        if idleSince != nil { idleSince = now }
    }

    /// Returns the number of attempts that are not counted, for a number of replays.
    package func uncounted(_ replays: Int) -> Int { discounted.all + replays - discounted.anyway }

    /// Records the decision about a failed attempt.
    package mutating func record(
        _ number: Int, _ error: NetworkError, _ decision: AttemptMachine.Decision, now: OperationInstant
    ) {
        // A paused attempt is decided again, but recorded only once.
        guard records.last?.number != number else { return }
        let began = present?.began ?? now
        records.append(
            AttemptRecord(
                number: number, code: error.code, phase: error.phase, status: error.status,
                began: (firstBegan ?? now).duration(to: began), duration: began.duration(to: present?.failed ?? now),
                pause: decision.delay, putAside: decision.waitReason))
        if decision.waitReason != nil { markHeldOrPaused(now: now) }
    }
}

extension AttemptMachine.Decision {
    /// The time until the next attempt, or `nil` if the decision specifies no time.
    package var delay: Duration? {
        switch self {
        case .again(let pause), .replay(let pause): pause
        case .fail, .pause: nil
        }
    }

    /// The reason for a pause, or `nil` for other decisions.
    package var waitReason: WaitReason? {
        if case .pause(let reason) = self { reason } else { nil }
    }

    /// The name of the decision, which is suitable as a metric label.
    package var name: String {
        switch self {
        case .fail: "fail"
        case .again: "again"
        case .replay: "replay"
        case .pause: "putAside"
        }
    }
}

extension NetworkAttempts {
    /// The records of the earlier attempts, which are kept only if the operation has a policy.
    var records: [AttemptRecord] { state.withLock { $0.history.records } }

    /// Returns the time that the attempts have taken so far.
    func elapsed(at now: OperationInstant) -> Duration { state.withLock { $0.history.elapsed(at: now) } }
}
