// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Passes orders on to a task of somebody's own session, which knows nothing of numbers.
///
/// Two threads may do so at once and overtake each other; so each looks again until it did what is still wanted.
final class BrakeRelay: Sendable {
    private let task: any NetworkTask
    private let newest = Locked<BrakeOrder?>(nil)

    init(_ task: any NetworkTask) {
        self.task = task
    }

    func pass(_ order: BrakeOrder) {
        let isNews = newest.withLock { newest in
            guard order.number > newest?.number ?? .min else { return false }
            newest = order
            return true
        }
        guard isNews else { return }
        var done: BrakeOrder?
        while let wanted = newest.withLock({ $0 }), wanted.number != done?.number {
            if let isHeld = wanted.isHeld, isHeld != done?.isHeld { isHeld ? task.hold() : task.proceed() }
            if wanted.isSuspended != done?.isSuspended { wanted.isSuspended ? task.suspend() : task.resume() }
            done = wanted
        }
    }
}
