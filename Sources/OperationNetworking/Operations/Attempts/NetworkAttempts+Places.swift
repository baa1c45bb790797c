// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

// Places in queues: given up for a wait, and taken again.
extension NetworkAttempts {
    private var waitNumber: UInt32 { UInt32(truncatingIfNeeded: state.withLock { $0.machine.round }) }

    /// Somebody takes the operation's place in another queue, and has one there, until it is put aside by hand again.
    ///
    /// Where a place of the operation's own queue is to be taken first, that other one is given up again until then.
    func stand(_ standIn: ManagedOperation) {
        state.withLock { $0.standIn = standIn }
        guard let (host, _) = running(), !standIn.precedes(host) else { return }
        standIn.rest(waitNumber, because: .place)
    }

    /// The one that stands for it, which does not from now on.
    func takeStandIn() -> ManagedOperation? {
        state.withLock { state in
            defer { state.standIn = nil }
            return state.standIn
        }
    }

    func rest(_ host: any AttemptHost, _ reason: WaitReason) {
        let (number, standIn) = (waitNumber, state.withLock { $0.standIn })
        host.rest(number, because: reason)
        standIn?.rest(number, because: reason)
    }

    /// Gets a place again: in its own queue, and in that of the one that stands for it, if there is one.
    ///
    /// - Parameter turns: What was put off and is to be told before the operation goes on.
    func takePlace(_ turns: TurnTaking? = nil) -> AttemptMachine.Action { takePlaces(after: 0, turns) }

    private func takePlaces(after taken: Int, _ turns: TurnTaking?) -> AttemptMachine.Action {
        guard let (host, number) = running() else { return .none }
        let places = places(of: host)
        guard taken < places.count else { return state.withLock { $0.machine.returned(number) } }
        let mayGoOn = places[taken].wake(waitNumber) { [weak self] in
            guard let self else { return }
            goOn(with: takePlaces(after: taken + 1, turns), after: turns)
        }
        if mayGoOn { return takePlaces(after: taken + 1, turns) }
        // What it waits for now is no fault of the server's.
        let now = host.clock.now
        state.withLock { state in
            if state.machine.phase == .returning, state.machine.attempt == number { state.story.putAside(now: now) }
        }
        return .none
    }

    /// Always in the same order: one that has a place waits for none that is had by one which waits for that.
    private func places(of host: any AttemptHost) -> [ManagedOperation] {
        guard let standIn = state.withLock({ $0.standIn }) else { return [host] }
        return standIn.precedes(host) ? [standIn, host] : [host, standIn]
    }

    private func goOn(with action: AttemptMachine.Action, after turns: TurnTaking?) {
        guard let turns, action != .none else { return perform(action) }
        turns.second { self.perform(action) }
    }

    /// Performs what follows where others need this thread, as those do that wait behind the operation: only places are
    /// taken and given up here, in the order in which that was said.
    ///
    /// - Parameter tell: Called on the other thread before all that follows.
    func performElsewhere(_ action: AttemptMachine.Action, telling tell: (@Sendable () -> Void)? = nil) {
        let turns = TurnTaking()
        let next =
            switch action {
            case .takePlace: takePlace(turns)
            case .rest(let reason): rest(reason)
            default: action
            }
        DispatchQueue.global().async {
            turns.first { tell?() }
            self.perform(next)
        }
    }
}
