// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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

    package enum ToldAction: Sendable, Equatable {
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
    package mutating func cancellationTold() -> ToldAction {
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
