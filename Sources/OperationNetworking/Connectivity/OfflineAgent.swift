// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// An agent that makes one operation wait for the network, before it sends a request and after a failure that the
/// missing network caused.
final class OfflineAgent: AttemptPolicy {
    private struct State {
        var place = QueuePosition<OfflineWaiting.Ticket>()
        /// The number and the total duration of the operation's waits.
        var waits = 0
        var waited = Duration.zero
        /// The number of times that the download had made progress.
        ///
        /// Each time, the limits of the waits start again.
        var advances = 0
        /// Whether a wait ended early because the operation was suspended.
        ///
        /// The operation waits again if necessary.
        var wasReleased = false
        /// The number of the outage that was reported to the user.
        var reportedOutage: Int?
    }

    let policy: OfflinePolicy
    private let state = Locked(State())

    init(_ policy: OfflinePolicy) {
        self.policy = policy
    }

    private var isOffline: Bool { policy.waiting.monitor.connectivity.isOffline }

    func pass(_ request: NetworkRequest, for host: any AttemptHost) -> NetworkRequest? {
        guard policy.beforeSending == .send || !isOffline else { return nil }
        state.withLock { $0.wasReleased = false }
        return request
    }

    func clear(_ request: NetworkRequest, for host: any AttemptHost, _ answer: @escaping AttemptGateDecision.Handler) {
        let mayFail = policy.beforeSending == .fail && !state.withLock { exchange(&$0.wasReleased, with: false) }
        guard policy.beforeSending != .send, isOffline, policy.concerns(request) else { return answer(.go(request)) }
        if mayFail { return answer(.refuse(.offline(.offline, policy, after: nil))) }
        let turns = NotificationOrder()
        let refusal = wait(for: host) { [policy] end in
            turns.second {
                answer(end == .released ? .again : .refuse(.offline(.offlineTooLong, policy, after: nil)))
            }
        }
        turns.first { answer(refusal.map { .refuse(.offline($0, policy, after: nil)) } ?? .hold(.network)) }
        if refusal == nil { notify(host) }
    }

    func decide(_ report: AttemptReport, for host: any AttemptHost, _ answer: @escaping AttemptPolicyDecision.Handler) {
        // The agent made this decision itself, so no other policy may change it.
        if report.error.isAboutWaiting { return answer(AttemptPolicyDecision(.fail)) }
        guard let request = report.request, let rule = policy.rule(for: report.error, of: request), isOffline,
            policy.concerns(request)
        else { return answer(nil) }
        guard request.body.canBeSentNow else { return answer(fail(.bodyNotRepeatable, after: report.error)) }
        state.withLock { state in
            if exchange(&state.advances, with: report.advances) != report.advances {
                (state.waits, state.waited) = (0, .zero)
            }
        }
        let turns = NotificationOrder()
        let refusal = wait(for: host) { [weak self] end in
            let verdict = self?.verdict(end, after: report.error)
            turns.second { answer(verdict) }
        }
        if let refusal { return answer(fail(refusal, after: report.error)) }
        let note = "attempt \(report.number) failed (\(report.error.code)): waiting for the network. \(rule.reason)"
        turns.first { answer(AttemptPolicyDecision(.pause(.network), note: note)) }
        notify(host)
    }

    /// Reports the wait to the user, but not again if the operation was only suspended in between.
    private func notify(_ host: any AttemptHost) {
        let outage = policy.waiting.outage
        let hasChanged = state.withLock { exchange(&$0.reportedOutage, with: outage) != outage }
        if hasChanged { host.reportWaitForNetwork() }
    }

    private func verdict(_ end: OfflineWaiting.End, after failure: NetworkError) -> AttemptPolicyDecision {
        switch end {
        case .released:
            AttemptPolicyDecision(
                .replay(after: .zero),
                note: isOffline
                    ? "the operation was suspended: checking the network again" : "the network is available again")
        case .limitReached: fail(.offlineTooLong, after: failure)
        }
    }

    private func fail(_ code: NetworkError.Code, after failure: NetworkError) -> AttemptPolicyDecision {
        AttemptPolicyDecision(.fail, note: "no other attempt, \(code)", error: .offline(code, policy, after: failure))
    }

