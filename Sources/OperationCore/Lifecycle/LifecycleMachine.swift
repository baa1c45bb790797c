// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The state machine of one operation, which turns each event into a new phase and an action for the caller.
///
/// The machine knows nothing about types, threads, or time. The caller applies an event under the operation's lock and
/// performs the returned action after it releases the lock. If threads race, the first event that decides the outcome
/// wins.
///
/// In the diagram, "told" means that the handlers have been notified of the outcome.
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
    /// A kind of outcome.
    package enum Ending: UInt8, Sendable { case success, failure, cancelled }

    /// The moment at which an operation with a decided outcome ends.
    package enum Style: UInt8, Sendable {
        /// The operation ends immediately, even if its body is still running.
        case atOnce
        /// After a cancellation, the operation ends when its body reports its end.
        ///
        /// A result or an error ends the operation immediately.
        case afterWindDown
        /// The operation always ends when its body returns.
        case whenBodyReturns
    }

    /// The event that a requested start waits for.
    enum Wait: UInt8 {
        case start
        case dependencies
        /// A condition, a time, or a resource must admit the operation.
        case admission
        /// The wait ended on a thread that may not run the body, and a global queue will begin the operation.
        case turn
        case delay
    }

    /// Whether the body of an operation that began was entered.
    enum Body: UInt8 {
        /// The start is in progress, which includes passing on the inputs and setting the timeout.
        case preparing
        /// The body is running, has run, or is about to run.
        case entered
    }

    /// The event that a canceled operation still waits for before it ends.
    enum Remainder: Equatable {
        case start
        /// The start in progress must complete, after which the body is not entered.
        case entry(Style)
        case body(Style)
        case nothing
    }

    enum Phase: Equatable {
        /// The outcome is undecided, and the body has not begun.
        case pending(Wait)
        /// A result or an error arrived before the start, and the handlers are notified when the operation is started.
        case kept(Ending, Wait)
        /// The rule of a dependency returned an error before the start.
        ///
        /// Handlers are notified when the operation is started, even if other dependencies have not ended.
        case failedByRule
        /// The operation was canceled, and cannot end before a thread has notified the handlers.
        case notifyingCancellation(until: Remainder)
        /// The operation was canceled before the start, the handlers have been notified, and it ends when it is
        /// started.
        case cancelledEarly
        case executing(Body)
        case suspended(Body)
        /// The body provided its result or error but has not returned yet.
        case concluding(Ending)
        /// The operation was canceled and the handlers have been notified, but the body has not ended yet.
        ///
        /// The style is fixed at the moment of the cancellation. A later change by the subclass has no effect.
        case windingDown(Style)
        /// The outcome is decided, and the operation is about to set `isFinished`.
        case finishing(Ending)
        case finished(Ending)
    }

    var phase: Phase = .pending(.start)

    package init() {}
}

// The events up to the body's entry.
extension LifecycleMachine {
    package enum StartAction: Sendable, Equatable {
        /// Run the body, whose entry is already recorded.
        case run
        /// Set the timeout and pass on the inputs, after which `enterBody` follows.
        case prepareBody
        /// Call `turnCame` on a global queue, because the current thread may not run the body.
        case takeTurn
        /// Wait for `dependenciesEnded`.
        case awaitDependencies
        /// Ask for admission, after which `admittedAtOnce` or `admitted` follows.
        case seekAdmission
        /// Set the timer, after which `delayEnded` follows.
        case delay
        /// Notify the handlers of the outcome that was kept, and then end the operation.
        case notifyAndEnd
        /// End the operation, whose handlers have already been notified.
        case end
        /// Do nothing, because the thread that notifies the handlers of the cancellation will end the operation.
        case awaitNotification
        /// Call the hook that resumes the body.
        case resume
        /// Refuse the start, because the operation was started before.
        case refuse
    }

