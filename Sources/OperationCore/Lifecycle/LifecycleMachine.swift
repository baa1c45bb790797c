// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The life of one operation as a pure value: each event moves it and says what the shell must do now.
///
/// It knows nothing of types, threads or time. The shell applies an event under the operation's lock and performs the
/// returned action after it; whatever order threads come in, the outcome is decided once, by the event that came first.
///
/// ```text
///           start                              finish, cancel                 told
/// pending ─────────▶ executing ⇄ suspended ────────────────▶ finishing ────────────▶ finished
///    │ finish            │ finish (body must return)  concluding ──▲ body returned
///    ├────▶ kept ────────│──────────────────────────── start ──────▲
///    │ a dependency's rule
///    ├────▶ failedByRule │──────────────────────────── start ──────▲
///    │ cancel            │ cancel (body must end)     windingDown ─▲ body ended
///    └────▶ cancelledEarly ─────────────────────────── start ──────▲
/// ```
package struct LifecycleMachine: Sendable, Equatable {
    /// How an outcome came about.
    package enum Ending: UInt8, Sendable { case success, failure, cancelled }

    /// When an operation whose outcome is decided counts as ended.
    package enum Style: UInt8, Sendable {
        /// There and then, whatever its body still does.
        case atOnce
        /// When the body says so after a cancellation; a result or an error ends it at once.
        case afterWindDown
        /// When the body returned, always.
        case whenBodyReturns
    }

    /// What a start that was asked for waits for.
    enum Wait: UInt8 {
        case start
        case dependencies
        /// That a condition, a moment or a resource lets it begin.
        case admission
        /// The dependencies ended on a thread of their own, and a queue will begin this one.
        case turn
        case delay
    }

    /// Whether the body of an operation that began was entered, or is certain not to have been.
    enum Body: UInt8 {
        /// The start is being performed: inputs are handed over, and the timeout is set.
        case toCome
        /// It runs, did, or is just about to.
        case entered
    }

    /// What a cancelled operation has still to wait for before it ends.
    enum Remainder: Equatable {
        case start
        /// The start that is being performed, after which the body is not entered.
        case entry(Style)
        case body(Style)
        case nothing
    }

    enum Phase: Equatable {
        /// Undecided, and the body has not begun.
        case pending(Wait)
        /// A result or error came before the start: decided, to be told when it is started.
        case kept(Ending, Wait)
        /// The rule of a dependency gave an error before the start: decided, to be told when it is started, without
        /// waiting for the other dependencies.
        case failedByRule
        /// Cancelled, and somebody is telling so: it cannot end before that is done.
        case tellingCancellation(until: Remainder)
        /// Cancelled before the start: decided and told, to be ended when it is started.
        case cancelledEarly
        case executing(Body)
        case suspended(Body)
        /// The body gave its result or error and has still to return.
        case concluding(Ending)
        /// Cancelled and told; the body has still to end.
        ///
        /// How it ends was settled when it was cancelled, whatever its subclass says later.
        case windingDown(Style)
        /// Decided and told; `isFinished` is about to be signalled.
        case finishing(Ending)
        case finished(Ending)
    }

    var phase: Phase = .pending(.start)

    package init() {}
}

// The events up to the body's entry.
extension LifecycleMachine {
    package enum StartAction: Sendable, Equatable {
        /// Run the body.
        case run
        /// Not on this thread, which is that of the dependency: `turnCame` will follow, on a queue.
        case takeTurn
        /// Nothing yet: `dependenciesEnded` will follow.
        case awaitDependencies
        /// Ask for what must let it begin: `admittedAtOnce` or `admitted` will follow.
        case seekAdmission
        /// Set the timer: `delayEnded` will follow.
        case delay
        /// Tell the outcome that was kept, then end.
        case tellAndEnd
        /// The outcome is told: end.
        case end
        /// Nothing: who tells the cancellation will end it.
        case awaitTelling
        /// Call the hook that resumes the body.
        case resume
        /// It was started before.
        case refuse
    }

