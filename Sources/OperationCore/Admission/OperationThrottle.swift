// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Where it is noted when which key ran last, so that the next run comes not too early.
///
/// ```swift
/// let refresh = TaskOperation { try await Task.sleep(for: .milliseconds(1)) }
/// refresh.throttle = .init(key: "refresh feed", interval: .seconds(60), early: .drop)
/// refresh.start()
/// print(OperationThrottle.shared.nextRun(of: "refresh feed") == nil)  // false: it runs just now
/// ```
///
/// A key may run again when the last run has ended and the interval of that run has passed since. While it runs, no
/// other begins. A run counts when the body began: an operation that was cancelled before leaves the key as it was.
public final class OperationThrottle: Sendable {
    private struct State {
        var machine = ThrottleMachine<AdmissionTicket>()
        /// For keys that rest while somebody waits.
        var alarms: [String: Alarm] = [:]
    }

    private struct Alarm {
        let due: OperationInstant
        let timer: any OperationTimer
    }

    /// The one of the process, on the clock of the system.
    public static let shared = OperationThrottle()

    /// The clock on which intervals are counted.
    public let clock: any OperationClock
    private let state = Locked(State())

    /// Makes a register of its own, for a part of a program or for a test with a clock moved by hand.
    public init(clock: any OperationClock = .system) {
        self.clock = clock
    }

    /// The moment on ``clock`` from which the key may run again; nil if it may now.
    ///
    /// While the key runs nobody knows, and it is ``OperationInstant/distantFuture``.
    public func nextRun(of key: String) -> OperationInstant? {
        let now = clock.now
        return state.withLock { $0.machine.nextRun(of: key, now: now) }
    }

    /// The operation that runs under the key, or was let in and is about to.
    public func runner(of key: String) -> ManagedOperation? {
        state.withLock { $0.machine.runner(of: key) }?.operation
    }

    /// How many operations wait for the key.
    public func waitingCount(of key: String) -> Int { state.withLock { $0.machine.waiting(for: key).count } }

    /// The operations that wait for the key, the next one at the front.
    package func waiters(of key: String) -> [ManagedOperation] {
        state.withLock { $0.machine.waiting(for: key) }.compactMap(\.operation)
    }

    /// How many keys are remembered.
    package var keyCount: Int { state.withLock { $0.machine.count } }
}

// For operations.
extension OperationThrottle {
    func ask(
        _ ticket: AdmissionTicket, _ rule: ThrottleRule
    ) -> (ThrottleMachine<AdmissionTicket>.Answer, replaced: [AdmissionTicket]) {
        let now = clock.now
        let reply = state.withLock {
            $0.machine.ask(ticket, rule.key, interval: rule.interval, early: rule.early, now: now)
        }
        setAlarm(for: rule.key)
        tell(reply.granted)
        return (reply.answer, reply.replaced)
    }

    func leave(_ ticket: AdmissionTicket, _ key: String) {
        let now = clock.now
        let granted = state.withLock { $0.machine.leave(ticket, key, hasRun: ticket.hasBegun, now: now) }
        setAlarm(for: key)
        tell(granted)
    }

    private func tell(_ ticket: AdmissionTicket?) {
        if let ticket { ticket.operation?.admissionDidPass(.throttle, ticket) }
    }

    /// Sets the timer of a key, or takes it back, until it is what the machine asks for.
    private func setAlarm(for key: String) {
        while true {
            enum Chore { case none, cancel(Alarm), schedule(OperationInstant) }
            let chore: Chore = state.withLock { state in
                let due = state.machine.alarm(for: key)
                if state.alarms[key]?.due == due { return .none }
                if let old = state.alarms.removeValue(forKey: key) { return .cancel(old) }
                return due.map(Chore.schedule) ?? .none
            }
            switch chore {
            case .none: return
            case .cancel(let alarm): alarm.timer.cancel()
            case .schedule(let due): schedule(key, due)
            }
        }
    }

    private func schedule(_ key: String, _ due: OperationInstant) {
        // Outside the lock: the clock may be the user's. So it may fire, or another thread set one, before it is stored.
        let timer = clock.schedule(at: due) { [weak self] in self?.alarmDidGoOff(key, due) }
        let isStored = state.withLock { state in
            guard state.alarms[key] == nil, state.machine.alarm(for: key) == due else { return false }
            state.alarms[key] = Alarm(due: due, timer: timer)
            return true
        }
        if !isStored { timer.cancel() }
    }

    private func alarmDidGoOff(_ key: String, _ due: OperationInstant) {
        let now = max(clock.now, due)
        let (old, granted) = state.withLock { state in
            let isOurs = state.alarms[key]?.due == due
            return (isOurs ? state.alarms.removeValue(forKey: key) : nil, state.machine.wake(key, now: now))
        }
        withExtendedLifetime(old) {}
        setAlarm(for: key)
        tell(granted)
    }
}
