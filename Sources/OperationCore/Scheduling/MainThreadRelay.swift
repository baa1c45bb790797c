// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Runs closures on the main thread, through the main queue or, where the main thread waits in one of our calls, there.
///
/// A Linux service may have no main loop, and a main thread that waits for an operation whose closure waits for the
/// main thread would wait for ever. So the closure is put where both can find it, and whoever comes first runs it.
package enum MainThreadRelay {
    private struct State {
        var jobs = Fifo<@Sendable () -> Void>()
        /// Waits of the main thread, one inside the other.
        var waiters: [BlockingWaiter] = []
    }

    private static let state = Locked(State())

    private static let mark: DispatchSpecificKey<Void> = {
        let mark = DispatchSpecificKey<Void>()
        DispatchQueue.main.setSpecific(key: mark, value: ())
        return mark
    }()

    /// Whether the caller is on the main thread or the main queue.
    package static var isOnMain: Bool {
        Thread.isMainThread || DispatchQueue.getSpecific(key: mark) != nil
    }

    /// Runs `job` at once if the caller is on main, and else as soon as main comes by.
    package static func run(_ job: @escaping @Sendable () -> Void) {
        if isOnMain { return job() }
        let waiter = state.withLock { state in
            state.jobs.append(job)
            return state.waiters.last
        }
        DispatchQueue.main.async { runNext() }
        waiter?.signal()
    }

    static func serve(until waiter: BlockingWaiter) {
        state.withLock { $0.waiters.append(waiter) }
        while !waiter.hasBeenWoken {
            if !runNext() { waiter.waitForSignal() }
        }
        let next = state.withLock { state in
            state.waiters.removeAll { $0 === waiter }
            return state.waiters.last
        }
        // A signal that was meant for main in general may have gone to this wait: the one around it looks again.
        next?.signal()
    }

    /// Runs the oldest job, if there is one that nobody took.
    @discardableResult
    private static func runNext() -> Bool {
        let job = state.withLock { $0.jobs.popFirst() }
        job?()
        return job != nil
    }
}
