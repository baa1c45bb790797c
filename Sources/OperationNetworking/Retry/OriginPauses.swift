// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A store that records, for each origin, the pauses that servers request, and applies them to all operations that use
/// the store.
///
/// A server requests a pause with the status code 429 or 503 and a `Retry-After` header. During the pause, every
/// operation whose ``Retry`` contains the store waits or fails before it sends a request to the same origin, even if
/// another operation received the response.
///
/// ```swift
/// func polite() -> Retry {
///     var retry = Retry.standard
///     retry.originPauses = .shared
///     return retry
/// }
/// ```
///
/// Use a store only if a service limits all your requests together. Many services apply separate limits to users, keys
/// or paths. For such a service, a store would also delay requests that are within their own limit.
public final class OriginPauses: Sendable {
    /// The behavior of an operation that is ready to send a request to an origin during a pause.
    ///
    /// Future versions may add cases.
    public enum Meanwhile: Sendable, Hashable {
        /// The operation waits until the pause ends and then sends its request.
        ///
        /// If the wait would exceed ``OriginPauses/longest`` or end after the operation's deadline, the operation fails
        /// immediately with ``NetworkError/Code/originPaused``. A request that refreshes a credential also fails
        /// immediately if the remaining pause is longer than 5 seconds, because other operations wait for the
        /// credential.
        case wait
        /// The operation fails immediately with ``NetworkError/Code/originPaused``.
        case fail
    }

    private typealias Machine = OriginPauseMachine<@Sendable () -> Void>

    /// The shared store of the process, which has the default settings.
    public static let shared = OriginPauses()

    /// The behavior of an operation that is ready to send a request to an origin during a pause.
    public let meanwhile: Meanwhile
    /// The maximum duration of a pause and the maximum time for which an operation waits before it sends a request.
    ///
    /// If a server requests a longer pause, the store records a pause of this duration.
    public let longest: Duration
    let clock: any OperationClock
    private let machine: GateShell<Machine>

    /// Creates a store that records the pauses that servers request.
    ///
    /// After a pause, 10 waiting operations resume immediately, and 10 more resume every 100 milliseconds.
    ///
    /// - Parameters:
    ///   - meanwhile: The behavior of an operation that is ready to send a request during a pause. The default is
    ///     ``Meanwhile/wait``.
    ///   - longest: The maximum duration of a pause and the maximum time for which an operation waits before it sends a
    ///     request. The default is 60 seconds.
    ///   - clock: The clock that measures the pauses. The default is the system clock.
    public convenience init(
        _ meanwhile: Meanwhile = .wait, longest: Duration = .seconds(60), clock: any OperationClock = .system
    ) {
        self.init(meanwhile, longest: longest, pace: PostponementPace(10, every: .milliseconds(100)), clock: clock)
    }

    package init(
        _ meanwhile: Meanwhile = .wait, longest: Duration = .seconds(60), pace: PostponementPace,
        clock: any OperationClock
    ) {
        self.meanwhile = meanwhile
        self.longest = max(longest, .zero).clamped
        self.clock = clock
        machine = GateShell(Machine(pace: pace), clock: clock, nextDue: \.nextDue) { machine, now, _ in
            machine.timePassed(now: now)
        }
    }

    /// Returns the remaining duration of the pause for a URL's origin, or `nil` if there is no pause.
    package func left(for url: URL) -> Duration? { RequestOrigin(of: url).flatMap { left(for: $0) } }

    /// The number of operations that are currently waiting for the end of a pause.
    package var waitingCount: Int { machine.withLock { $0.waitingCount } }

    package func left(for origin: RequestOrigin, hasWaited: Bool = false) -> Duration? {
        let now = clock.now
        return machine.withLock { $0.left(for: origin, hasWaited: hasWaited, now: now) }
    }

    /// Records a pause for an origin.
    package func record(_ pause: Duration, for origin: RequestOrigin) {
        machine.apply { machine, now, _ in ((), machine.record(min(pause, longest), for: origin, now: now)) }
    }

