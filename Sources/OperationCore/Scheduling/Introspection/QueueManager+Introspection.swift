// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// Knowing what is in the queue.
extension QueueManager {
    /// How many entries stand where, and how many ended how; at the same cost however many there are.
    public var counts: QueueCounts { engine.counts }

    /// What the queue holds at this moment, as lists and numbers that belong together.
    ///
    /// Its cost grows with the number of entries, and the queue stands still meanwhile; where numbers are enough, ask for
    /// ``counts``.
    public var snapshot: QueueSnapshot { engine.snapshot }

    /// The changes of the queue as they come, its present state first; 1,024 that were not read yet are kept.
    public var events: QueueEvents { events(keeping: 1024) }

    /// The changes of the queue as they come, its present state first.
    ///
    /// - Parameter capacity: How many events that were not read yet are kept, with their operations, before a slow reader
    ///   misses some. Below one, it is one.
    public func events(keeping capacity: Int) -> QueueEvents {
        QueueEvents(engine: WeakEngine(engine), capacity: capacity)
    }
}

// Knowing why.
extension QueueManager {
    /// Says why an operation does not run: what it waits for, which limit, who has the places.
    ///
    /// It may be of any kind, and in this queue or not. The cost grows with the number of entries, and the queue stands
    /// still meanwhile: it is for people who look for the reason, not for each operation.
    public func explain(_ operation: Operation) -> QueueExplanation { engine.explain(operation) }
}

// Knowing how far it is.
extension QueueManager {
    /// How many of all entries that were ever added have ended, in whatever way.
    ///
    /// Both numbers only ever grow, and never is there more done than there is. The fraction of the two falls where more
    /// is added than ends. Cancelling it cancels all that has not ended. It is brought up to date by the threads of the
    /// queue from the first call on; those who observe it are called on them.
    public var progress: Progress { engine.progress }
}

/// Brings a `Progress` into line with a queue.
///
/// Setting its numbers may call whoever observes it, so it is done outside the queue's lock, by one thread at a time: a
/// second one only leaves a note, so that no number ever runs backwards.
package final class QueueProgressMeter: QueueFollower, Sendable {
    let progress: Progress
    private let counts: @Sendable () -> QueueCounts?
    private let publishing = Locked(RepeatFlag())

    /// Asks for the counts whenever they are to be published; nil if there is nobody to count any more.
    package init(counts: @escaping @Sendable () -> QueueCounts?) {
        // Not a part of one that happens to be current on this thread.
        progress = Progress(parent: nil)
        progress.isPausable = false
        self.counts = counts
    }

    convenience init(_ engine: QueueEngine) {
        let engine = WeakEngine(engine)
        self.init(counts: { engine.engine?.counts })
        progress.cancellationHandler = {
            engine.engine?.cancelAll(because: .requested("The progress of the queue was cancelled."))
        }
    }

    func note(_ change: QueueJournal.Change, _ journal: QueueJournal) {
        switch change {
        case .placed(_, _, from: .entering), .ended: break
        case .placed, .rested, .wentOn, .width, .suspension, .closing: return
        }
        if noteDue() { journal.later { [self] in publishOnce() } }
    }

    /// Notes that the numbers changed; returns whether the caller must publish them, because no other thread does.
    package func noteDue() -> Bool { publishing.withLock { $0.request() } }

    /// Publishes the numbers, unless another thread is publishing them and will do so again.
    package func publish() {
        if noteDue() { publishOnce() }
    }

    private func publishOnce() {
        publishing.withLock { $0.startRound() }
        if let counts = counts() { show(counts) }
        // The next round is for another thread, because under a flood of changes this one would never end.
        if publishing.withLock({ $0.finishRound() }) { DispatchQueue.global().async { [self] in publishOnce() } }
    }

    /// The total first, so that there is never more done than there is.
    private func show(_ counts: QueueCounts) {
        let added = Int64(counts.added), ended = Int64(counts.ended)
        if progress.totalUnitCount != added { progress.totalUnitCount = added }
        if progress.completedUnitCount != ended { progress.completedUnitCount = ended }
    }
}

extension QueueEngine {
    var progress: Progress {
        if let present = state.withLock({ $0.meter }) { return present.progress }
        let made = QueueProgressMeter(self)
        let meter = applySettled { state, _ in
            if let present = state.meter { return present }
            state.meter = made
            state.machine.add(made)
            return made
        }
        meter.publish()
        return meter.progress
    }
}
