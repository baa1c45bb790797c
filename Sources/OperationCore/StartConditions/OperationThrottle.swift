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

/// The least time between two runs, and what becomes of a run that comes too early.
public struct ThrottleRule: Sendable {
    /// What is done with an operation that comes before its key may run.
    ///
    /// New ways may be added.
    public struct Early: Hashable, Sendable, CustomStringConvertible {
        /// The name of the way.
        public let description: String

        private init(_ name: String) { description = name }

        /// It is cancelled with the cause `throttled`, which names the moment from which the key may run.
        public static let drop = Early("drop")
        /// It waits, behind those that wait already.
        public static let wait = Early("wait")
        /// It waits in the place of those that wait, which are cancelled with the cause `replaced`.
        public static let replace = Early("replace")
    }

    /// What runs: operations of one key count as runs of the same.
    public let key: String
    /// How long the key rests after a run of this operation, counted from its end; below zero counts as zero.
    ///
    /// With zero, runs of the key only never overlap.
    public let interval: Duration
    /// What is done with the operation if it comes early.
    public let early: Early
    /// Where runs of the key are noted.
    public let registry: OperationThrottle

    /// Makes a rule.
    ///
    /// - Parameters:
    ///   - key: What runs: operations of one key count as runs of the same.
    ///   - interval: How long the key rests after a run of this operation, counted from its end.
    ///   - early: What is done with the operation if it comes early.
    ///   - registry: Where runs of the key are noted: the process's own unless you made another.
    public init(key: String, interval: Duration, early: Early = .drop, in registry: OperationThrottle = .shared) {
        self.key = key
        self.interval = max(interval, .zero)
        self.early = early
        self.registry = registry
    }
}

/// When each key ran last and who waits for it, as a pure value.
///
/// ```text
///          granted             ended after a run              its time came
///   free ───────────▶ running ───────────────────▶ resting ───────────────────▶ free, or running for the next
///    ▲                   │ ended without a run
///    └───────────────────┘
/// ```
package struct ThrottleMachine<Party: Hashable> {
    private enum Phase {
        case running(Party, interval: Duration)
        case resting(until: OperationInstant)
    }

    private struct Entry {
        var phase: Phase
        var line = ArrivalLine<Party>()
        var intervals: [Party: Duration] = [:]

        /// When the rest ends; nil while the key runs.
        var restEnd: OperationInstant? {
            if case .resting(let end) = phase { end } else { nil }
        }
    }

    /// What came of a question.
    package enum Answer: Equatable {
        case granted
        case waits
        /// It came too early, and shall not wait; nil while the key runs.
        case dropped(until: OperationInstant?)
    }

    /// What a question did to others.
    package struct Reply {
        package var answer: Answer
        /// One that waited and may run now.
        package var granted: Party?
        /// Those whose place it took.
        package var replaced: [Party] = []
    }

    private var entries: [String: Entry] = [:]
    /// How many keys there may be before those that are free again are forgotten.
    private var sweepCount = 64

    package init() {}

    /// How many keys are remembered.
    package var count: Int { entries.count }

    /// Asks whether the key may run.
    ///
    /// - Parameters:
    ///   - party: Who asks; it has not asked before, or left since.
    ///   - key: What it would run.
    ///   - interval: How long the key rests after this run.
    ///   - early: What to do if the key may not run yet.
    ///   - now: The present moment.
    package mutating func ask(
        _ party: Party, _ key: String, interval: Duration, early: ThrottleRule.Early, now: OperationInstant
    ) -> Reply {
        let granted = wake(key, now: now)
        guard let phase = entries[key]?.phase else {
            sweep(now: now)
            entries[key] = Entry(phase: .running(party, interval: interval))
            return Reply(answer: .granted, granted: granted)
        }
        if early == .drop { return Reply(answer: .dropped(until: entries[key]?.restEnd), granted: granted) }
        var replaced: [Party] = []
        if early == .replace {
            replaced = waiting(for: key)
            entries[key] = Entry(phase: phase)
        }
        entries[key]?.line.append(party)
        entries[key]?.intervals[party] = interval
        return Reply(answer: .waits, granted: granted, replaced: replaced)
    }

    /// The party ended, or waits no more; returns one that waited and may run now.
    package mutating func leave(_ party: Party, _ key: String, hasRun: Bool, now: OperationInstant) -> Party? {
        guard case .running(party, let interval) = entries[key]?.phase else {
            entries[key]?.line.remove(party)
            entries[key]?.intervals[party] = nil
            return nil
        }
        // One that did not run after all leaves the key as it found it.
        entries[key]?.phase = .resting(until: hasRun ? now.advanced(by: max(interval, .zero)) : now)
        return wake(key, now: now)
    }

    /// If the key has rested, lets the first one that waits run, and returns it; forgets the key if there is none.
    package mutating func wake(_ key: String, now: OperationInstant) -> Party? {
        guard case .resting(let end) = entries[key]?.phase, end <= now else { return nil }
        guard let next = entries[key]?.line.popFirst() else {
            entries[key] = nil
            return nil
        }
        let interval = entries[key]?.intervals.removeValue(forKey: next) ?? .zero
        entries[key]?.phase = .running(next, interval: interval)
        return next
    }

    /// When `wake` must be called for the sake of one that waits.
    package func alarm(for key: String) -> OperationInstant? {
        entries[key].flatMap { $0.line.isEmpty ? nil : $0.restEnd }
    }

    /// From when on the key may run; nil if it may now, and the distant future while it runs.
    package func nextRun(of key: String, now: OperationInstant) -> OperationInstant? {
        guard let entry = entries[key] else { return nil }
        guard let end = entry.restEnd else { return .distantFuture }
        return end <= now && entry.line.isEmpty ? nil : max(end, now)
    }

    /// The one that runs, or was let in and is about to.
    package func runner(of key: String) -> Party? {
        if case .running(let party, _) = entries[key]?.phase { party } else { nil }
    }

    /// Those that wait for a key, the next one at the front.
    package func waiting(for key: String) -> [Party] { entries[key]?.line.all ?? [] }

    /// Forgets keys that are free again, at a constant cost for each question in the mean.
    private mutating func sweep(now: OperationInstant) {
        guard entries.count >= sweepCount else { return }
        entries = entries.filter { _, entry in
            guard entry.line.isEmpty, let end = entry.restEnd else { return true }
            return end > now
        }
        sweepCount = max(64, 2 * entries.count)
    }
}
