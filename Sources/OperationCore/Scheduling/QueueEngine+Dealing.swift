// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// Entries that threads were dealt in advance: see `WorkerHand`.
extension QueueEngine {
    /// Deals a thread some of those that come next, if they are many and their bodies short.
    ///
    /// As many are left for each of the other threads; one that runs out of work takes back what others were dealt. So
    /// nothing waits in a hand while a thread that might run it has nothing to do.
    func deal(to seat: WorkerSeat, after job: QueueMachine.Job, _ state: inout State) {
        let ready = state.machine.counts.readyInFront
        guard ready > 1, !job.asks, mayDeal(state) else { return }
        seat.pace.note(source.now, ran: seat.finishedCount)
        seat.finishedCount = 0
        let count = min(seat.pace.count - 1, ready / max(state.crew.mostAtOnce, 1))
        guard count > 0 else { return }
        let jobs = state.machine.deal(count)
        guard !jobs.isEmpty else { return }
        seat.hand.deal(state.machine.lend(job.key), then: jobs)
        if seat.isHandKnown { state.hands.removeAll { $0.hand === seat.hand } }
        seat.isHandKnown = true
        state.hands.append(DealtHand(hand: seat.hand, since: state.machine.starts))
    }

    /// How many entries the threads hold that they were dealt; for tests.
    package var dealtCount: Int { state.withLock { $0.machine.counts.dealt } }

    /// Nobody may follow each single step, or wait for a place.
    private func mayDeal(_ state: State) -> Bool {
        state.machine.journal == nil && state.capacity == .max && !recording.isRecording
    }

    /// The thread goes: its hand is empty.
    func forgetHand(of seat: WorkerSeat, _ state: inout State) {
        guard seat.isHandKnown else { return }
        seat.isHandKnown = false
        state.hands.removeAll { $0.hand === seat.hand }
    }

    /// Takes back what the threads were dealt: each entry is then where the queue says.
    func settle(_ state: inout State, _ after: inout After) {
        guard state.machine.counts.dealt > 0 else { return }
        for dealt in state.hands.reversed() { takeBack(dealt.hand, &state, &after) }
    }

    /// What was dealt long ago stands behind a body that takes long.
    func takeBackOldest(_ state: inout State, _ after: inout After) {
        guard state.machine.counts.dealt > 0, let oldest = state.hands.first, state.machine.starts &- oldest.since > 64
        else { return }
        state.hands.removeFirst()
        state.hands.append(DealtHand(hand: oldest.hand, since: state.machine.starts))
        takeBack(oldest.hand, &state, &after)
    }

    func takeBack(_ hand: WorkerHand, _ state: inout State, _ after: inout After) {
        let news = hand.takeBack()
        state.machine.noteStarts(news.ended.count)
        for ended in news.ended { end(ended.slot, .success, &state, &after) }
        if let current = news.current { state.machine.beginDealt(current) }
        for job in news.waiting.reversed() { state.machine.takeBack(job) }
    }

    /// Applies an event for which each entry has to be where the queue says.
    @discardableResult
    func applySettled<Result>(_ event: (inout State, inout After) -> Result) -> Result {
        apply { state, after in
            settle(&state, &after)
            return event(&state, &after)
        }
    }
}