    /// Calls a closure when its turn has come, or returns `nil` if there is nothing to wait for.
    package func wait(for origin: RequestOrigin, _ resume: @escaping @Sendable () -> Void) -> UInt64? {
        machine.apply { machine, now, _ in (machine.wait(resume, for: origin, now: now), []) }
    }

    /// Removes a waiting operation.
    package func leave(_ ticket: UInt64, for origin: RequestOrigin) {
        // The closure is released here, without holding the lock.
        _ = machine.apply { machine, now, _ in (machine.leave(ticket, for: origin, now: now), []) }
    }
}

/// The pauses of all origins and the gates of the operations that wait for them, as a value that receives the time.
package struct OriginPauseMachine<Waiter> {
    private struct Pause {
        var until: OperationInstant
        /// The end of the pause that the waiting operations know.
        var reported: OperationInstant
        /// The name of the entry in the heap, unless the pause is new.
        var entry: UInt64?
        var gate: GateMachine<Waiter>
    }

    /// The extension of a pause after which the waiting operations check again whether they still want to wait.
    private static var leastReportedExtension: Duration { .seconds(1) }

    private var pauses: [RequestOrigin: Pause] = [:]
    /// All origins, ordered by the time at which their first operation continues, or by the end of the pause if none
    /// waits.
    private var next = TimerHeap<RequestOrigin>()
    /// The highest ticket of all gates, so that a new gate of an origin ignores the tickets of earlier gates.
    private var lastTicket: UInt64 = 0
    private let pace: PostponementPace

    package init(pace: PostponementPace) {
        self.pace = pace
    }

    /// The number of known origins.
    package var count: Int { pauses.count }
    package private(set) var waitingCount = 0
    /// The next time at which operations may continue or a pause ends, or `nil` if no operation waits.
    package var nextDue: OperationInstant? { waitingCount == 0 ? nil : next.nextDue }

    /// Returns the remaining pause of an origin, or `nil` if there is none.
    ///
    /// - Parameters:
    ///   - origin: The origin.
    ///   - hasWaited: Whether the turn of the calling operation has come. Other operations continue after those that
    ///     are still waiting.
    ///   - now: The current time.
    package func left(
        for origin: RequestOrigin, hasWaited: Bool = false, now: OperationInstant
    ) -> Duration? {
        guard let pause = pauses[origin] else { return nil }
        if now < pause.until { return now.duration(to: pause.until) }
        guard !hasWaited, let next = pause.gate.nextDue else { return nil }
        return max(now.duration(to: next), .zero)
    }

    /// Records a pause, and returns the waiting operations that must check again because the pause became longer.
    package mutating func record(_ pause: Duration, for origin: RequestOrigin, now: OperationInstant) -> [Waiter] {
        for origin in next.takeDue(at: now) { change(origin, now) { _ -> Void? in nil } }
        let until = now.advanced(by: pause)
        guard until > now else { return [] }
        let new = Pause(until: now, reported: until, gate: GateMachine(pace: pace, after: lastTicket, now: now))
        return change(origin, now, orAdd: new) { known in
            guard known.until < until else { return nil }
            known.until = until
            known.gate.close(until: until, now: now)
            guard known.reported.duration(to: until) > Self.leastReportedExtension else { return nil }
            known.reported = until
            return known.gate.takeAll()
        } ?? []
    }

    /// Adds a waiting operation and returns its ticket, or returns `nil` if there is nothing to wait for.
    package mutating func wait(_ waiter: Waiter, for origin: RequestOrigin, now: OperationInstant) -> UInt64? {
        change(origin, now) { pause in
            // While operations continue in batches, a new operation waits behind them.
            now < pause.until || pause.gate.count > 0 ? pause.gate.enter(waiter, now: now) : nil
        }
    }

    /// Removes a waiting operation.
    package mutating func leave(_ ticket: UInt64, for origin: RequestOrigin, now: OperationInstant) -> Waiter? {
        change(origin, now) { $0.gate.leave(ticket) }
    }

    /// Returns the operations that continue now.
    package mutating func timePassed(now: OperationInstant) -> [Waiter] {
        next.takeDue(at: now).flatMap { change($0, now) { $0.gate.timePassed(now: now).map(\.waiter) } ?? [] }
    }

    /// Modifies a pause in place, because a copy of its gate would take time in proportion to the waiting operations.
    ///
    /// The pause then gets a new entry in the heap, or is removed if it has ended and no operation waits for it.
    @discardableResult
    private mutating func change<Result>(
        _ origin: RequestOrigin, _ now: OperationInstant, orAdd new: Pause? = nil, _ body: (inout Pause) -> Result?
    ) -> Result? {
        guard var pause = pauses.removeValue(forKey: origin) ?? new else { return nil }
        waitingCount -= pause.gate.count
        let result = body(&pause)
        waitingCount += pause.gate.count
        lastTicket = max(lastTicket, pause.gate.lastTicket)
        if let entry = pause.entry { _ = next.remove(entry) }
        if pause.until <= now, pause.gate.count == 0 { return result }
        pause.entry = next.insert(origin, due: pause.gate.nextDue ?? pause.until)
        pauses[origin] = pause
        return result
    }
}

