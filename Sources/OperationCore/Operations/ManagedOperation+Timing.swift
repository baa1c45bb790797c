// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// What is public of this is in CommonOperationMembers.
extension ManagedOperation {
    package final var clock: any OperationClock {
        get { core.withLock { $0.extras?.timing?.clock } ?? SystemClock.shared }
        set {
            setTiming("clock") { timing in
                timing.clock = newValue
                // A timer of the old clock means nothing any more, though it may be firing now.
                timing.deadlineVersion &+= 1
            }
            // A deadline that was set before is a moment of the new clock now.
            if let deadline { self.deadline = deadline }
        }
    }

    package final var startDelay: Duration {
        get { core.withLock { $0.extras?.timing?.startDelay } ?? .zero }
        set { setTiming("startDelay") { $0.startDelay = max(newValue, .zero) } }
    }

    package final var timeout: Duration? {
        get { core.withLock { $0.extras?.timing?.timeout } }
        set { setTiming("timeout") { $0.timeout = newValue } }
    }

    package final var deadline: OperationInstant? {
        get { core.withLock { $0.extras?.timing?.deadline } }
        set {
            let (old, version) = core.withLock { core -> ((any OperationTimer)?, UInt32) in
                guard core.machine.ending == nil, newValue != nil || core.extras?.timing != nil else { return (nil, 0) }
                return core.need().timed { timing in
                    timing.deadline = newValue
                    timing.deadlineVersion &+= 1
                    return (exchange(&timing.timers.deadline, with: nil), timing.deadlineVersion)
                }
            }
            old?.cancel()
            guard let newValue, newValue < .distantFuture else { return }
            setTimer(\.deadline, at: newValue, onlyIf: { $0.deadlineVersion == version }) { operation in
                // Where the deadline or the clock was exchanged while the timer fired, it counts no more.
                operation.cancel(because: .deadlinePassed) { core in
                    core.machine.ending == nil && core.extras?.timing?.deadlineVersion == version
                }
            }
        }
    }

    /// How long until the first end of a time that was set: deadline or timeout, its own, or one of a group around it.
    ///
    /// Nil without any. The time of a group is counted on that one's clock.
    package final func timeLeft(at now: OperationInstant) -> Duration? {
        guard let around = timeLeftOfGroups else { return ownTimeLeft(at: now) }
        return min(ownTimeLeft(at: now) ?? around, around)
    }

    /// The same, groups apart.
    final func ownTimeLeft(at now: OperationInstant) -> Duration? {
        core.withLock { core in
            guard let timing = core.extras?.timing else { return nil }
            let ends = [timing.deadline, timing.timeoutEnd].compactMap { $0.map(now.duration(to:)) }
            return (ends + [timing.timeoutRemainder].compactMap { $0 }).min()
        }
    }

    /// Changes a knob that only counts before the start.
    private func setTiming(_ name: String, _ change: (inout OperationTiming) -> Void) {
        let old = clock
        let isLate = core.withLock { core in
            guard !core.machine.isStarted, !core.machine.isStartAwaited else { return true }
            core.need().timed { change(&$0) }
            return false
        }
        // A clock that was replaced is let go of here, outside the lock.
        withExtendedLifetime(old) {}
        if isLate { reportLateSetting(of: name) }
    }

    /// Whether what only counts before the start may be set now.
    ///
    /// Reports a notice if not.
    ///
    /// - Parameter name: What is set.
    package final func maySet(_ name: @autoclosure () -> String) -> Bool {
        if state == .notStarted { return true }
        reportLateSetting(of: name())
        return false
    }

    private func reportLateSetting(of name: String) {
        OperationDiagnostics.report(
            .timing, by: self, "Its \(name) was set after the start and has no effect. Set it before.")
    }

