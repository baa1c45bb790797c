// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// An object that records when operations with the same key ran and prevents the next operation from beginning too
/// early.
///
/// ```swift
/// let refresh = TaskOperation { try await Task.sleep(for: .milliseconds(1)) }
/// refresh.throttle = .init(
///     key: "refresh feed", interval: .seconds(60), early: .drop)
/// refresh.start()
/// // Prints false, because the operation is running.
/// print(refresh.nextRun == nil)
/// ```
///
/// The next operation with a key may begin when the interval has passed since the end of the previous operation. The
/// rule of the previous operation contains this interval. While an operation with the key runs, no other operation with
/// the key begins. An operation that is canceled before its body begins does not delay the next operation.
///
/// By default, all rules use one throttle with the system clock. Create another one for a test with a manual clock, or
/// to use the same key for different operations.
public final class OperationThrottle: Sendable {
    private struct State {
        var machine = ThrottleMachine<AdmissionTicket>()
        /// The timers of keys that rest while an operation waits.
        var alarms: [String: (due: OperationInstant, timer: any OperationTimer)] = [:]
    }

    /// The shared throttle of the process, which uses the system clock.
    package static let shared = OperationThrottle()

    /// The clock that measures the intervals.
    package let clock: any OperationClock
    private let state = Locked(State())

    /// Creates a throttle with its own keys and clock, for example for a test with a manual clock.
    ///
    /// - Parameter clock: The clock that measures the intervals. The default is the system's monotonic clock.
    public init(clock: any OperationClock = .system) {
        self.clock = clock
    }

    /// Returns the moment on the throttle's clock at which an operation with a key may begin next.
    ///
    /// The result is `nil` if the operation may begin now.
    ///
    /// While an operation with the key runs, the method returns ``OperationInstant/distantFuture``.
    ///
    /// - Parameter key: The key of the operations, as in ``ThrottleRule``.
    package func nextRun(of key: String) -> OperationInstant? {
        let now = clock.now
        return state.withLock { $0.machine.nextRun(of: key, now: now) }
    }

    /// Returns the operation with a key that is running or about to run, or `nil` if there is none.
    ///
    /// - Parameter key: The key of the operations, as in ``ThrottleRule``.
    package func runner(of key: String) -> ManagedOperation? {
        state.withLock { $0.machine.runner(of: key) }?.operation
    }

    /// Returns the number of operations that wait until the throttle lets an operation with the key begin.
    ///
    /// - Parameter key: The key of the operations, as in ``ThrottleRule``.
    package func waitingCount(of key: String) -> Int { state.withLock { $0.machine.waiting(for: key).count } }

    /// The operations that wait for the key, in the order in which they will run.
    package func waiters(of key: String) -> [ManagedOperation] {
        state.withLock { $0.machine.waiting(for: key) }.compactMap(\.operation)
    }
}

// For operations.
extension OperationThrottle {
    func ask(
        _ ticket: AdmissionTicket, _ rule: ThrottleRule
    ) -> (ThrottleMachine<AdmissionTicket>.Decision, replaced: [AdmissionTicket]) {
        let now = clock.now
        let reply = state.withLock {
            $0.machine.ask(ticket, rule.key, interval: rule.interval, early: rule.early, now: now)
        }
        setAlarm(for: rule.key)
        notify(reply.granted)
        return (reply.answer, reply.replaced)
    }

    func leave(_ ticket: AdmissionTicket, _ key: String) {
        let now = clock.now
        let granted = state.withLock { $0.machine.leave(ticket, key, hasRun: ticket.hasBegun, now: now) }
        setAlarm(for: key)
        notify(granted)
    }

    private func notify(_ ticket: AdmissionTicket?) {
        if let ticket { ticket.operation?.admissionDidPass(.throttle, ticket) }
    }

