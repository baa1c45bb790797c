// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Entries that a thread was dealt in advance because bodies are short: it runs them one after another without a word to
/// the queue, in the one slot that it has there.
///
/// Where two threads ask a queue for each tiny body, they spend their time in handing each other what the queue knows.
/// Whoever needs to know exactly where entries stand takes all of it back first (``QueueEngine/settle(_:_:)``): so do
/// settings, snapshots, cancellations, more urgent entries, and a thread that has nothing left to do.
final class WorkerHand: Sendable {
    private struct State {
        /// The next one is the last.
        var waiting: [QueueMachine.Job] = []
        /// Those that ended, in their order.
        var ended: [QueueMachine.Key] = []
        /// The one that is being run, since the hand was dealt.
        var current: QueueMachine.Job?
    }

    /// What becomes known when a hand is taken back.
    struct News {
        var ended: [QueueMachine.Key]
        var current: QueueMachine.Job?
        /// Those that have not begun, in their order.
        var waiting: [QueueMachine.Job]
    }

    private let state = Locked(State())

    /// Gives the thread what it is to run after the present one, in this order.
    func deal(_ current: QueueMachine.Job, then jobs: [QueueMachine.Job]) {
        state.withLock { state in
            state.current = current
            state.waiting = jobs.reversed()
        }
    }

    /// The next one, now that the last has ended; nil, and nothing is noted, if there is none.
    ///
    /// With it comes what ended, to be let go of at once, and not with all of the hand: what it holds must not wait for the
    /// bodies that follow.
    func next(after ended: QueueMachine.Key) -> (next: QueueMachine.Job, old: QueueMachine.Job?)? {
        state.withLock { state in
            guard let next = state.waiting.popLast() else { return nil }
            state.ended.append(ended)
            return (next, exchange(&state.current, with: next))
        }
    }

    func takeBack() -> News {
        state.withLock { state in
            let old = exchange(&state, with: State())
            return News(ended: old.ended, current: old.current, waiting: old.waiting.reversed())
        }
    }
}

/// How many entries a thread takes at once: more as long as bodies are short.
struct DealingPace {
    /// How many, the one included that it runs at once.
    private(set) var count = 1
    private var last: UInt64 = 0

    static let most = 16
    /// How long a body takes, all that belongs to it included, from which on each is asked for by itself.
    static let shortBody: UInt64 = 1_500

    /// The thread asks for more at that moment, and ran so many since it last asked.
    mutating func note(_ now: UInt64, ran count: Int) {
        let isShort = (now &- last) / UInt64(max(count, 1)) < Self.shortBody
        last = now
        self.count = isShort ? min(self.count * 2, Self.most) : 1
    }
}