    /// The operation was started, by hand or by a queue.
    ///
    /// One that `prepares` has something to do before its body: `enterBody` will follow.
    package mutating func start(
        isReady: Bool, isAdmitted: Bool = true, hasDelay: Bool, prepares: Bool = false
    ) -> StartAction {
        switch phase {
        case .pending(.start):
            guard isReady else {
                phase = .pending(.dependencies)
                return .awaitDependencies
            }
            return begin(isAdmitted: isAdmitted, hasDelay: hasDelay, prepares: prepares)
        case .kept(let ending, .start):
            guard isReady else {
                phase = .kept(ending, .dependencies)
                return .awaitDependencies
            }
            phase = .finishing(ending)
            return .tellAndEnd
        case .failedByRule:
            phase = .finishing(.failure)
            return .tellAndEnd
        case .tellingCancellation(.start):
            phase = .tellingCancellation(until: .nothing)
            return .awaitTelling
        case .cancelledEarly:
            phase = .finishing(.cancelled)
            return .end
        case .suspended(let body):
            phase = .executing(body)
            return .resume
        case .pending, .kept, .executing, .concluding, .tellingCancellation, .windingDown, .finishing, .finished:
            return .refuse
        }
    }

    /// The last dependency ended; nil if no start waits for that.
    package mutating func dependenciesEnded() -> StartAction? {
        switch phase {
        case .pending(.dependencies):
            phase = .pending(.turn)
            return .takeTurn
        case .kept(let ending, .dependencies):
            phase = .finishing(ending)
            return .tellAndEnd
        default:
            return nil
        }
    }

    /// The queue began with it; nil if it was ended meanwhile.
    package mutating func turnCame(isAdmitted: Bool = true, hasDelay: Bool) -> StartAction? {
        guard case .pending(.turn) = phase else { return nil }
        return begin(isAdmitted: isAdmitted, hasDelay: hasDelay, prepares: true)
    }

    /// All that must let it begin did so on the thread that asked; nil if it was ended meanwhile.
    package mutating func admittedAtOnce(hasDelay: Bool) -> StartAction? {
        guard case .pending(.admission) = phase else { return nil }
        return begin(isAdmitted: true, hasDelay: hasDelay, prepares: true)
    }

    /// All that must let it begin did so, on some thread; nil if nothing waits for that.
    package mutating func admitted() -> StartAction? {
        guard case .pending(.admission) = phase else { return nil }
        phase = .pending(.turn)
        return .takeTurn
    }

    /// The delay before the start is over; nil if nothing waits for that.
    package mutating func delayEnded(isAdmitted: Bool = true) -> StartAction? {
        guard case .pending(.delay) = phase else { return nil }
        guard isAdmitted else {
            phase = .pending(.admission)
            return .seekAdmission
        }
        phase = .executing(.toCome)
        return .run
    }

    private mutating func begin(isAdmitted: Bool, hasDelay: Bool, prepares: Bool) -> StartAction {
        guard isAdmitted else {
            phase = .pending(.admission)
            return .seekAdmission
        }
        phase = hasDelay ? .pending(.delay) : .executing(prepares ? .toCome : .entered)
        return hasDelay ? .delay : .run
    }

    /// What precedes the body is done; returns whether the body is to be run now.
    package mutating func enterBody() -> Bool {
        switch phase {
        case .executing:
            phase = .executing(.entered)
            return true
        case .suspended:
            phase = .suspended(.entered)
            return true
        default:
            return false
        }
    }
}

// The events that decide the outcome, and those that follow it.
extension LifecycleMachine {
    package enum FinishAction: Sendable, Equatable {
        /// Decided: tell, then end.
        case tellAndEnd
        /// Decided: tell and end later.
        case keep
        /// Decided and told before, as cancelled: end.
        case end
        /// Decided before, as cancelled: who tells that will end it.
        case awaitTelling
        /// It has a result or an error already.
        case refuseSecond
        /// It was cancelled.
        case refuseCancelled
    }