    /// Starts the operation, directly or from a queue.
    ///
    /// If `prepares` is `true`, work precedes the body, and `enterBody` will follow.
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
            return .notifyAndEnd
        case .failedByRule:
            phase = .finishing(.failure)
            return .notifyAndEnd
        case .notifyingCancellation(.start):
            phase = .notifyingCancellation(until: .nothing)
            return .awaitNotification
        case .cancelledEarly:
            phase = .finishing(.cancelled)
            return .end
        case .suspended(let body):
            phase = .executing(body)
            return .resume
        case .pending, .kept, .executing, .concluding, .notifyingCancellation, .windingDown, .finishing, .finished:
            return .refuse
        }
    }

    /// Handles the end of the last dependency, and returns `nil` if no start waits for it.
    package mutating func dependenciesEnded() -> StartAction? {
        switch phase {
        case .pending(.dependencies):
            phase = .pending(.turn)
            return .takeTurn
        case .kept(let ending, .dependencies):
            phase = .finishing(ending)
            return .notifyAndEnd
        default:
            return nil
        }
    }

    /// Begins the operation on a global queue, and returns `nil` if the operation has ended in the meantime.
    package mutating func turnCame(isAdmitted: Bool = true, hasDelay: Bool) -> StartAction? {
        guard case .pending(.turn) = phase else { return nil }
        return begin(isAdmitted: isAdmitted, hasDelay: hasDelay, prepares: true)
    }

    /// Handles an admission on the thread that asked for it, and returns `nil` if the operation has ended in the
    /// meantime.
    package mutating func admittedAtOnce(hasDelay: Bool) -> StartAction? {
        guard case .pending(.admission) = phase else { return nil }
        return begin(isAdmitted: true, hasDelay: hasDelay, prepares: true)
    }

    /// Handles an admission on any thread, and returns `nil` if no start waits for it.
    package mutating func admitted() -> StartAction? {
        guard case .pending(.admission) = phase else { return nil }
        phase = .pending(.turn)
        return .takeTurn
    }

    /// Handles the end of the delay before the start, and returns `nil` if no start waits for it.
    package mutating func delayEnded(isAdmitted: Bool = true) -> StartAction? {
        guard case .pending(.delay) = phase else { return nil }
        guard isAdmitted else {
            phase = .pending(.admission)
            return .seekAdmission
        }
        phase = .executing(.preparing)
        return .prepareBody
    }

    private mutating func begin(isAdmitted: Bool, hasDelay: Bool, prepares: Bool) -> StartAction {
        guard isAdmitted else {
            phase = .pending(.admission)
            return .seekAdmission
        }
        guard !hasDelay else {
            phase = .pending(.delay)
            return .delay
        }
        phase = .executing(prepares ? .preparing : .entered)
        return prepares ? .prepareBody : .run
    }

    /// Completes the preparation, and returns whether the body must run now.
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

// The events that decide the outcome, and the events after the decision.
extension LifecycleMachine {
    package enum FinishAction: Sendable, Equatable {
        /// Notify the handlers of the outcome, which is now decided, and then end the operation.
        case notifyAndEnd
        /// Keep the outcome, which is now decided, to notify the handlers and end the operation later.
        case keep
        /// End the operation, which was canceled and has notified its handlers.
        case end
        /// Do nothing, because the thread that notifies the handlers of the cancellation will end the operation.
        case awaitNotification
        /// Refuse the call, because the operation already has a result or an error.
        case refuseSecond
        /// Refuse the call, because the operation was canceled.
        case refuseCancelled
    }

    /// Handles a result or an error from the body or from another caller.
    package mutating func finish(_ ending: Ending, style: Style) -> FinishAction {
        switch phase {
        case .pending(.admission), .pending(.turn), .pending(.delay):
            // The dependencies have ended, the operation was started, and no body is running.
            phase = .finishing(ending)
            return .notifyAndEnd
        case .pending(let wait):
            phase = .kept(ending, wait)
            return .keep
        case .executing, .suspended:
            if style == .whenBodyReturns {
                phase = .concluding(ending)
                return .keep
            }
            phase = .finishing(ending)
            return .notifyAndEnd
        case .notifyingCancellation(.body(.afterWindDown)), .notifyingCancellation(.entry(.afterWindDown)):
            phase = .notifyingCancellation(until: .nothing)
            return .awaitNotification
        case .windingDown(.afterWindDown):
            phase = .finishing(.cancelled)
            return .end
        case .notifyingCancellation, .cancelledEarly, .windingDown, .finishing(.cancelled), .finished(.cancelled):
            return .refuseCancelled
        case .kept, .failedByRule, .concluding, .finishing, .finished:
            return .refuseSecond
        }
    }

