// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
