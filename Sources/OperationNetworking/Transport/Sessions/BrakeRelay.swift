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

/// Which brakes are to be set, as an order that can be overtaken: of two the one with the larger number holds.
package struct BrakeOrder: Equatable, Sendable {
    package let number: Int
    package let isSuspended: Bool
    /// Nil leaves that brake as it is.
    package let isHeld: Bool?

    package init(number: Int, isSuspended: Bool, isHeld: Bool? = nil) {
        self.number = number
        self.isSuspended = isSuspended
        self.isHeld = isHeld
    }
}

/// A task that takes orders about its brakes in the sequence of their numbers.
///
/// Who stands above a task decides under a lock of its own what is wanted, and tells the task after it; so another thread
/// may have told it something newer meanwhile. Plain calls of `resume` and `suspend` would leave the older word as the
/// last one, and the request would go out of a task that its user had suspended.
package protocol OrderedTask: NetworkTask {
    /// Brings the brakes to what is ordered, and starts the task where it is not to be suspended; an order with no larger
    /// number than the last one changes nothing.
    func obey(_ order: BrakeOrder)
}

/// How the brakes of a task are reached, whosever it is.
enum BrakeLine: Sendable {
    case ordered(any OrderedTask)
    case relayed(BrakeRelay)

    init(_ task: any NetworkTask) {
        if let task = task as? any OrderedTask { self = .ordered(task) } else { self = .relayed(BrakeRelay(task)) }
    }

    func pass(_ order: BrakeOrder) {
        switch self {
        case .ordered(let task): task.obey(order)
        case .relayed(let relay): relay.pass(order)
        }
    }
}
