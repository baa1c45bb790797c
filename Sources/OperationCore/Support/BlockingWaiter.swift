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
    package func wait() {
        // What this thread put off may be what it is about to wait for.
        while let work = ThreadNotes.current.pending.popFirst() { work() }
        guard MainThreadRelay.isOnMain else { return semaphore.wait() }
        MainThreadRelay.serve(until: self)
    }

    var hasBeenWoken: Bool { isWoken.withLock { $0 } }
    func waitForSignal() { semaphore.wait() }
    func signal() { semaphore.signal() }
}
