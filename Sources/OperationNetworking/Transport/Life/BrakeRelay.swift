// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Passes orders on to a task of somebody's own session, which knows nothing of numbers.
///
/// Two threads may do so at once and overtake each other; so each looks again until it did what is still wanted. Each does
/// it itself, also where it brings no news: the thread that does may not have come to it, and who returns from here to a
/// session counts on the brake.
package final class BrakeRelay: Sendable {
    private let task: any NetworkTask
    private let state = Locked(State())

    private struct State {
        var newest: BrakeOrder?
        /// Whether a hold was passed on, and not taken back since.
        var isHeld = false

        /// Returns whether the calling thread must tell the task to proceed for this order, which it carries out after
        /// the order `done`; `nil` if there is a newer order by now.
        ///
        /// No thread calls `proceed()` of a task that was not held, because a late call could undo the hold of another
        /// thread. But a thread takes back its own hold, which may have come later than the `proceed()` of another
        /// thread.
        mutating func proceeds(for wanted: BrakeOrder, after done: BrakeOrder?) -> Bool? {
            guard wanted == newest else { return nil }
            let proceeds = wanted.isHeld == false && (isHeld || done?.isHeld == true)
            isHeld = wanted.isHeld ?? isHeld
            return proceeds
        }
    }

    package init(_ task: any NetworkTask) {
        self.task = task
    }

    package func pass(_ order: BrakeOrder) {
        state.withLock { if order.number > $0.newest?.number ?? .min { $0.newest = order } }
        var done: BrakeOrder?
        applyLatest({ state.withLock { $0.newest } }) { wanted in
            guard let proceeds = state.withLock({ $0.proceeds(for: wanted, after: done) }) else { return }
            if proceeds { task.proceed() } else if wanted.isHeld == true, done?.isHeld != true { task.hold() }
            if wanted.isSuspended != done?.isSuspended { wanted.isSuspended ? task.suspend() : task.resume() }
            done = wanted
        }
    }
}
