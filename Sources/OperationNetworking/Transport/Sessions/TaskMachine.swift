// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The life of a task, as the thread of its session sees it.
///
/// ```text
///           resume            granted             ended
/// created ─────────▶ waiting ─────────▶ running ─────────▶ ended
///                     ▲  │ suspend        │  │               ▲
///              resume │  ▼                │  └──▶ finished ──┘
///                     parked ◀────────────┘  ended    proceed, resume
///                             suspend before       under a brake
///                             anything was sent
/// ```
///
/// A cancel leads to the end from everywhere. A transfer that is begun anew is as one that was just granted.
package struct TaskMachine {
    /// How far a transfer has come.
    package enum Stage: Sendable {
        case connecting
        case sending
        case receiving
    }

    /// What is held back.
    package struct Brakes: OptionSet, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) { self.rawValue = rawValue }

        package static let receiving = Brakes(rawValue: 1)
        package static let sending = Brakes(rawValue: 2)
    }

    private enum State {
        case created
        /// Suspended before anything was sent.
        case parked
        /// In line for a slot.
        case waiting
        case running(Stage, Brakes)
        /// The transfer is complete, and may not be told yet.
        case finished
        case ended
    }

    /// What the task has that must be given back.
    package enum Holding: Sendable {
        case nothing
        case place
        case transfer
    }

    package enum Action: Equatable, Sendable {
        case none
        case enterLine
        case leaveLine
        /// Give up a transfer of which nothing was sent.
        case abandon
        case brake(Brakes)
        /// Tell what was held back, and then, unless that set a brake again (`restTold`), the end.
        case tellRest
        /// Tell that it was cancelled, and give back what it has.
        case cancel(Holding)
    }

    private var state = State.created

    package init() {}

    package var isEnded: Bool {
        if case .ended = state { true } else { false }
    }

    /// Nil if there is no transfer.
    package var stage: Stage? {
        if case .running(let stage, _) = state { stage } else { nil }
    }

    /// How far a task without a transfer has come: one that is only still to be told was carried out.
    package var restingPhase: NetworkError.Phase {
        if case .finished = state { .receiving } else { .waiting }
    }

    /// Somebody wants something else than before.
    package mutating func wish(_ wishes: TaskDemands) -> Action {
        if wishes.isCancelled { return cancel() }
        switch state {
        case .created, .parked:
            guard wishes.isStarted, !wishes.isSuspended else { return .none }
            state = .waiting
            return .enterLine
        case .waiting:
            guard wishes.isSuspended else { return .none }
            state = .parked
            return .leaveLine
        case .running(.connecting, _) where wishes.isSuspended:
            state = .parked
            return .abandon
        case .running(let stage, let brakes):
            let wanted: Brakes =
                wishes.isSuspended ? [.receiving, .sending] : wishes.isHeld ? .receiving : []
            guard wanted != brakes else { return .none }
            state = .running(stage, wanted)
            return .brake(wanted)
        case .finished:
            return wishes.isBraked ? .none : .tellRest
        case .ended: return .none
        }
    }

    private mutating func cancel() -> Action {
        defer { state = .ended }
        switch state {
        case .created, .parked, .finished: return .cancel(.nothing)
        case .waiting: return .cancel(.place)
        case .running: return .cancel(.transfer)
        case .ended: return .none
        }
    }

    /// Its turn has come; false if it does not want it any more.
    package mutating func granted() -> Bool {
        guard case .waiting = state else { return false }
        state = .running(.connecting, [])
        return true
    }

    /// The request is about to be sent.
    package mutating func connected() {
        guard case .running(.connecting, let brakes) = state else { return }
        state = .running(.sending, brakes)
    }

    /// The response has begun.
    package mutating func responded() {
        guard case .running(_, let brakes) = state else { return }
        state = .running(.receiving, brakes)
    }

    /// The request is to be sent anew, over another connection: all brakes are off.
    package mutating func restarted() {
        guard case .running = state else { return }
        state = .running(.connecting, [])
    }

    /// The transfer is over; false if that may not be told yet, because there is a brake, or something that one had held
    /// back is still to be told: `wish` will say when.
    package mutating func transferEnded(withFailure hasFailed: Bool, isHeldBack: Bool) -> Bool {
        guard !isEnded else { return false }
        state = isHeldBack && !hasFailed ? .finished : .ended
        return isEnded
    }

    /// What was held back was told, as far as the brakes allowed; false if the end may not be told yet.
    package mutating func restTold(isHeldBack: Bool) -> Bool {
        guard case .finished = state, !isHeldBack else { return false }
        state = .ended
        return true
    }
}