    /// Sets or cancels the timer of a key until it is the one that the machine asks for.
    private func setAlarm(for key: String) {
        while true {
            let (due, old): (OperationInstant?, (any OperationTimer)?) = state.withLock { state in
                let due = state.machine.alarm(for: key)
                if state.alarms[key]?.due == due { return (nil, nil) }
                return (due, state.alarms.removeValue(forKey: key)?.timer)
            }
            guard due != nil || old != nil else { return }
            old?.cancel()
            if let due { schedule(key, due) }
        }
    }

    private func schedule(_ key: String, _ due: OperationInstant) {
        // The clock may be user code, so this is without holding the lock. The timer may fire, or another thread may
        // set one, before this one is stored.
        let timer = clock.schedule(at: due) { [weak self] in self?.alarmDidGoOff(key, due) }
        let isStored = state.withLock { state in
            guard state.alarms[key] == nil, state.machine.alarm(for: key) == due else { return false }
            state.alarms[key] = (due, timer)
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
        extendLifetime(old)
        setAlarm(for: key)
        notify(granted)
    }
}

/// A rule for the minimum time between executions of operations with the same key.
public struct ThrottleRule: Sendable {
    /// A value that determines how OperationKit handles an operation that would begin too early.
    ///
    /// Future versions may add values.
    public struct Early: Hashable, Sendable, CustomStringConvertible {
        /// The name of the value as a string.
        public let description: String

        private init(_ name: String) { description = name }

        /// OperationKit cancels the early operation with the cause `throttled`.
        ///
        /// The message of the cause states when an operation with the key may begin, or that an operation with the key
        /// is running.
        public static let drop = Early("drop")
        /// OperationKit adds the early operation to the end of the list of operations that wait for the key.
        public static let wait = Early("wait")
        /// OperationKit cancels all operations that already wait for the key, and the early operation waits instead.
        public static let replace = Early("replace")
    }

    /// The key of all operations that must not run at the same time.
    package let key: String
    /// The minimum time from the end of this operation to the beginning of the next operation with the key.
    ///
    /// A negative interval is treated as zero. If the interval is zero, the rule only prevents operations with the same
    /// key from running at the same time.
    package let interval: Duration
    /// The value that determines how OperationKit handles the operation if it would begin too early.
    package let early: Early
    /// The throttle that records the executions for the key.
    package let registry: OperationThrottle

    /// Creates a rule for all operations with the same key.
    ///
    /// - Parameters:
    ///   - key: The key that operations share if they must not run at the same time.
    ///   - interval: The minimum time from the end of an operation with this rule to the beginning of the next
    ///     operation with the key.
    ///   - early: The value that determines how OperationKit handles the operation if it would begin too early. The
    ///     default is ``Early/drop``.
    ///   - registry: The throttle that records the executions for the key. The default is `nil`, which uses the
    ///     throttle that all such rules in the process share.
    public init(key: String, interval: Duration, early: Early = .drop, in registry: OperationThrottle? = nil) {
        self.key = key
        self.interval = max(interval, .zero)
        self.early = early
        self.registry = registry ?? .shared
    }
}

/// The last run of each key and the parties that wait for it, as a pure value.
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

