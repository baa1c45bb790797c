// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Tells the listeners of a group of its progress, on its callback queue, one report at a time.
///
/// A queue that is slow gets fewer reports, not a pile of them: at most one waits there, and it tells what is true when
/// its turn comes.
final class GroupProgressTeller: Sendable {
    private struct State {
        var handler: (@Sendable (GroupProgress) -> Void)?
        /// Called after the handler, in their order.
        var mainActorHandlers: [@MainActor (GroupProgress) -> Void] = []
        var foundation: Progress?
        var told: GroupProgress
        /// Whether a turn on the callback queue is scheduled or running.
        ///
        /// A change during a turn leads to another one.
        var turns = RepeatFlag()
        /// Whether nothing follows, and the handler of the result comes next.
        var isLast = false
        /// Whether a thread brings Foundation's progress up to date.
        var showing = RepeatFlag()
    }

    private let state: Locked<State>
    /// The callback queue, and the group; nil once nothing is to be told any more.
    private let queue: @Sendable () -> (DispatchQueue, ManagedOperation)?

    init(told: GroupProgress, queue: @escaping @Sendable () -> (DispatchQueue, ManagedOperation)?) {
        state = Locked(State(told: told))
        self.queue = queue
    }

    var handler: (@Sendable (GroupProgress) -> Void)? {
        get { state.withLock { $0.handler } }
        set {
            let old = state.withLock { exchange(&$0.handler, with: newValue) }
            withExtendedLifetime(old) {}
        }
    }

    /// Adds a handler for a teller whose queue is the main queue.
    func add(_ handler: @escaping @MainActor (GroupProgress) -> Void) {
        state.withLock { $0.mainActorHandlers.append(handler) }
    }

    /// Foundation's progress, made now if there was none.
    func foundation(_ make: () -> Progress) -> Progress {
        if let known = state.withLock({ $0.foundation }) { return known }
        let made = make()
        return state.withLock { state in
            let known = state.foundation ?? made
            state.foundation = known
            return known
        }
    }

    /// Something changed.
    func note(_ engine: GroupEngine, isLast: Bool = false) {
        let begins: Bool? = state.withLock { state in
            guard state.handler != nil || state.foundation != nil || !state.mainActorHandlers.isEmpty else {
                return nil
            }
            if isLast { state.isLast = true }
            return state.turns.request()
        }
        switch begins {
        case true?: schedule { [self] in takeTurns(engine) }
        // The scheduled turn may run after the handler of the result, so the last report gets a turn of its own.
        case false? where isLast: schedule { [self] in tell(engine) }
        case false?, nil: break
        }
    }

    private func schedule(_ turn: @escaping @Sendable () -> Void) {
        guard let (queue, group) = queue() else { return }
        // The group lives until its listeners were told.
        group.enqueueBeforeOutcome(on: queue) { withExtendedLifetime(group) { turn() } }
    }

    private func takeTurns(_ engine: GroupEngine) {
        state.withLock { $0.turns.startRound() }
        tell(engine)
        while true {
            let (goesOn, isLast) = state.withLock { ($0.turns.finishRound(), $0.isLast) }
            guard goesOn else { return }
            // The next turn goes to the end of the queue, because under a flood of changes this one would never end.
            guard isLast else { return schedule { [self] in takeTurns(engine) } }
            tell(engine)
        }
    }

    private func tell(_ engine: GroupEngine) {
        let progress = engine.state.withLock { $0.meter.progress }
        let (handler, mainActorHandlers, foundation) = state.withLock { state in
            // On a concurrent queue a turn that read the progress before the end may come here after the last report.
            let isOutdated = state.isLast && progress.completedWeight < progress.totalWeight
            let isNews = !isOutdated && state.told != progress
            if isNews { state.told = progress }
            return isNews ? (state.handler, state.mainActorHandlers, state.foundation) : (nil, [], nil)
        }
        // No word after a cancellation.
        if queue() != nil {
            handler?(progress)
            if !mainActorHandlers.isEmpty {
                MainActor.assumeIsolated { for handler in mainActorHandlers { handler(progress) } }
            }
            if let foundation {
                // One thread at a time, so that it does not run backwards on a concurrent queue.
                state.runRounds(of: \.showing) { Self.show(state.withLock { $0.told }, in: foundation) }
            }
        }
    }

    /// In ten-thousandths, which never run backwards.
    static let units: Int64 = 10_000

    static func show(_ progress: GroupProgress, in foundation: Progress) {
        let done = Int64(progress.fraction * Double(units))
        if done > foundation.completedUnitCount { foundation.completedUnitCount = done }
    }
}
