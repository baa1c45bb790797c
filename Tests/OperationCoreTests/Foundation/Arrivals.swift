// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Waits for a number of events, for one minute at most.
///
/// Because of the time limit, a lost operation, a leaked object or a deadlock fails its test and does not hang the run.
final class Arrivals: Sendable {
    private let missing: Locked<Int>
    private let allCame = DispatchSemaphore(value: 0)

    init(_ count: Int) {
        missing = Locked(count)
        if count == 0 { allCame.signal() }
    }

    /// The number of events that have not come, which is negative if too many came.
    var missingCount: Int { missing.withLock { $0 } }

    func arrive() {
        let isLast = missing.withLock { missing in
            missing -= 1
            return missing == 0
        }
        if isLast { allCame.signal() }
    }

    /// Blocks the calling thread until all events have come, and returns `false` after one minute.
    @available(*, noasync)
    func haveAllCome() -> Bool {
        guard allCame.wait(timeout: .now() + 60) == .success else { return false }
        allCame.signal()
        return true
    }

    /// Runs `body` on its own thread, and returns whether it returns within one minute.
    @available(*, noasync)
    static func returns(_ body: @escaping @Sendable () -> Void) -> Bool {
        let arrivals = Arrivals(1)
        Thread {
            body()
            arrivals.arrive()
        }.start()
        return arrivals.haveAllCome()
    }
}

/// An object that reports an arrival when it is freed.
final class Trace: Sendable {
    private let arrivals: Arrivals

    init(_ arrivals: Arrivals) { self.arrivals = arrivals }

    deinit { arrivals.arrive() }
}

/// The only strong reference to an object, which any thread may drop.
final class LastReference: Sendable {
    private let object: Locked<AnyObject?>

    init(_ object: AnyObject) { self.object = Locked(object) }

    func drop() {
        // The object is freed when this method returns, outside the lock.
        var dropped: AnyObject?
        object.withLock { swap(&$0, &dropped) }
    }
}

/// Yields to other threads until the condition is true, and returns `false` after ten seconds.
@available(*, noasync, message: "This function blocks the thread. Call it inside TestThread.run.")
func comesTrue(_ condition: () -> Bool) -> Bool {
    let start = ContinuousClock.now
    while !condition() {
        if start.duration(to: .now) > .seconds(10) { return false }
        sched_yield()
    }
    return true
}
