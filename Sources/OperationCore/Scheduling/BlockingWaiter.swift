// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// One thread that waits for one event.
///
/// All waits of the library that block a thread go through here.
///
/// While it is the main thread that waits, closures meant for it go on: see ``MainThreadRelay``.
package final class BlockingWaiter: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let isWoken = Locked(false)

    package init() {}

    /// Lets the thread go on, or lets it pass if it has not come yet.
    package func wake() {
        isWoken.withLock { $0 = true }
        semaphore.signal()
    }

    /// Blocks the calling thread until `wake` was called.
    ///
    /// The body of an operation that a ``QueueManager`` runs gives up its slot meanwhile, and what it waits for comes
    /// first. A thread of another pool is replaced. False, and it returns at once, if it would be one wait too many: see
    /// ``QueueManager/threadLimit``.
    @discardableResult
    package func wait(for operation: ManagedOperation? = nil) -> Bool {
        let notes = ThreadNotes.current
        // What this thread put off may be what it is about to wait for.
        while let work = notes.pending.popFirst() { work() }
        if hasBeenWoken { return true }
        if MainThreadRelay.isOnMain {
            MainThreadRelay.serve(until: self)
            return true
        }
        guard let seat = notes.seat, !seat.hasLeft else {
            guard let lender = notes.lender else {
                semaphore.wait()
                return true
            }
            guard lender.threadWillWait() else { return false }
            semaphore.wait()
            lender.threadDidWait()
            return true
        }
        return seat.slot >= 0 ? wait(within: seat, for: operation) : wait(between: seat, for: operation)
    }

    /// A body waits.
    private func wait(within seat: WorkerSeat, for operation: ManagedOperation?) -> Bool {
        guard seat.engine.source.beginRest() else { return false }
        // Before the slot is given up, so that it goes to what is waited for.
        operation?.raise(forBodyOf: seat.urgency)
        seat.engine.bodyWillWait(seat)
        semaphore.wait()
        seat.engine.bodyDidWait(seat)
        seat.engine.source.endRest()
        return true
    }

    /// Something waits that the thread lets go of after one body and before the next.
    private func wait(between seat: WorkerSeat, for operation: ManagedOperation?) -> Bool {
        seat.engine.threadWillWait(seat)
        defer { seat.engine.threadDidWait() }
        guard seat.engine.source.beginRest() else { return false }
        operation?.raise(forBodyOf: .veryLow)
        semaphore.wait()
        seat.engine.source.endRest()
        return true
    }

    /// Blocks the calling thread without giving up a slot.
    package func waitInPlace() { semaphore.wait() }

    var hasBeenWoken: Bool { isWoken.withLock { $0 } }
    func waitForSignal() { semaphore.wait() }
    func signal() { semaphore.signal() }
}
