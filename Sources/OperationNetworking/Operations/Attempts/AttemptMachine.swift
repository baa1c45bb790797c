// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The attempts of one network operation as a pure value: each event moves it and says what the shell must do now.
///
/// It knows nothing of requests, types, threads or time. Events carry the number of their attempt; one that is not the
/// present attempt's moves nothing.
///
/// ```text
///             prepared      created          transferred        evaluated
/// preparing ─────────▶ creating ─────▶ transferring ─────▶ evaluating ─────▶ concluding ─────▶ ended
///     ▲ └──── failed ─────┴────────────────┴───────────────────┘ ▲               ▲
///     │                  ▼                                       │               │
///  waiting ◀─ again ─ deciding ───────────── fail ───────────────────────────────┘
/// ```
///
/// While it is suspended no step begins: the one that is due is kept for the resumption.
package struct AttemptMachine: Sendable, Equatable {
    package enum Phase: Sendable, Equatable {
        case idle
        case preparing
        case creating
        case transferring
        case evaluating
        case deciding
        case waiting
        case concluding
        case ended
    }

    /// What the shell is to do.
    package enum Action: Sendable, Equatable {
        case none
        /// Make the request of the present attempt.
        case prepare
        /// Make its task.
        case createTask
        /// Bring the task to what is wanted now: running or suspended.
        case settleTask
        /// Make the result.
        case evaluate
        /// Ask what becomes of the failure.
        case decide
        /// Wait, and say when that is over.
        case wait(Duration)
        /// Give the operation its outcome.
        case conclude
    }

    package enum Decision: Sendable, Equatable {
        case fail
        case again(after: Duration)
    }

    package private(set) var phase = Phase.idle
    /// The number of the present attempt, from 1.
    package private(set) var attempt = 0
    package private(set) var isSuspended = false { didSet { changes += 1 } }
    /// How often that was said.
    private var changes = 0
    /// The step that is due when the suspension is over.
    private var due = Action.none

    package init() {}

    /// What is wanted of the present task.
    package var order: BrakeOrder { BrakeOrder(number: changes, isSuspended: isSuspended) }

    /// Whether the present attempt is that one, and what its task tells counts.
    ///
    /// A hook may resume or cancel the task that it makes, which may thus tell its end before the hook has returned.
    package func mayBeTold(_ number: Int) -> Bool { isAt(.creating, number) || isAt(.transferring, number) }

    /// The operation's body begins.
    package mutating func start() -> Action {
        guard phase == .idle else { return .none }
        return beginAttempt()
    }

    private mutating func beginAttempt() -> Action {
        attempt += 1
        return enter(.preparing, .prepare)
    }

    private mutating func enter(_ phase: Phase, _ action: Action) -> Action {
        self.phase = phase
        guard isSuspended else { return action }
        due = action
        return .none
    }

    private func isAt(_ phase: Phase, _ number: Int) -> Bool { self.phase == phase && attempt == number }

    /// The request is ready.
    package mutating func prepared(_ number: Int) -> Action {
        isAt(.preparing, number) ? enter(.creating, .createTask) : .none
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
        case .preparing, .creating, .transferring, .evaluating:
            attempt == number ? enter(.deciding, .decide) : .none
        case .idle, .deciding, .waiting, .concluding, .ended: .none
        }
    }

    /// The task ended without a complete response: maybe before it was resumed, and maybe after nobody wanted more of it.
    package mutating func transferFailed(_ number: Int) -> Action {
        mayBeTold(number) ? enter(.deciding, .decide) : .none
    }

    /// It was decided what becomes of the failure.
    package mutating func decided(_ decision: Decision, _ number: Int) -> Action {
        guard isAt(.deciding, number) else { return .none }
        switch decision {
        case .fail: return enter(.concluding, .conclude)
        case .again(let pause) where pause <= .zero: return beginAttempt()
        case .again(let pause):
            // The wait is no step: it may as well run out while nothing may begin.
            phase = .waiting
            return .wait(pause)
        }
    }

    /// The wait before the next attempt is over.
    package mutating func waited(_ number: Int) -> Action {
        isAt(.waiting, number) ? beginAttempt() : .none
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
