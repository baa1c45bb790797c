// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
