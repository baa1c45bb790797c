// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Brings a `Progress` into line with a queue.
///
/// Setting its numbers may call whoever observes it, so it is done outside the queue's lock, by one thread at a time: a
/// second one only leaves a note, so that no number ever runs backwards.
final class QueueProgressMeter: QueueFollower, Sendable {
    let progress: Progress
    private let engine: WeakEngine
    private let state = Locked(State())

    private struct State {
        /// Something changed that was not published.
        var isDue = false
        var isPublishing = false
    }

    init(_ engine: QueueEngine) {
        progress = Progress(totalUnitCount: 0)
        self.engine = WeakEngine(engine)
        progress.isPausable = false
        progress.cancellationHandler = { [engine = self.engine] in
            engine.engine?.cancelAll(because: .requested("The progress of the queue was cancelled."))
        }
    }

    func note(_ change: QueueJournal.Change, _ journal: QueueJournal) {
        switch change {
        case .placed(_, _, from: .entering), .ended: break
        case .placed, .width, .suspension, .closing: return
        }
        let isToPublish = state.withLock { state in
            defer { state.isDue = true }
            return !state.isDue && !state.isPublishing
        }
        if isToPublish { journal.later { [self] in publish() } }
    }

    func publish() {
        let begins = state.withLock { state in
            if state.isPublishing { return false }
            state.isPublishing = true
            return true
        }
        while begins {
            state.withLock { $0.isDue = false }
            if let counts = engine.engine?.counts { show(counts) }
            let goesOn = state.withLock { state in
                state.isPublishing = state.isDue
                return state.isDue
            }
            if !goesOn { return }
        }
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