    package enum RuleAction: Sendable, Equatable {
        /// Notify the handlers of the error, and then end the operation.
        case notifyAndEnd
        /// Keep the error, to notify the handlers and end the operation when it is started, which may be now.
        case keep
    }

    /// Handles an error from the rule of a dependency, and returns `nil` if it came too late.
    ///
    /// After such an error, the operation does not wait for its other dependencies.
    package mutating func failByRule() -> RuleAction? {
        switch phase {
        case .pending(.start):
            phase = .failedByRule
            return .keep
        case .pending(.dependencies), .pending(.admission), .pending(.turn), .pending(.delay):
            phase = .finishing(.failure)
            return .notifyAndEnd
        default:
            return nil
        }
    }

    /// Gives a mapped operation the converted outcome of its original.
    ///
    /// A mapped operation is never started itself.
    ///
    /// - Returns: `false` if the operation already had another outcome, which it keeps.
    package mutating func adopt(_ converted: Ending) -> Bool {
        let kept = ending
        phase = .finishing(kept ?? converted)
        return kept == nil
    }

    package enum CancelAction: Sendable, Equatable {
        /// Notify the handlers, and then call `cancellationNotified`.
        case notify
        /// Notify the handlers, and then end the operation.
        case notifyAndEnd
        /// Notify the handlers, stop the body, and then end the operation.
        case notifyStopAndEnd
        /// Refuse the cancellation, because the outcome was already decided.
        case refuse
    }

    /// Cancels the operation.
    package mutating func cancel(style: Style) -> CancelAction {
        switch phase {
        case .pending(.start):
            phase = .notifyingCancellation(until: .start)
            return .notify
        case .pending(.dependencies), .pending(.admission), .pending(.turn), .pending(.delay):
            phase = .finishing(.cancelled)
            return .notifyAndEnd
        case .executing(.preparing), .suspended(.preparing):
            phase = style == .atOnce ? .finishing(.cancelled) : .notifyingCancellation(until: .entry(style))
            return style == .atOnce ? .notifyAndEnd : .notify
        case .executing(.entered), .suspended(.entered):
            phase = style == .atOnce ? .finishing(.cancelled) : .notifyingCancellation(until: .body(style))
            return style == .atOnce ? .notifyStopAndEnd : .notify
        case .kept, .failedByRule, .notifyingCancellation, .cancelledEarly, .concluding, .windingDown, .finishing,
            .finished:
            return .refuse
        }
    }

    /// Cancels and ends an operation that has no handlers to notify and that will not be started.
    ///
    /// - Returns: `false`, without any effect, if the outcome is decided or the operation was started.
    package mutating func cancelAndEnd() -> Bool {
        guard phase == .pending(.start) else { return false }
        phase = .finished(.cancelled)
        return true
    }

    package enum NotificationAction: Sendable, Equatable {
        /// Do nothing, because the operation ends when it is started.
        case none
        /// Do nothing, because the operation ends when the start in progress reaches the body, which is not entered.
        case awaitEntry
        /// Stop the body, which will report its end.
        case stop
        /// End the operation, because the event that it waited for has arrived.
        case end
    }

    /// Records that the handlers have been notified of the cancellation.
    package mutating func cancellationNotified() -> NotificationAction {
        guard case .notifyingCancellation(let remainder) = phase else { return .none }
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
        /// Notify the handlers of the outcome, and then end the operation.
        case notifyAndEnd
        /// Cancel the operation because the body provided no result, notify the handlers, and then end it.
        case notifyMissingResultAndEnd
        /// End the operation, whose handlers have already been notified.
        case end
    }

