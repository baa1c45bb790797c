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
    private let newest = Locked<BrakeOrder?>(nil)

    package init(_ task: any NetworkTask) {
        self.task = task
    }

    package func pass(_ order: BrakeOrder) {
        newest.withLock { if order.number > $0?.number ?? .min { $0 = order } }
        var done: BrakeOrder?
        while let wanted = newest.withLock({ $0 }), wanted.number != done?.number {
            if let isHeld = wanted.isHeld, isHeld != done?.isHeld { isHeld ? task.hold() : task.proceed() }
            if wanted.isSuspended != done?.isSuspended { wanted.isSuspended ? task.suspend() : task.resume() }
            done = wanted
        }
    }
}
