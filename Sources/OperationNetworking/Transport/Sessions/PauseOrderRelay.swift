// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// An object that passes orders to a task of a session outside this package, which does not know their numbers.
///
/// Two threads may pass orders at the same time and overtake each other. So each thread checks again until it has
/// applied the newest order. A thread also applies an order that is not new, because the thread that brought the order
/// may not have applied it yet, and the caller relies on the pause.
package final class PauseOrderRelay: Sendable {
    fileprivate let task: any NetworkTask
    private let state = Locked(State())

    private struct State {
        var newest: PauseOrder?
        /// Whether a hold was passed on and not undone since.
        var isHeld = false

        /// Returns whether the calling thread must call `proceed()` for this order, or `nil` if there is a newer order.
        ///
        /// The thread has already carried out the order `done`. No thread calls `proceed()` of a task that was not
        /// held, because a late call could undo the hold of another thread. But a thread undoes its own hold, which may
        /// have come later than the `proceed()` of another thread.
        mutating func proceeds(for wanted: PauseOrder, after done: PauseOrder?) -> Bool? {
            guard wanted == newest else { return nil }
            let proceeds = wanted.isHeld == false && (isHeld || done?.isHeld == true)
            isHeld = wanted.isHeld ?? isHeld
            return proceeds
        }
    }

    package init(_ task: any NetworkTask) {
        self.task = task
    }

    package func pass(_ order: PauseOrder) {
        state.withLock { if order.number > $0.newest?.number ?? .min { $0.newest = order } }
        var done: PauseOrder?
        applyLatest({ state.withLock { $0.newest } }) { wanted in
            guard let proceeds = state.withLock({ $0.proceeds(for: wanted, after: done) }) else { return }
            if proceeds { task.proceed() } else if wanted.isHeld == true, done?.isHeld != true { task.hold() }
            if wanted.isSuspended != done?.isSuspended { wanted.isSuspended ? task.suspend() : task.resume() }
            done = wanted
        }
    }
}

/// An order to pause or resume a task, which yields to any order with a higher number.
package struct PauseOrder: Equatable, Sendable {
    package let number: Int
    package let isSuspended: Bool
    /// Whether the task is held, or `nil` to leave this unchanged.
    package let isHeld: Bool?

    package init(number: Int, isSuspended: Bool, isHeld: Bool? = nil) {
        self.number = number
        self.isSuspended = isSuspended
        self.isHeld = isHeld
    }
}

/// A task that follows orders to pause or resume in the sequence of their numbers.
///
/// An object that controls a task decides under its own lock, and calls the task after it released the lock. Meanwhile,
/// another thread may have passed on a newer decision. With plain calls to `resume` and `suspend`, the older decision
/// could then win, and a task that its user had suspended would send its request.
package protocol OrderedTask: NetworkTask {
    /// Pauses or resumes the task as ordered, and starts the task unless it is to be suspended.
    ///
    /// An order whose number is not higher than that of the last order changes nothing.
    func follow(_ order: PauseOrder)
}

/// A way to pass orders to a task of any session.
package enum PauseOrderTarget: Sendable {
    case ordered(any OrderedTask)
    case relayed(PauseOrderRelay)

    package init(_ task: any NetworkTask) {
        if let task = task as? any OrderedTask { self = .ordered(task) } else { self = .relayed(PauseOrderRelay(task)) }
    }

    package var task: any NetworkTask {
        switch self {
        case .ordered(let task): task
        case .relayed(let relay): relay.task
        }
    }

    package func pass(_ order: PauseOrder) {
        switch self {
        case .ordered(let task): task.follow(order)
        case .relayed(let relay): relay.pass(order)
        }
    }
}