    /// Cancels an operation whose time is over before its body could begin.
    func expireIfOutOfTime() {
        guard let timing = core.withLock({ $0.machine.ending == nil ? $0.extras?.timing : nil }) else { return }
        if let deadline = timing.deadline, deadline <= timing.clock.now {
            cancelIfUndecided(because: .deadlinePassed)
        } else if let timeout = timing.timeout, timeout <= .zero {
            cancelIfUndecided(because: .timedOut(after: timeout))
        }
    }

    func beginDelay() {
        beginDelay { operation in
            operation.expireIfOutOfTime()
            operation.cancelIfOwnerIsGone()
            operation.delayDidEnd()
        }
    }

    func beginDelay(_ whenOver: @escaping @Sendable (ManagedOperation) -> Void) {
        setTimer(\.delay, at: clock.now.advanced(by: startDelay), whenOver)
    }

    func beginTimeout() {
        guard let timeout else { return }
        armTimeout(timeout)
    }

    func pauseTimeout() {
        guard timeout != nil else { return }
        let now = clock.now
        let timer = core.withLock { core -> (any OperationTimer)? in
            guard let extras = core.extras, let end = extras.timing?.timeoutEnd else { return nil }
            return extras.timed { timing in
                timing.timeoutRemainder = max(now.duration(to: end), .zero)
                timing.timeoutEnd = nil
                return exchange(&timing.timers.timeout, with: nil)
            }
        }
        timer?.cancel()
    }

    func resumeTimeout() {
        let remainder = core.withLock { core in
            core.extras.flatMap { $0.timing == nil ? nil : $0.timed { exchange(&$0.timeoutRemainder, with: nil) } }
        }
        guard let remainder else { return }
        armTimeout(remainder)
    }

    private func armTimeout(_ duration: Duration) {
        let end = clock.now.advanced(by: duration)
        let isRunning = core.withLock { core in
            // Suspended between the start and here: the resumption will set the timer.
            if core.machine.state == .suspended { core.extras?.timing?.timeoutRemainder = duration }
            guard core.machine.state == .executing else { return false }
            core.extras?.timing?.timeoutEnd = end
            return true
        }
        guard isRunning else { return }
        // Where it was put on hold meanwhile, the timer that counts is another one, or none.
        setTimer(\.timeout, at: end, onlyIf: { $0.timeoutEnd == end }) { $0.timeoutDidEnd(end) }
    }

    private func timeoutDidEnd(_ end: OperationInstant) {
        let timeout = core.withLock { core -> Duration? in
            guard let extras = core.extras, extras.timing?.timeoutEnd == end else { return nil }
            guard core.machine.state != .suspended else {
                // It fired while another thread suspends the operation: nothing is left of it, but it is not over yet.
                extras.timed { timing in (timing.timeoutRemainder, timing.timeoutEnd) = (.zero, nil) }
                return nil
            }
            return extras.timing?.timeout
        }
        guard let timeout else { return }
        // Where it got its outcome or was suspended meanwhile, the timer counts no more.
        cancel(because: .timedOut(after: timeout)) { core in
            core.machine.ending == nil && core.machine.state != .suspended && core.extras?.timing?.timeoutEnd == end
        }
    }

    /// Sets a timer, which does not keep the operation alive, and forgets it again if the outcome was decided by then.
    private func setTimer(
        _ place: WritableKeyPath<OperationTimers, (any OperationTimer)?>,
        at instant: OperationInstant,
        onlyIf isWanted: (OperationTiming) -> Bool = { _ in true },
        _ action: @escaping @Sendable (ManagedOperation) -> Void
    ) {
        // Outside the lock: the clock may be the user's. So the timer may fire before it is stored.
        var timer: (any OperationTimer)? = clock.schedule(at: instant) { [weak life] in
            if let life { action(life) }
        }
        core.withLock { core in
            guard core.machine.ending == nil, let extras = core.extras else { return }
            // Two threads may set a deadline or a timeout at once: the timer that stays is that of the moment that stays.
            extras.timed { timing in
                if isWanted(timing) { swap(&timing.timers[keyPath: place], &timer) }
            }
        }
        timer?.cancel()
    }
}

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

extension RareOperationState {
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