    /// The body, or somebody else, gave a result or an error.
    package mutating func finish(_ ending: Ending, style: Style) -> FinishAction {
        switch phase {
        case .pending(.admission), .pending(.turn), .pending(.delay):
            // Its dependencies ended, it was started, and there is no body to wait for.
            phase = .finishing(ending)
            return .tellAndEnd
        case .pending(let wait):
            phase = .kept(ending, wait)
            return .keep
        case .executing, .suspended:
            if style == .whenBodyReturns {
                phase = .concluding(ending)
                return .keep
            }
            phase = .finishing(ending)
            return .tellAndEnd
        case .tellingCancellation(.body(.afterWindDown)), .tellingCancellation(.entry(.afterWindDown)):
            phase = .tellingCancellation(until: .nothing)
            return .awaitTelling
        case .windingDown(.afterWindDown):
            phase = .finishing(.cancelled)
            return .end
        case .tellingCancellation, .cancelledEarly, .windingDown, .finishing(.cancelled), .finished(.cancelled):
            return .refuseCancelled
        case .kept, .failedByRule, .concluding, .finishing, .finished:
            return .refuseSecond
        }
    }

    package enum RuleAction: Sendable, Equatable {
        /// Decided: tell, then end.
        case tellAndEnd
        /// Decided: tell and end when it is started, which may be now.
        case keep
    }

    /// The rule of a dependency gave an error, upon which the others do not matter; nil if that came too late.
    package mutating func failByRule() -> RuleAction? {
        switch phase {
        case .pending(.start):
            phase = .failedByRule
            return .keep
        case .pending(.dependencies), .pending(.admission), .pending(.turn), .pending(.delay):
            phase = .finishing(.failure)
            return .tellAndEnd
        default:
            return nil
        }
    }

    /// Gives a mapped operation, which is never started itself, the converted outcome of its original.
    ///
    /// - Returns: Whether the operation takes that outcome. If not, it already had another one, which counts.
    package mutating func adopt(_ converted: Ending) -> Bool {
        let kept = ending
        phase = .finishing(kept ?? converted)
        return kept == nil
    }

    package enum CancelAction: Sendable, Equatable {
        /// Decided: tell, and say when that is done.
        case tell
        /// Decided: tell, then end.
        case tellAndEnd
        /// Decided: tell, stop the body, then end.
        case tellStopAndEnd
        /// Something else was decided before.
        case refuse
    }

    /// Somebody cancelled the operation.
    package mutating func cancel(style: Style) -> CancelAction {
        switch phase {
        case .pending(.start):
            phase = .tellingCancellation(until: .start)
            return .tell
        case .pending(.dependencies), .pending(.admission), .pending(.turn), .pending(.delay):
            phase = .finishing(.cancelled)
            return .tellAndEnd
        case .executing(.toCome), .suspended(.toCome):
            phase = style == .atOnce ? .finishing(.cancelled) : .tellingCancellation(until: .entry(style))
            return style == .atOnce ? .tellAndEnd : .tell
        case .executing(.entered), .suspended(.entered):
            phase = style == .atOnce ? .finishing(.cancelled) : .tellingCancellation(until: .body(style))
            return style == .atOnce ? .tellStopAndEnd : .tell
        case .kept, .failedByRule, .tellingCancellation, .cancelledEarly, .concluding, .windingDown, .finishing,
            .finished:
            return .refuse
        }
    }

    /// Somebody cancelled the operation, nobody is to be told, and it will not be started: it has ended; false, and nothing
    /// happened, unless it is undecided and was not started.
    package mutating func cancelAndEnd() -> Bool {
        guard phase == .pending(.start) else { return false }
        phase = .finished(.cancelled)
        return true
    }

    package enum NotificationAction: Sendable, Equatable {
        /// It ends when it is started.
        case none
        /// It ends when the start that is being performed comes to the body, which is not entered.
        case awaitEntry
        /// Stop the body, which will say when it ended.
        case stop
        /// What it waited for came meanwhile: end.
        case end
    }

    /// Who had to tell a cancellation has told it.
    package mutating func cancellationTold() -> NotificationAction {
        guard case .tellingCancellation(let remainder) = phase else { return .none }
        switch remainder {
        case .start:
            phase = .cancelledEarly
            return .none
        case .entry(let style):
            phase = .windingDown(style)
            return .awaitEntry
        case .body(let style):
            phase = .windingDown(style)
            return .stop
        case .nothing:
            phase = .finishing(.cancelled)
            return .end
        }
    }

    package enum ReturnAction: Sendable, Equatable {
        /// Tell the outcome, then end.
        case tellAndEnd
        /// The body gave nothing: decide that it was cancelled for that cause, tell, then end.
        case tellMissingResultAndEnd
        /// The outcome is told: end.
        case end
    }