    /// Begins to wait, or returns the reason not to.
    private func wait(
        for host: any AttemptHost, _ body: @escaping @Sendable (OfflineWaiting.End) -> Void
    ) -> NetworkError.Code? {
        let left: Duration?? = state.withLock { state in
            guard state.waits < policy.mostWaits else { return .none }
            state.waits += 1
            return .some(policy.longestWait.map { max($0 - state.waited, .zero) })
        }
        guard let left else { return .offlineTooOften }
        let waiting = policy.waiting
        // A failure caused by a missing network says nothing about the credential.
        let endOutage = (host.networkAttempts.policies?.credential as? CredentialAgent)?.outage()
        let ticket = waiting.enter(atMost: left) { [weak self, weak host] end, duration in
            // A suspended operation does not run out of time. When it resumes, it checks the network and waits again if
            // necessary.
            if end == .limitReached, host?.state == .suspended {
                self?.release()
                endOutage?()
                return body(.released)
            }
            self?.record(duration)
            if end == .released { endOutage?() }
            body(end)
        }
        guard let ticket else { return .tooManyOffline }
        if !state.withLock({ $0.place.take(ticket) }) { waiting.leave(ticket) }
        return nil
    }

    private func record(_ duration: Duration) { state.withLock { $0.waited += duration } }

    /// Records that a wait ended early and does not count.
    private func release() {
        state.withLock { state in
            state.waits -= 1
            state.wasReleased = true
        }
    }

    func forget() {
        if let ticket = state.withLock({ $0.place.forget() }) { policy.waiting.leave(ticket) }
    }
}

extension WaitReason {
    fileprivate static let network = WaitReason(.network, "waiting for the network")
}

/// A queue of operations that wait for the network and resume one after another when the network returns.
///
/// All operations that use the same instance share its capacity and pace. By default, an ``OfflinePolicy`` uses the
/// ``shared`` instance.
///
/// ```swift
/// let patient = OfflineWaiting(
///     capacity: 100, pace: OfflineResumePace(perSecond: 5))
/// var policy = OfflinePolicy(waiting: patient)
/// policy.longestWait = .seconds(3600)
/// ```
public final class OfflineWaiting: Sendable {
    package typealias End = OfflineWaitEnd
    package typealias Ticket = UInt64
    /// A closure that receives the end of the wait, and the time for which the network was unavailable during the wait.
    package typealias Body = @Sendable (End, Duration) -> Void

    private struct State {
        var machine: OfflineWaitingMachine<Body>
        var observation: ConnectivityObservation?
        var isWatching = false
        var timer: (any OperationTimer)?
        /// The time for which the timer is set, or `nil` if there is no timer.
        var armedFor: OperationInstant?
        /// The number of times that the timer was set.
        var armings = 0
    }

    /// The shared instance, which an ``OfflinePolicy`` uses by default.
    public static let shared = OfflineWaiting()

    /// The monitor that reports whether the network is available.
    package let monitor: any ConnectivityMonitor
    private let clock: any OperationClock
    private let chance: @Sendable () -> Double
    private let state: Locked<State>

    /// Creates a queue of operations that wait for the network.
    ///
    /// - Parameters:
    ///   - monitor: The monitor that reports whether the network is available. The default is the system monitor.
    ///   - capacity: The maximum number of operations that can wait at the same time. If the queue is full, an
    ///     operation that would have to wait fails with ``NetworkError/Code/tooManyOffline``. The default is 10,000.
    ///   - pace: The pace at which operations resume. The default is ``OfflineResumePace/standard``.
    ///   - clock: The clock that measures the waits. The default is the system clock.
    ///   - chance: A closure that returns a random number from 0 to 1, which varies the times at which operations
    ///     resume. Replace this closure only in tests.
    public init(
        monitor: any ConnectivityMonitor = .system, capacity: Int = 10_000, pace: OfflineResumePace = .standard,
        clock: any OperationClock = .system, chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) {
        self.monitor = monitor
        self.clock = clock
        self.chance = chance
        state = Locked(State(machine: OfflineWaitingMachine(capacity: max(capacity, 0), pace: pace, now: clock.now)))
    }