        /// The end of the rest period, or `nil` while the key runs.
        var restEnd: OperationInstant? {
            if case .resting(let end) = phase { end } else { nil }
        }
    }

    /// The answer to a party that asks to run.
    package enum Decision: Equatable {
        case granted
        case waits
        /// The party came too early and must not wait.
        ///
        /// The moment is `nil` while the key runs.
        case dropped(until: OperationInstant?)
    }

    /// The answer to a party, and the effects on other parties.
    package struct Reply {
        package var answer: Decision
        /// A party that waited and may run now.
        package var granted: Party?
        /// The parties that were replaced.
        package var replaced: [Party] = []
    }

    private var entries: [String: Entry] = [:]
    /// The number of keys at which keys that are free again are removed.
    private var sweepCount = 64

    package init() {}

    /// The number of keys in the table.
    package var count: Int { entries.count }

    /// Asks whether the key may run.
    ///
    /// - Parameters:
    ///   - party: The party that asks. The party has not asked before, or has left since.
    ///   - key: The key to run.
    ///   - interval: The time for which the key rests after this run.
    ///   - early: The treatment of the party if the key may not run yet.
    ///   - now: The current moment.
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

    /// Removes a party that ended or no longer waits, and returns a waiting party that may run now.
    package mutating func leave(_ party: Party, _ key: String, hasRun: Bool, now: OperationInstant) -> Party? {
        guard case .running(party, let interval) = entries[key]?.phase else {
            entries[key]?.line.remove(party)
            entries[key]?.intervals[party] = nil
            return nil
        }
        // A party whose body did not begin leaves the key as it was.
        entries[key]?.phase = .resting(until: hasRun ? now.advanced(by: max(interval, .zero)) : now)
        return wake(key, now: now)
    }

    /// Lets the first waiting party run if the key has rested, and returns that party.
    ///
    /// If no party waits, the key is removed.
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

    /// Returns the moment at which `wake` must be called for a waiting party, or `nil` if none waits.
    package func alarm(for key: String) -> OperationInstant? {
        entries[key].flatMap { $0.line.isEmpty ? nil : $0.restEnd }
    }

    /// Returns the moment from which the key may run, or `nil` if it may run now.
    ///
    /// While the key runs, the moment is the distant future.
    package func nextRun(of key: String, now: OperationInstant) -> OperationInstant? {
        guard let entry = entries[key] else { return nil }
        guard let end = entry.restEnd else { return .distantFuture }
        return end <= now && entry.line.isEmpty ? nil : max(end, now)
    }

    /// Returns the party that runs, or is about to.
    package func runner(of key: String) -> Party? {
        if case .running(let party, _) = entries[key]?.phase { party } else { nil }
    }

    /// Returns the parties that wait for a key, in the order in which they will run.
    package func waiting(for key: String) -> [Party] { entries[key]?.line.all ?? [] }

    /// Removes keys that are free again, at an amortized constant cost.
    private mutating func sweep(now: OperationInstant) {
        guard entries.count >= sweepCount else { return }
        entries = entries.filter { _, entry in
            guard entry.line.isEmpty, let end = entry.restEnd else { return true }
            return end > now
        }
        sweepCount = max(64, 2 * entries.count)
    }
}

extension ManagedOperation {
    /// Returns whether the operation may begin now.
    ///
    /// If not, the operation waits, or is canceled.
    final func askThrottle(_ rule: ThrottleRule, _ ticket: AdmissionTicket) -> Bool {
        let (answer, replaced) = rule.registry.ask(ticket, rule)
        for other in replaced { other.operation?.cancelIfUndecided(because: .replaced(key: rule.key, by: displayName)) }
        switch answer {
        case .granted: return true
        case .waits: return false
        case .dropped(let end):
            let now = rule.registry.clock.now
            cancelIfUndecided(because: .throttled(key: rule.key, until: end, now: now))
            return false
        }
    }
}

extension CancellationCause.Code {
    /// The operation could not begin yet because of its throttle rule, and the rule drops early operations.
    public static let throttled = Self("throttled")
    /// Another operation with the same key replaced this operation.
    public static let replaced = Self("replaced")
}

extension CancellationCause {
    fileprivate static func throttled(key: String, until end: OperationInstant?, now: OperationInstant) -> Self {
        let reason =
            end.map { "the key may run again at \($0), in \(max(now.duration(to: $0), .zero))" }
            ?? "the key is running, and must rest after that"
        return CancellationCause(
            code: .throttled,
            message: "The operation was canceled because its key \"\(key)\" may not run yet: \(reason). "
                + "Create another operation then, or choose .wait.")
    }

    fileprivate static func replaced(key: String, by name: String) -> CancellationCause {
        CancellationCause(
            code: .replaced,
            message: "The operation was canceled because \(name) replaced it while it waited for its key \"\(key)\".")
    }
}
