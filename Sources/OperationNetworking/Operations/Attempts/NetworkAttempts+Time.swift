// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

// The time that one attempt may take, on the operation's clock.
extension NetworkAttempts {
    private var attemptTimeout: Duration? { state.withLock { $0.policies.lazy.compactMap(\.attemptTimeout).min() } }

    /// The attempt is over, or waits for what it is not to blame for: its time begins anew with the next preparation.
    func stopTime() {
        state.withLock { $0.stopTime() }?.cancel()
    }

    /// Lets the time of the present attempt begin.
    func beginTime(_ number: Int, _ host: any AttemptHost) {
        guard let limit = attemptTimeout else { return }
        let now = host.clock.now
        state.withLock { state in
            guard state.machine.attempt == number else { return }
            state.time.begin(max(limit, .zero), now: now, isSuspended: state.machine.isSuspended)
        }
        watchTime(number, host)
    }

    /// The response that begins is refused: its rest is waited for so long at most.
    func linger(_ head: ResponseHead, _ number: Int) {
        guard let (host, present) = running(), present == number else { return }
        let now = host.clock.now
        let isNews = state.withLock { state in
            guard state.machine.mayBeTold(number), !state.isLingering else { return false }
            state.isLingering = true
            if state.head == nil { state.head = head }
            state.time.shorten(to: Self.longestLinger, now: now, isSuspended: state.machine.isSuspended)
            return true
        }
        if isNews { watchTime(number, host) }
    }

    /// A connection is made anew in less.
    private static let longestLinger = Duration.seconds(2)

    /// The operation was suspended or resumed.
    func timeMayRun(_ mayRun: Bool) {
        guard let (host, number) = running(), state.withLock({ $0.time.isLimited }) else { return }
        let now = host.clock.now
        state.withLock { mayRun ? $0.time.resume(now: now) : $0.time.suspend(now: now) }
        watchTime(number, host)
    }

    /// Sees to it that the end of the time is noticed, as far as one can tell now when that is.
    private func watchTime(_ number: Int, _ host: any AttemptHost) {
        guard let end = state.withLock({ $0.machine.attempt == number ? $0.time.end : nil }) else { return }
        let timer = host.clock.schedule(at: end) { [weak self] in self?.timeMayBeOver(number) }
        var old: (any OperationTimer)? = timer
        state.withLock { state in
            // Another thread may have changed the time meanwhile; it watches by itself.
            if state.machine.attempt == number, state.time.end == end { swap(&old, &state.timeout) }
        }
        old?.cancel()
    }

    private func timeMayBeOver(_ number: Int) {
        guard let (host, present) = running(), present == number else { return }
        let (now, keptBytes) = (host.clock.now, host.errorBodyBytes)
        var left: (task: (any NetworkTask)?, adaptation: Task<Void, Never>?)
        // What an error carries is the user's, and goes outside of the lock.
        var old: NetworkError?
        // In one step, for the response may be complete in this moment.
        let action = state.withLock { state in
            guard state.machine.attempt == number, let end = state.time.end, end <= now else {
                return AttemptMachine.Action.none
            }
            let error = state.timeoutError
            let action = state.isLingering ? state.machine.transferred(number) : state.machine.ranOut(number)
            guard [.deciding, .evaluating].contains(state.machine.phase) else { return action }
            if state.isLingering {
                // What came of it is all there is.
                if state.collector == nil { state.collector = ErrorBodyCollector(limit: keptBytes) }
            } else {
                old = exchange(&state.error, with: error)
            }
            // This timer is the one that fires.
            _ = state.stopTime()
            left = (state.task, state.adaptation)
            return action
        }
        withExtendedLifetime(old) {}
        left.adaptation?.cancel()
        left.task?.endForAttempt()
        noteFailure(number)
        perform(action)
    }
}

extension NetworkAttempts.State {
    /// The attempt is over, or its response complete; returns the timer that is to be cancelled, outside of the lock.
    mutating func stopTime() -> (any OperationTimer)? {
        time.stop()
        return exchange(&timeout, with: nil)
    }

    /// That the time is over, and how far the attempt had come; once a task may have been resumed it counts as sent.
    fileprivate var timeoutError: NetworkError {
        let phase: NetworkError.Phase =
            [.preparing, .clearing].contains(machine.phase) ? .checking : head == nil ? .awaitingResponse : .receiving
        let error = NetworkError(
            code: .timedOut, phase: phase,
            message: "The attempt took longer than retry.attemptTimeout allows. Allow more, or ask for less at once.")
        return error.completed(request: presentRequest, head: head)
    }
}
