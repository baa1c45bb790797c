// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The state machine of a task, which runs on the thread of its session.
///
/// ```text
///           resume            granted             ended
/// created ─────────▶ waiting ─────────▶ running ─────────▶ ended
///                     ▲  │ suspend        │  │               ▲
///              resume │  ▼                │  └──▶ finished ──┘
///                     suspended ◀────────────┘  ended    proceed, resume
///                             suspend before       while paused
///                             anything was sent
/// ```
///
/// A cancellation leads from every state to `ended`. A transfer that begins again is in the same state as one that has
/// just been granted.
package struct TaskMachine {
    /// The progress of a transfer.
    package enum Stage: Sendable {
        case connecting
        case sending
        case receiving
    }

    /// The directions that are paused.
    package struct PausedDirections: OptionSet, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) { self.rawValue = rawValue }

        package static let receiving = PausedDirections(rawValue: 1)
        package static let sending = PausedDirections(rawValue: 2)
    }

    private enum State {
        case created
        /// The task was suspended before anything was sent.
        case suspended
        /// The task waits in the queue for a slot.
        case waiting
        case running(Stage, PausedDirections)
        /// The transfer is complete, but its end may not be reported yet.
        case finished
        case ended
    }

    package enum Action: Equatable, Sendable {
        case none
        case enterQueue
        case leaveQueue
        /// Abandon a transfer that has sent nothing.
        case abandon
        case pause(PausedDirections)
        /// Deliver the events that wait, and then the end, unless delivery was paused again (`restDelivered`).
        case deliverRest
        /// Report the cancellation, and give the slot or the transfer back, if the task has one.
        case cancel
    }

    private var state = State.created

    package init() {}

    package var isEnded: Bool {
        if case .ended = state { true } else { false }
    }

    /// The progress of the transfer, or `nil` if there is none.
    package var stage: Stage? {
        if case .running(let stage, _) = state { stage } else { nil }
    }

    /// The paused directions of the transfer.
    package var pausedDirections: PausedDirections {
        if case .running(_, let pausedDirections) = state { pausedDirections } else { [] }
    }

    /// The phase of a task without a transfer, whose response may be complete but not yet delivered.
    package var restingPhase: NetworkError.Phase {
        if case .finished = state { .receiving } else { .waiting }
    }

    /// Applies changed demands, and returns the action that follows.
    package mutating func apply(_ demands: TaskDemands) -> Action {
        if demands.isCancelled { return cancel() }
        switch state {
        case .created, .suspended:
            guard demands.isStarted, !demands.isSuspended else { return .none }
            state = .waiting
            return .enterQueue
        case .waiting:
            guard demands.isSuspended else { return .none }
            state = .suspended
            return .leaveQueue
        case .running(.connecting, _) where demands.isSuspended:
            state = .suspended
            return .abandon
        case .running(let stage, let pausedDirections):
            let wanted: PausedDirections =
                demands.isSuspended ? [.receiving, .sending] : demands.isHeld ? .receiving : []
            guard wanted != pausedDirections else { return .none }
            state = .running(stage, wanted)
            return .pause(wanted)
        case .finished:
            return demands.isPaused ? .none : .deliverRest
        case .ended: return .none
        }
    }

    private mutating func cancel() -> Action {
        guard !isEnded else { return .none }
        state = .ended
        return .cancel
    }

    /// Records that the task got a slot, and returns `false` if it no longer wants one.
    package mutating func granted() -> Bool {
        guard case .waiting = state else { return false }
        state = .running(.connecting, [])
        return true
    }

    /// Records that the request is about to be sent.
    package mutating func connected() {
        guard case .running(.connecting, let pausedDirections) = state else { return }
        state = .running(.sending, pausedDirections)
    }

    /// Records that the response has begun.
    package mutating func responded() {
        guard case .running(_, let pausedDirections) = state else { return }
        state = .running(.receiving, pausedDirections)
    }

    /// Records that the request is sent again over another connection, without any pause.
    package mutating func restarted() {
        guard case .running = state else { return }
        state = .running(.connecting, [])
    }

    /// Records that the transfer ended, and returns whether the end may be reported now.
    ///
    /// If events wait or delivery is paused, a later call to `apply` returns the action that reports the end.
    package mutating func transferEnded(withFailure hasFailed: Bool, isHeldBack: Bool) -> Bool {
        guard !isEnded else { return false }
        state = isHeldBack && !hasFailed ? .finished : .ended
        return isEnded
    }

    /// Records that waiting events were delivered, and returns whether the end may be reported now.
    package mutating func restDelivered(isHeldBack: Bool) -> Bool {
        guard case .finished = state, !isHeldBack else { return false }
        state = .ended
        return true
    }
}
