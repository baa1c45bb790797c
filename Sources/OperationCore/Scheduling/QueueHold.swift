// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A reason of its own for which a queue may be suspended: it knows nothing of other reasons, nor of the user's.
package final class QueueHold: Sendable {
    private let engine: QueueEngine
    private let reason: String
    /// Whether it holds the queue, and will ever again; the engine's lock is taken inside of no other.
    private let phase = Locked(Phase.off)

    private enum Phase { case off, on, ended }

    /// Makes one that does not hold the queue yet.
    package init(_ queue: QueueManager, because reason: String) {
        engine = queue.engine
        self.reason = reason
    }

    deinit { end() }

    /// Holds the queue, or lets it go on as far as this reason goes.
    package func set(_ isHeld: Bool) {
        let isNews = phase.withLock { phase in
            guard phase != .ended, (phase == .on) != isHeld else { return false }
            phase = isHeld ? .on : .off
            return true
        }
        if isNews { bringIntoForce() }
    }

    /// Lets the queue go on as far as this reason goes, for good.
    package func end() {
        phase.withLock { $0 = .ended }
        bringIntoForce()
    }

    private func bringIntoForce() {
        applyLatest({ phase.withLock { $0 } }) { phase in
            if phase == .on { engine.hold(self, because: reason) } else { engine.endHold(self) }
        }
    }
}

extension QueueEngine {
    func setSuspended(_ isSuspended: Bool, because reason: String?) {
        changeSuspension { $0.set(isSuspended, because: reason) }
    }

    /// Goes on, whatever the queue was suspended for.
    func endSuspension() { changeSuspension { $0.endAll() } }

    fileprivate func hold(_ hold: QueueHold, because reason: String) {
        changeSuspension { $0.hold(hold, because: reason) }
    }

    fileprivate func endHold(_ hold: QueueHold) { changeSuspension { $0.endHold(hold) } }

    private func changeSuspension(_ change: (inout QueueSuspension) -> Void) {
        applySettled { state, _ in
            change(&state.suspension)
            let isSuspended = state.suspension.isSuspended
            guard state.machine.isSuspended != isSuspended else { return }
            state.machine.isSuspended = isSuspended
            state.machine.journal?.note(.suspension(isSuspended))
        }
    }
}