    deinit { state.withLock { $0.timer }?.cancel() }

    /// The number of operations that are currently waiting for the network.
    public var waitingCount: Int { state.withLock { $0.machine.count } }

    /// The number of times that the network was lost.
    var outage: Int { state.withLock { $0.machine.outages } }

    /// Begins to wait for the network.
    ///
    /// `body` is called once, on another thread, unless the caller calls `leave(_:)` first. The time counts toward
    /// the limit only while the network is unavailable.
    ///
    /// - Returns: A ticket for the wait, or `nil` if the capacity is exhausted.
    package func enter(atMost limit: Duration?, _ body: @escaping Body) -> Ticket? {
        watch()
        let (now, chance) = (clock.now, chance())
        let ticket = state.withLock { $0.machine.enter(body, atMost: limit, now: now, chance: chance) }
        arm()
        return ticket
    }

    /// Ends a wait early, and returns `false` if the wait has already ended and its end was or will be reported.
    @discardableResult
    package func leave(_ ticket: Ticket) -> Bool {
        // The waiter's contents are released here, without holding the lock.
        let waiter = state.withLock { $0.machine.leave(ticket) }
        if waiter != nil { arm() }
        return waiter != nil
    }

    /// Starts to observe the network when the first operation waits.
    private func watch() {
        guard !state.withLock({ exchange(&$0.isWatching, with: true) }) else { return }
        let observation = monitor.observe { [weak self] in self?.record($0) }
        state.withLock { $0.observation = observation }
    }

    private func record(_ connectivity: Connectivity) {
        let (now, chance) = (clock.now, chance())
        state.withLock { state in
            state.machine.connectivityChanged(isOffline: connectivity.isOffline, now: now, chance: chance)
        }
        arm()
    }

    /// Sets the timer for the next relevant time, or removes the timer if there is no such time.
    private func arm() {
        let (due, old, number): (OperationInstant?, (any OperationTimer)?, Int) = state.withLock { state in
            let due = state.machine.nextDue
            // A timer that fires too early finds nothing to do and sets the next timer.
            if due == state.armedFor { return (nil, nil, 0) }
            if let due, let armed = state.armedFor, armed < due { return (nil, nil, 0) }
            state.armedFor = due
            state.armings += 1
            return (due, state.timer.take(), state.armings)
        }
        old?.cancel()
        guard let due else { return }
        let timer = clock.schedule(at: due) { [weak self] in self?.timerFired(number) }
        state.keep(timer, in: \.timer) { $0.armings == number && $0.armedFor != nil }
    }

    private func timerFired(_ number: Int) {
        let (now, chance) = (clock.now, chance())
        var timer: (any OperationTimer)?
        let ended: [OfflineWaitingMachine<Body>.Ended] = state.withLock { state in
            guard state.armings == number else { return [] }
            state.armedFor = nil
            timer = state.timer.take()
            return state.machine.timePassed(now: now, chance: chance)
        }
        withExtendedLifetime(timer) {}
        arm()
        for (body, end, duration) in ended { body(end, duration) }
    }
}

/// A reason for the end of a wait for the network.
package enum OfflineWaitEnd: Sendable, Equatable {
    /// The network returned, and it is the operation's turn.
    case released
    /// The wait reached its limit.
    case limitReached
}

