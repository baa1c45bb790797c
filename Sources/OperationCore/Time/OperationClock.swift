// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch

/// The source of time for timeouts, deadlines, delays and waits.
///
/// The library never asks the system for the time by itself: everything that waits does so on a clock that can be
/// exchanged, so that a test can let an hour pass in a microsecond (`ManualClock` of `OperationTestKit`).
public protocol OperationClock: Sendable {
    /// The present moment. It never runs backwards.
    var now: OperationInstant { get }

    /// Calls `action` once, at `instant` or as soon after it as possible, unless the returned timer is cancelled first.
    ///
    /// The clock calls each action on a thread of its own choice, holds no lock while it does, and may call several at
    /// the same time. It lets go of the action once it was called or cancelled.
    func schedule(at instant: OperationInstant, _ action: @escaping @Sendable () -> Void) -> any OperationTimer
}

/// An action that an ``OperationClock`` will call later.
public protocol OperationTimer: Sendable {
    /// Takes the action back and lets go of it. Does nothing if it was called or cancelled already.
    func cancel()
}

extension OperationClock {
    /// Calls `action` once, after `duration`, unless the returned timer is cancelled first.
    public func schedule(
        after duration: Duration, _ action: @escaping @Sendable () -> Void
    ) -> any OperationTimer {
        schedule(at: now.advanced(by: duration), action)
    }
}

extension OperationClock where Self == SystemClock {
    /// The monotonic clock of the system, which is not set, and which stands still while the machine sleeps.
    public static var system: SystemClock { .shared }
}

/// A moment on an ``OperationClock``: the time since the clock's own zero.
///
/// Arithmetic never overflows: what lies beyond the last moment that can be counted is that last moment.
public struct OperationInstant: InstantProtocol, Sendable, Hashable, CustomStringConvertible {
    /// The time since the clock's zero.
    public let offset: Duration

    /// Makes the moment that lies `offset` after the clock's zero.
    public init(offset: Duration) {
        self.offset = offset
    }

    /// A moment that never comes.
    public static let distantFuture = OperationInstant(offset: .seconds(Int64.max))

    /// The moment `duration` after this one, at most ``distantFuture``.
    public func advanced(by duration: Duration) -> OperationInstant {
        // Each side is within ± Int64.max seconds once it was clamped, and the sum of two such fits in a Duration's
        // 128 bits; it is only the sum that must be brought back into range.
        let sum = offset.clamped + duration.clamped
        return OperationInstant(offset: sum.clamped)
    }

    /// The time from this moment to `other`.
    public func duration(to other: OperationInstant) -> Duration {
        (other.offset.clamped - offset.clamped).clamped
    }

    /// Whether this moment comes before `other`.
    public static func < (left: OperationInstant, right: OperationInstant) -> Bool {
        left.offset < right.offset
    }

    /// The moment as a number of seconds.
    public var description: String { "\(offset)" }
}

extension Duration {
    /// The duration brought within ± `Int64.max` seconds, where sums and differences of two cannot overflow.
    package var clamped: Duration {
        min(max(self, .seconds(-Int64.max)), .seconds(Int64.max))
    }

    /// The duration in whole nanoseconds, brought into range: never a trap, whatever the duration.
    package var saturatedNanoseconds: Int64 {
        let (seconds, attoseconds) = clamped.components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, overflowed) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflowed ? (seconds < 0 ? .min : .max) : sum
    }
}

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