/// A gate that holds the requests of one operation while their origin is paused.
final class PauseGate: AttemptPolicy, @unchecked Sendable {
    // Sendable: all mutable state is behind a lock.

    private struct State {
        /// The time at which the current attempt was first held.
        var began: (attempt: Int, at: OperationInstant)?
        /// Whether the turn of the operation has come and it asks again.
        var hasWaited = false
        /// The origin of the request that may be sent.
        var origin: RequestOrigin?
    }

    private let pauses: OriginPauses
    private let state = Locked(State())
    private let wait = GateWait()

    /// The longest remaining pause for which a request of a credential refresh waits, because other operations wait for
    /// it.
    private static var longestOfRefresh: Duration { .seconds(5) }

    init(_ pauses: OriginPauses) {
        self.pauses = pauses
    }

    override func pass(_ request: NetworkRequest, for owner: any AttemptOwner) -> NetworkRequest? { nil }

    override func clear(_ request: NetworkRequest, for owner: any AttemptOwner, _ answer: @escaping GateAnswer) {
        let hasWaited = state.withLock { exchange(&$0.hasWaited, with: false) }
        state.withLock { $0.origin = request.origin }
        guard let left = pauses.left(for: request.origin, hasWaited: hasWaited) else { return answer(.go(request)) }
        // Many operations may wait for a refresh, so a refresh that would take long fails immediately.
        guard pauses.meanwhile == .wait, left <= Self.longestOfRefresh || !owner.networkAttempts.isForRefresh,
            mayWait(left, owner)
        else {
            return answer(.refuse(.originPaused(left, request.origin)))
        }
        let (pauses, order) = (pauses, NotificationOrder())
        let resume: @Sendable () -> Void = { [weak self] in
            self?.state.withLock { $0.hasWaited = true }
            order.second { answer(.again) }
        }
        guard let ticket = pauses.wait(for: request.origin, resume) else { return answer(.again) }
        wait.begin(order, leave: { pauses.leave(ticket, for: request.origin) }) {
            answer(.hold(.waiting(.pause, left, ", because the server asked clients to wait")))
        }
    }

    override func maySend(_ number: Int) -> Bool {
        guard let origin = state.withLock({ $0.origin }) else { return true }
        return pauses.left(for: origin, hasWaited: true) == nil
    }

    /// Returns whether the attempt can wait, within its total waiting time and the deadline of the operation.
    private func mayWait(_ left: Duration, _ owner: any AttemptOwner) -> Bool {
        let (now, attempt) = (pauses.clock.now, owner.attemptCount)
        let began = state.withLock { state in
            if state.began?.attempt != attempt { state.began = (attempt, now) }
            return state.began?.at ?? now
        }
        if began.duration(to: now) + left > pauses.longest { return false }
        return owner.timeLeft(at: owner.clock.now).map { left < $0 } ?? true
    }

    override func forget() { wait.end() }
}

extension NetworkError {
    fileprivate static func originPaused(_ left: Duration, _ origin: RequestOrigin) -> NetworkError {
        var error = NetworkError(
            code: .originPaused, phase: .waiting,
            message: "\(origin.name) asked clients to wait. Try again after the time in retryAfter.")
        error.retryAfter = left
        return error
    }
}
