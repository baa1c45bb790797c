// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch

/// A source of time for timeouts, deadlines, delays and waits.
///
/// You can use your own clock. With the `ManualClock` of `OperationTestKit`, a test can simulate an hour in a
/// microsecond.
public protocol OperationClock: Sendable {
    /// The current time, which never decreases.
    var now: OperationInstant { get }

    /// Calls a closure once at a given time or as soon as possible afterward, unless the returned timer is canceled
    /// first.
    ///
    /// The clock may call closures on any thread and may call several closures at the same time. The clock must not
    /// hold a lock during a call. The clock must release the closure after the call or after the timer is canceled.
    ///
    /// - Parameters:
    ///   - instant: The time at which to call the closure.
    ///   - action: The closure to call.
    /// - Returns: A timer that can cancel the call.
    func schedule(at instant: OperationInstant, _ action: @escaping @Sendable () -> Void) -> any OperationTimer
}

/// A timer for a closure that an ``OperationClock`` calls later.
public protocol OperationTimer: Sendable {
    /// Cancels the call and releases the closure.
    ///
    /// This method has no effect if the closure was already called or the timer was already canceled.
    func cancel()
}

extension Locked {
    /// Stores a timer if the state still needs it, and cancels the timer otherwise.
    ///
    /// The clock may be user code, so a timer is scheduled without holding the lock. The timer may then fire, or its
    /// reason may end, before the timer is stored.
    package borrowing func keep(
        _ timer: any OperationTimer, in place: WritableKeyPath<Value, (any OperationTimer)?>,
        if isNeeded: (inout Value) -> Bool
    ) {
        let isKept = withLock { value in
            guard isNeeded(&value) else { return false }
            value[keyPath: place] = timer
            return true
        }
        if !isKept { timer.cancel() }
    }
}

extension OperationClock {
    /// Calls a closure once after a given duration, unless the returned timer is canceled first.
    ///
    /// - Parameters:
    ///   - duration: The time to wait, measured by this clock. If the duration is zero or negative, the clock calls the
    ///     closure as soon as possible.
    ///   - action: The closure to call. The clock can call the closure on any thread.
    /// - Returns: A timer that can cancel the call.
    public func schedule(
        after duration: Duration, _ action: @escaping @Sendable () -> Void
    ) -> any OperationTimer {
        schedule(at: now.advanced(by: duration), action)
    }
}

extension OperationClock where Self == SystemClock {
    /// The system's monotonic clock, which is independent of the date and stops while the system sleeps.
    public static var system: SystemClock { .shared }
}

/// A time on an ``OperationClock``, given as the duration since the clock's origin.
///
/// Arithmetic never overflows. A sum or difference that is out of range becomes the nearest value in the range.
public struct OperationInstant: InstantProtocol, Sendable, Hashable, CustomStringConvertible {
    /// The duration since the clock's origin.
    public let offset: Duration

    /// Creates the time that is `offset` after the clock's origin.
    ///
    /// - Parameter offset: The time since the clock's origin.
    public init(offset: Duration) {
        self.offset = offset
    }

    /// A time that no clock reaches.
    public static let distantFuture = OperationInstant(offset: .seconds(Int64.max))

    /// Returns the time that is `duration` after this time, but not later than ``distantFuture``.
    ///
    /// - Parameter duration: The duration to add. A negative duration results in an earlier time.
    public func advanced(by duration: Duration) -> OperationInstant {
        // Each clamped value is within ± Int64.max seconds, so the sum fits in the 128 bits of a Duration. Only the sum
        // must be clamped again.
        let sum = offset.clamped + duration.clamped
        return OperationInstant(offset: sum.clamped)
    }

    /// Returns the duration from this time to `other`.
    ///
    /// - Parameter other: The end of the duration. If `other` is before this time, the result is negative.
    public func duration(to other: OperationInstant) -> Duration {
        (other.offset.clamped - offset.clamped).clamped
    }

    /// Returns a Boolean value that indicates whether `left` is before `right`.
    public static func < (left: OperationInstant, right: OperationInstant) -> Bool {
        left.offset < right.offset
    }

    /// A description with the offset in seconds.
    public var description: String { "\(offset)" }
}

extension Duration {
    /// The duration limited to ± `Int64.max` seconds, so that a sum or difference of two such durations cannot
    /// overflow.
    package var clamped: Duration {
        min(max(self, .seconds(-Int64.max)), .seconds(Int64.max))
    }

    /// The duration in whole nanoseconds, limited to the range of `Int64`.
    package var saturatedNanoseconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000) }
}

/// A clock that uses the system's monotonic time.
///
/// The clock uses `DispatchTime` (`CLOCK_MONOTONIC` on Linux), and calls each closure on a global queue.
public final class SystemClock: OperationClock {
    /// The only instance of the clock.
    package static let shared = SystemClock()

    private let heap = Locked(TimerHeap<@Sendable () -> Void>())
    private let queue = DispatchQueue(label: "OperationKit.SystemClock")
    // Sendable: set up in init, then only used on `queue`.
    private let source: Unchecked<any DispatchSourceTimer>

    private init() {
        source = Unchecked(DispatchSource.makeTimerSource(queue: queue))
        source.value.setEventHandler { [unowned self] in callDueActions() }
        source.value.activate()
    }

    /// The time since the system started, not counting the time during which the system slept.
    public var now: OperationInstant {
        OperationInstant(offset: .nanoseconds(Int64(clamping: DispatchTime.now().uptimeNanoseconds)))
    }

    /// Calls a closure on a global queue at a given time, unless the returned timer is canceled first.
    ///
    /// - Parameters:
    ///   - instant: The time at which to call the closure. If the time has passed, the clock calls the closure as soon
    ///     as possible.
    ///   - action: The closure to call.
    /// - Returns: A timer that can cancel the call.
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
        // The action is released here, without holding the lock. The source keeps its time and may fire once with
        // nothing to do.
        _ = heap.withLock { $0.remove(id) }
    }

    private func callDueActions() {
        while let action = heap.withLock({ $0.popDue(at: now) }) {
            DispatchQueue.global().async(execute: action)
        }
        setSource()
    }

    /// Sets the source to the earliest action.
    ///
    /// Must be called on `queue`, so that two threads cannot set the source in the wrong order.
    private func setSource() {
        guard let due = heap.withLock({ $0.nextDue }) else { return source.value.schedule(deadline: .distantFuture) }
        let nanoseconds = due.offset.saturatedNanoseconds
        // Dispatch reads times in the upper half of its range as "forever" or as wall-clock times.
        guard nanoseconds < Int64.max / 4 else { return source.value.schedule(deadline: .distantFuture) }
        let ahead = nanoseconds.subtractingReportingOverflow(now.offset.saturatedNanoseconds).partialValue
        source.value.schedule(
            deadline: DispatchTime(uptimeNanoseconds: UInt64(max(nanoseconds, 1))), leeway: Self.leeway(ahead: ahead))
    }

    /// Returns how much later than requested the timer may fire.
    ///
    /// On Apple platforms, a late timer shares its wake-up with others, which saves energy.
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
