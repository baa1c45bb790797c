// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

// The public properties are in CommonOperationMembers.
extension ManagedOperation {
    package final var clock: any OperationClock {
        get { core.withLock { $0.extras?.timing?.clock } ?? SystemClock.shared }
        set {
            setTiming("clock") { timing in
                timing.clock = newValue
                // A timer of the old clock is outdated, but it may be firing now.
                timing.deadlineVersion &+= 1
            }
            // A deadline that was set before now refers to the new clock.
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
                // If the deadline or the clock was replaced while the timer fired, the timer is outdated.
                operation.cancel(because: .deadlinePassed) { core in
                    core.machine.ending == nil && core.extras?.timing?.deadlineVersion == version
                }
            }
        }
    }

    /// Returns the time until the earliest deadline or timeout of the operation and of the groups around it.
    ///
    /// The method returns `nil` if there is none. The time of a group is measured by the clock of that group.
    package final func timeLeft(at now: OperationInstant) -> Duration? {
        guard let around = timeLeftOfGroups else { return ownTimeLeft(at: now) }
        return min(ownTimeLeft(at: now) ?? around, around)
    }

    /// The time until the first of the groups around the operation runs out of time.
    ///
    /// Groups from which the operation is shielded do not count.
    private var timeLeftOfGroups: Duration? {
        var least: Duration?
        var next: ManagedOperation? = self
        while let operation = next {
            let (parent, slot) = operation.core.withLock { ($0.parent, $0.parentSlot) }
            next = parent?.group(around: slot)
            guard let next, let left = next.ownTimeLeft(at: next.clock.now) else { continue }
            least = min(least ?? left, left)
        }
        return least
    }

    /// Returns the time until the earliest deadline or timeout of the operation itself.
    final func ownTimeLeft(at now: OperationInstant) -> Duration? {
        core.withLock { core in
            guard let timing = core.extras?.timing else { return nil }
            let ends = [timing.deadline, timing.timeoutEnd].compactMap { $0.map(now.duration(to:)) }
            return (ends + [timing.timeoutRemainder].compactMap { $0 }).min()
        }
    }

    /// Changes an option that has an effect only before the start.
    private func setTiming(_ name: String, _ change: (inout OperationTiming) -> Void) {
        let old = clock
        let isLate = core.withLock { core in
            guard !core.machine.isStartUnderWay else { return true }
            core.need().timed { change(&$0) }
            return false
        }
        // The replaced clock is released here, without holding the lock.
        extendLifetime(old)
        if isLate { reportLateSetting(of: name) }
    }

    /// Returns whether an option that has an effect only before the start can be set now, and reports a notice if not.
    ///
    /// - Parameter name: The name of the option.
    package final func maySet(_ name: @autoclosure () -> String) -> Bool {
        if state == .notStarted { return true }
        reportLateSetting(of: name())
        return false
    }

    private func reportLateSetting(of name: String) {
        OperationDiagnostics.report(
            .timing, by: self, "The \(name) was set after the start and has no effect. Set it before the start.")
    }

    /// Cancels an operation whose deadline or timeout is over before its body begins.
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

    func armTimeout(_ duration: Duration) {
        let end = clock.now.advanced(by: duration)
        let isRunning = core.withLock { core in
            // If the operation was suspended between the start and here, the resumption sets the timer.
            if core.machine.state == .suspended { core.extras?.timing?.timeoutRemainder = duration }
            guard core.machine.state == .executing else { return false }
            core.extras?.timing?.timeoutEnd = end
            return true
        }
        guard isRunning else { return }
        // If the operation was suspended in the meantime, this timer is outdated.
        setTimer(\.timeout, at: end, onlyIf: { $0.timeoutEnd == end }) { $0.timeoutDidEnd(end) }
    }

    private func timeoutDidEnd(_ end: OperationInstant) {
        let timeout = core.withLock { core -> Duration? in
            guard let extras = core.extras, extras.timing?.timeoutEnd == end else { return nil }
            guard core.machine.state != .suspended else {
                // The timer fired while another thread suspends the operation. No time is left, but the operation has
                // not timed out yet.
                extras.timed { timing in (timing.timeoutRemainder, timing.timeoutEnd) = (.zero, nil) }
                return nil
            }
            return extras.timing?.timeout
        }
        guard let timeout else { return }
        // If the outcome was decided or the operation was suspended in the meantime, the timer is outdated.
        cancel(because: .timedOut(after: timeout)) { core in
            core.machine.ending == nil && core.machine.state != .suspended && core.extras?.timing?.timeoutEnd == end
        }
    }

    /// Sets a timer, which does not keep the operation alive, and cancels it if the outcome is already decided.
    private func setTimer(
        _ place: WritableKeyPath<OperationTimers, (any OperationTimer)?>,
        at instant: OperationInstant,
        onlyIf isWanted: (OperationTiming) -> Bool = { _ in true },
        _ action: @escaping @Sendable (ManagedOperation) -> Void
    ) {
        // The clock may be the user's, so it is called without holding the lock, and the timer may fire before it is
        // stored.
        var timer: (any OperationTimer)? = clock.schedule(at: instant) { [weak life] in
            if let life { action(life) }
        }
        core.withLock { core in
            guard core.machine.ending == nil, let extras = core.extras else { return }
            // Two threads may set a deadline or a timeout at the same time. Only the timer of the stored instant is
            // kept.
            extras.timed { timing in
                if isWanted(timing) { swap(&timing.timers[keyPath: place], &timer) }
            }
        }
        timer?.cancel()
    }
}

/// The timing options of one operation and the timers that are set for it.
struct OperationTiming {
    var clock: any OperationClock = .system
    var startDelay: Duration = .zero
    var timeout: Duration?
    var deadline: OperationInstant?
    /// A number that increases when the deadline or its clock is replaced, so that older timers are recognized as
    /// outdated.
    var deadlineVersion: UInt32 = 0

    /// The timers that are set, until the outcome is decided.
    var timers = OperationTimers()
    /// The time that is left of the timeout while the operation is suspended.
    var timeoutRemainder: Duration?
    /// The instant at which the timeout ends while the operation is not suspended.
    var timeoutEnd: OperationInstant?

    mutating func takeTimers() -> OperationTimers {
        exchange(&timers, with: OperationTimers())
    }
}

/// The timers of one operation, at most one for each purpose.
struct OperationTimers {
    var delay: (any OperationTimer)?
    var timeout: (any OperationTimer)?
    var deadline: (any OperationTimer)?

    /// Cancels all timers.
    ///
    /// This method is called without holding the lock, because a clock may be the user's.
    func cancel() {
        delay?.cancel()
        timeout?.cancel()
        deadline?.cancel()
    }
}

extension RareOperationState {
    /// Changes the timing options, and creates them if there are none.
    func timed<Result>(_ change: (inout OperationTiming) -> Result) -> Result {
        var timing = self.timing ?? OperationTiming()
        // Remove the stored value, so that the change happens in place instead of in a copy.
        self.timing = nil
        defer { self.timing = timing }
        return change(&timing)
    }
}

extension ManagedOperation.Core {
    /// Whether there is a start delay that is not over yet.
    var hasDelayLeft: Bool { isDelayServed ? false : hasDelay }
    var hasDelay: Bool { if let timing = extras?.timing { timing.startDelay > .zero } else { false } }
}