    /// Handles the return of a body that the operation's end waits for, or a body that was not entered.
    ///
    /// - Returns: `nil` if this event does not end the operation.
    package mutating func bodyReturned() -> ReturnAction? {
        switch phase {
        case .executing, .suspended:
            phase = .finishing(.cancelled)
            return .notifyMissingResultAndEnd
        case .concluding(let ending):
            phase = .finishing(ending)
            return .notifyAndEnd
        case .notifyingCancellation(.body), .notifyingCancellation(.entry):
            phase = .notifyingCancellation(until: .nothing)
            return nil
        case .windingDown:
            phase = .finishing(.cancelled)
            return .end
        case .pending, .kept, .failedByRule, .notifyingCancellation, .cancelledEarly, .finishing, .finished:
            return nil
        }
    }

    /// Marks the operation as finished after its handlers were notified, and returns `false` if it was already marked.
    package mutating func end() -> Bool {
        guard case .finishing(let ending) = phase else { return false }
        phase = .finished(ending)
        return true
    }

    /// Suspends an executing operation, and returns `false` if the operation is not executing.
    package mutating func suspend() -> Bool {
        guard case .executing(let body) = phase else { return false }
        phase = .suspended(body)
        return true
    }

    /// Resumes a suspended operation, and returns `false` if the operation is not suspended.
    package mutating func resume() -> Bool {
        guard case .suspended(let body) = phase else { return false }
        phase = .executing(body)
        return true
    }
}

// The values that can be read from outside.
extension LifecycleMachine {
    /// The state that users see.
    package var state: OperationState {
        switch phase {
        case .pending, .kept, .failedByRule: .notStarted
        case .executing, .concluding: .executing
        case .suspended: .suspended
        case .notifyingCancellation, .cancelledEarly, .windingDown, .finishing(.cancelled), .finished(.cancelled):
            .cancelled
        case .finishing, .finished: .finished
        }
    }

    /// The state of an operation that maps this one, until the outcome is converted.
    package var stateBeforeConversion: OperationState {
        switch state {
        case .finished, .cancelled: isStarted ? .executing : .notStarted
        case .notStarted, .executing, .suspended: state
        }
    }

    /// The kind of the outcome, or `nil` if the outcome is undecided.
    package var ending: Ending? {
        switch phase {
        case .pending, .executing, .suspended: nil
        case .notifyingCancellation, .cancelledEarly, .windingDown: .cancelled
        case .failedByRule: .failure
        case .kept(let ending, _), .concluding(let ending), .finishing(let ending), .finished(let ending): ending
        }
    }

    /// Whether the handlers have been notified, so that a handler that is added later must be called immediately.
    package var isOutcomeReported: Bool {
        switch phase {
        case .pending, .kept, .failedByRule, .executing, .suspended, .concluding: false
        case .notifyingCancellation, .cancelledEarly, .windingDown, .finishing, .finished: true
        }
    }

    package var isCancelled: Bool { ending == .cancelled }

    package var isFinished: Bool {
        if case .finished = phase { true } else { false }
    }

    /// Whether the start was performed, even if the body was not entered.
    package var isStarted: Bool {
        switch phase {
        case .pending, .kept, .failedByRule, .cancelledEarly, .notifyingCancellation(.start): false
        case .executing, .suspended, .concluding, .notifyingCancellation, .windingDown, .finishing, .finished: true
        }
    }

    /// The value of `isExecuting`, which is true from the start until `isFinished` is about to be set.
    package var isExecuting: Bool {
        switch phase {
        case .executing, .suspended, .concluding, .windingDown: true
        case .notifyingCancellation(.body), .notifyingCancellation(.entry): true
        case .pending, .kept, .failedByRule, .notifyingCancellation, .cancelledEarly, .finishing, .finished: false
        }
    }

    /// Whether a start was requested but not yet performed.
    package var isStartAwaited: Bool {
        switch phase {
        case .pending(let wait), .kept(_, let wait): wait != .start
        default: false
        }
    }

    /// Whether a start was requested, even if it was not performed yet.
    package var isStartUnderWay: Bool {
        switch phase {
        case .pending(.start), .kept(_, .start), .failedByRule, .cancelledEarly, .notifyingCancellation(.start): false
        default: true
        }
    }

    /// Whether a dependency can still be added.
    package var acceptsDependencies: Bool { phase == .pending(.start) }

    /// Whether the operation can be started although its dependencies have not ended.
    package var ignoresDependencies: Bool {
        switch phase {
        case .pending, .kept: false
        default: true
        }
    }
}