    /// The body of an operation that ends with it returned, or was not entered; nil if that ends nothing.
    package mutating func bodyReturned() -> ReturnAction? {
        switch phase {
        case .executing, .suspended:
            phase = .finishing(.cancelled)
            return .tellMissingResultAndEnd
        case .concluding(let ending):
            phase = .finishing(ending)
            return .tellAndEnd
        case .tellingCancellation(.body), .tellingCancellation(.entry):
            phase = .tellingCancellation(until: .nothing)
            return nil
        case .windingDown:
            phase = .finishing(.cancelled)
            return .end
        case .pending, .kept, .failedByRule, .tellingCancellation, .cancelledEarly, .finishing, .finished:
            return nil
        }
    }

    /// The shell has told the outcome and signals now that the operation ended; false if it did so before.
    package mutating func end() -> Bool {
        guard case .finishing(let ending) = phase else { return false }
        phase = .finished(ending)
        return true
    }

    /// Puts an executing operation on hold; false if it is not executing.
    package mutating func suspend() -> Bool {
        guard case .executing(let body) = phase else { return false }
        phase = .suspended(body)
        return true
    }

    /// Lets a suspended operation go on; false if it is not suspended.
    package mutating func resume() -> Bool {
        guard case .suspended(let body) = phase else { return false }
        phase = .executing(body)
        return true
    }
}

// What can be seen from outside.
extension LifecycleMachine {
    /// The state that users see.
    package var state: OperationState {
        switch phase {
        case .pending, .kept, .failedByRule: .notStarted
        case .executing, .concluding: .executing
        case .suspended: .suspended
        case .tellingCancellation, .cancelledEarly, .windingDown, .finishing(.cancelled), .finished(.cancelled):
            .cancelled
        case .finishing, .finished: .finished
        }
    }

    /// The state of an operation that is mapped from this one, until the outcome is converted.
    package var stateBeforeConversion: OperationState {
        switch state {
        case .finished, .cancelled: isStarted ? .executing : .notStarted
        case .notStarted, .executing, .suspended: state
        }
    }

    /// How the outcome came about, once it is decided.
    package var ending: Ending? {
        switch phase {
        case .pending, .executing, .suspended: nil
        case .tellingCancellation, .cancelledEarly, .windingDown: .cancelled
        case .failedByRule: .failure
        case .kept(let ending, _), .concluding(let ending), .finishing(let ending), .finished(let ending): ending
        }
    }

    /// Whether handlers have been told, so that a later one must be called at once.
    package var isTold: Bool {
        switch phase {
        case .pending, .kept, .failedByRule, .executing, .suspended, .concluding: false
        case .tellingCancellation, .cancelledEarly, .windingDown, .finishing, .finished: true
        }
    }

    package var isCancelled: Bool { ending == .cancelled }

    package var isFinished: Bool {
        if case .finished = phase { true } else { false }
    }

    /// Whether the start was performed: the body begins, began, or never will.
    package var isStarted: Bool {
        switch phase {
        case .pending, .kept, .failedByRule, .cancelledEarly, .tellingCancellation(.start): false
        case .executing, .suspended, .concluding, .tellingCancellation, .windingDown, .finishing, .finished: true
        }
    }

    /// What `Foundation.Operation` calls executing: begun, and `isFinished` not yet signalled.
    package var isExecuting: Bool {
        switch phase {
        case .executing, .suspended, .concluding, .windingDown: true
        case .tellingCancellation(.body), .tellingCancellation(.entry): true
        case .pending, .kept, .failedByRule, .tellingCancellation, .cancelledEarly, .finishing, .finished: false
        }
    }

    /// Whether a start was asked for that has not been performed.
    package var isStartAwaited: Bool {
        switch phase {
        case .pending(let wait), .kept(_, let wait): wait != .start
        default: false
        }
    }

    /// Whether a dependency may still be added.
    package var acceptsDependencies: Bool { phase == .pending(.start) }

    /// Whether it may be started although its dependencies have not ended.
    package var ignoresDependencies: Bool {
        switch phase {
        case .pending, .kept: false
        default: true
        }
    }
}
