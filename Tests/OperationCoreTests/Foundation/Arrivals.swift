// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Waits for a number of events.
///
/// Unlike a gate it gives up in the end, so that an event which never comes (an operation
/// that is lost, an object that leaks, two threads that lock each other out) fails its test and does not hang the run.
final class Arrivals: Sendable {
    private let missing: Locked<Int>
    private let allCame = DispatchSemaphore(value: 0)

    init(_ count: Int) {
        missing = Locked(count)
        if count == 0 { allCame.signal() }
    }

    /// How many have not come; negative where some came too often.
    var missingCount: Int { missing.withLock { $0 } }

    func arrive() {
        let isLast = missing.withLock { missing in
            missing -= 1
            return missing == 0
        }
        if isLast { allCame.signal() }
    }

    /// Blocks the calling thread until all have come; false if they have not within a minute.
    @available(*, noasync)
    func haveAllCome() -> Bool {
        guard allCame.wait(timeout: .now() + 60) == .success else { return false }
        allCame.signal()
        return true
    }

    /// Whether `body` returns: it is run on a thread of its own, which is left behind if it does not.
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

/// Arrives when it is freed.
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
        // It is freed when this returns, outside the lock.
        var dropped: AnyObject?
        object.withLock { swap(&$0, &dropped) }
    }
}

/// Whether something becomes true that another thread is about to bring about; gives way to it for some seconds at most.
@available(*, noasync, message: "This function blocks the thread. Call it inside TestThread.run.")
func comesTrue(_ condition: () -> Bool) -> Bool {
    let start = ContinuousClock.now
    while !condition() {
        if start.duration(to: .now) > .seconds(10) { return false }
        sched_yield()
    }
    return true
}