/// The state of the operations that wait for the network, as a value that receives the time, random numbers and the
/// state of the network.
///
/// When the network has been back for a while, the operations resume in the order of their arrival, at the pace. An
/// operation that has waited too long without a network leaves with an error. Its wait is measured on a clock that runs
/// only while the network is unavailable. The time that it waits for its turn while the network is available does not
/// count.
package struct OfflineWaitingMachine<Waiter> {
    package typealias Ended = (waiter: Waiter, end: OfflineWaitEnd, duration: Duration)

    private struct Wait {
        let waiter: Waiter
        /// The total time without a network when the operation began to wait.
        let since: OperationInstant
        /// The identifier of the limit in the heap, or `nil` if the wait has no limit.
        var limit: UInt64?
    }

    private let capacity: Int
    private let pace: OfflineResumePace
    private var waits = ForgettingList<Wait>()
    /// The tickets of the waits with limits, ordered by the time without a network.
    private var heap = TimerHeap<UInt64>()
    private var lastTicket: UInt64 = 0
    private var nextRelease: OperationInstant?
    /// The total time without a network, before the current outage.
    private var offlineBefore = OperationInstant(offset: .zero)
    /// The time at which the network was lost, or `nil` while it is available.
    private var goneSince: OperationInstant?
    /// The number of times that the network was lost.
    package private(set) var outages = 1

    package init(
        capacity: Int = .max, pace: OfflineResumePace = .standard, isOffline: Bool = true, now: OperationInstant
    ) {
        self.capacity = capacity
        self.pace = pace
        goneSince = isOffline ? now : nil
    }

    /// The number of waiting operations.
    package var count: Int { waits.count }
    package var isOffline: Bool { goneSince != nil }

    /// Returns the total time without a network until now.
    package func offlineTime(at now: OperationInstant) -> OperationInstant {
        // A thread may pass a time that it read before the time of another thread.
        guard let goneSince, goneSince < now else { return offlineBefore }
        return offlineBefore.advanced(by: goneSince.duration(to: now))
    }

    /// The next time at which an action may be due, or `nil` if there is none.
    package var nextDue: OperationInstant? {
        if waits.isEmpty { return nil }
        guard let goneSince else { return nextRelease }
        return heap.nextDue.map { goneSince.advanced(by: offlineBefore.duration(to: $0)) }
    }

    /// Adds an operation to the line, and returns `nil` if the capacity is exhausted.
    ///
    /// - Parameter limit: The maximum time to wait without a network, or `nil` for no limit.
    package mutating func enter(
        _ waiter: Waiter, atMost limit: Duration?, now: OperationInstant, chance: Double
    ) -> UInt64? {
        guard waits.count < capacity else { return nil }
        lastTicket += 1
        let since = offlineTime(at: now)
        let entry = limit.map { heap.insert(lastTicket, due: since.advanced(by: $0)) }
        waits.append(Wait(waiter: waiter, since: since, limit: entry), id: lastTicket)
        // The network may have returned since the caller checked it.
        if !isOffline, nextRelease == nil { nextRelease = now.advanced(by: pace.delay(chance)) }
        return lastTicket
    }

    /// Removes an operation from the line, and returns `nil` if it did not wait.
    package mutating func leave(_ ticket: UInt64) -> Waiter? {
        guard let wait = waits.remove(ticket) else { return nil }
        if let limit = wait.limit { _ = heap.remove(limit) }
        if waits.isEmpty { nextRelease = nil }
        return wait.waiter
    }

    /// Records that the network was lost or returned.
    package mutating func connectivityChanged(isOffline: Bool, now: OperationInstant, chance: Double) {
        guard self.isOffline != isOffline else { return }
        offlineBefore = offlineTime(at: now)
        goneSince = isOffline ? now : nil
        if isOffline { outages += 1 }
        nextRelease = isOffline || waits.isEmpty ? nil : now.advanced(by: pace.delay(chance))
    }

    /// Returns the waits that end now, in the order of the line.
    package mutating func timePassed(now: OperationInstant, chance: Double) -> [Ended] {
        let time = offlineTime(at: now)
        guard isOffline else { return release(now, chance).map { ($0.waiter, .released, $0.since.duration(to: time)) } }
        var ended: [Ended] = []
        while let ticket = heap.popDue(at: time), let wait = waits.remove(ticket) {
            ended.append((wait.waiter, .limitReached, wait.since.duration(to: time)))
        }
        return ended
    }

    private mutating func release(_ now: OperationInstant, _ chance: Double) -> [Wait] {
        guard let due = nextRelease, due <= now else { return [] }
        let released = waits.take(pace.batch)
        for limit in released.lazy.compactMap(\.limit) { _ = heap.remove(limit) }
        // A late timer does not make the following operations resume immediately.
        nextRelease = waits.isEmpty ? nil : max(due, now).advanced(by: pace.step(chance))
        return released
    }
}
