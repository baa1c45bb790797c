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

        /// What is wanted by now, and whether a hold is to be taken back for it; nil if it was done.
        ///
        /// Nobody says `proceed()` to a task that was not held: it could come late, behind the hold of another thread.
        mutating func next(after done: BrakeOrder?) -> (wanted: BrakeOrder, proceeds: Bool)? {
            guard let newest, newest.number != done?.number else { return nil }
            let proceeds = newest.isHeld == false && isHeld
            isHeld = newest.isHeld ?? isHeld
            return (newest, proceeds)
        }
    }

    package init(_ task: any NetworkTask) {
        self.task = task
    }

    package func pass(_ order: BrakeOrder) {
        state.withLock { if order.number > $0.newest?.number ?? .min { $0.newest = order } }
        var done: BrakeOrder?
        while let (wanted, proceeds) = state.withLock({ $0.next(after: done) }) {
            if proceeds { task.proceed() } else if wanted.isHeld == true, done?.isHeld != true { task.hold() }
            if wanted.isSuspended != done?.isSuspended { wanted.isSuspended ? task.suspend() : task.resume() }
            done = wanted
        }
    }
}
