// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch

/// The monotonic clock of the system.
///
/// Beneath it is `DispatchTime` (`CLOCK_MONOTONIC` on Linux). All actions of the process share one timer source, which
/// is set to the earliest of them; each action is called on a global queue.
public final class SystemClock: OperationClock {
    /// The one instance.
    public static let shared = SystemClock()

    private let heap = Locked(TimerHeap<@Sendable () -> Void>())
    private let queue = DispatchQueue(label: "OperationKit.SystemClock")
    // Sendable: set up in init, then only used on `queue`.
    private nonisolated(unsafe) let source: any DispatchSourceTimer

    private init() {
        source = DispatchSource.makeTimerSource(queue: queue)
        source.setEventHandler { [unowned self] in callDueActions() }
        source.activate()
    }

    /// The time since the system started.
    public var now: OperationInstant {
        OperationInstant(offset: .nanoseconds(Int64(clamping: DispatchTime.now().uptimeNanoseconds)))
    }

    /// Calls `action` on a global queue at `instant`, unless the timer is cancelled first.
    public func schedule(
        at instant: OperationInstant, _ action: @escaping @Sendable () -> Void
    ) -> any OperationTimer {
        let (id, isFirst) = heap.withLock { heap in
            let before = heap.nextDue
            let id = heap.insert(action, due: instant)
            return (id, before.map { instant < $0 } ?? true)
        }
        if isFirst { queue.async { [self] in setSource() } }
        return SystemTimer(clock: self, id: id)
    }

    fileprivate func cancel(_ id: UInt64) {
        // What the action holds is released here, after the lock was given back. A source that is set too early for
        // what remains wakes up once in vain.
        _ = heap.withLock { $0.remove(id) }
    }

    /// How many actions wait.
    ///
    /// For tests that look for timers left behind.
    package var pendingCount: Int { heap.withLock { $0.count } }

    private func callDueActions() {
        while let action = heap.withLock({ $0.popDue(at: now) }) {
            DispatchQueue.global().async(execute: action)
        }
        setSource()
    }

    /// Only on `queue`, so that two threads cannot set the source in the wrong order.
    private func setSource() {
        guard let due = heap.withLock({ $0.nextDue }) else { return source.schedule(deadline: .distantFuture) }
        let nanoseconds = due.offset.saturatedNanoseconds
        // Dispatch reads times in the upper half of its range as "forever" or as wall-clock times.
        guard nanoseconds < Int64.max / 4 else { return source.schedule(deadline: .distantFuture) }
        let ahead = nanoseconds.subtractingReportingOverflow(now.offset.saturatedNanoseconds).partialValue
        source.schedule(
            deadline: DispatchTime(uptimeNanoseconds: UInt64(max(nanoseconds, 1))), leeway: Self.leeway(ahead: ahead))
    }

    /// Returns how much later than asked the timer may fire.
    ///
    /// On Apple platforms a late timer shares its wake-up with others, which saves energy.
    private static func leeway(ahead nanoseconds: Int64) -> DispatchTimeInterval {
        #if canImport(Darwin)
            .microseconds(Int(min(max(nanoseconds / 64_000, 100), 100_000)))
        #else
            .microseconds(100)
        #endif
    }
}

private struct SystemTimer: OperationTimer {
    let clock: SystemClock
    let id: UInt64

    func cancel() { clock.cancel(id) }
}
