// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
