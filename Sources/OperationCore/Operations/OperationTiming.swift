// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The knobs of time of one operation, and the timers that are set for it.
struct OperationTiming {
    var clock: any OperationClock = .system
    var startDelay: Duration = .zero
    var timeout: Duration?
    var deadline: OperationInstant?
    /// Raised when the deadline or its clock is exchanged, so that a timer that was set before is known to be outdated.
    var deadlineVersion: UInt32 = 0

    /// The timers that are set.
    ///
    /// They go when the outcome is decided.
    var timers = OperationTimers()
    /// What is left of the timeout while the operation is suspended, and when it runs out while it is not.
    var timeoutRemainder: Duration?
    var timeoutEnd: OperationInstant?

    mutating func takeTimers() -> OperationTimers {
        exchange(&timers, with: OperationTimers())
    }
}

/// The timers of one operation: at most one for each purpose.
struct OperationTimers {
    var delay: (any OperationTimer)?
    var timeout: (any OperationTimer)?
    var deadline: (any OperationTimer)?

    /// Takes all of them back.
    ///
    /// Called outside the lock, since a clock may be the user's.
    func cancel() {
        delay?.cancel()
        timeout?.cancel()
        deadline?.cancel()
    }
}

extension OperationExtras {
    /// Changes the knobs of time, made now if there were none.
    func timed<Result>(_ change: (inout OperationTiming) -> Result) -> Result {
        var timing = self.timing ?? OperationTiming()
        // So that the value is changed in place and not copied.
        self.timing = nil
        defer { self.timing = timing }
        return change(&timing)
    }
}

extension ManagedOperation.Core {
    /// Whether there is a start delay that is not over yet.
    var hasDelayLeft: Bool { hasDelay && !isDelayServed }
    var hasDelay: Bool { extras?.timing.map { $0.startDelay > .zero } ?? false }
}
