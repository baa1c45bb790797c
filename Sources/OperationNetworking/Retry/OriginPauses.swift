// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Leaves a whole origin alone for as long as it asked for, by an answer 429 or 503 with `Retry-After`: all operations whose
/// ``Retry`` has it wait, or fail, and not the one alone that was answered so.
///
/// It is the shell of `OriginPauseMachine`.
///
/// ```swift
/// func polite() -> Retry {
///     var retry = Retry.standard
///     retry.originPauses = .shared
///     return retry
/// }
/// ```
///
/// Off unless it is set: many services count their requests by user, key or path, and what one of them may not do for a
/// while others may. Switch it on for a service whose word is for all that you send there.
public final class OriginPauses: Sendable {
    /// What becomes of a request that is ready to leave meanwhile.
    ///
    /// More cases may be added.
    public enum Meanwhile: Sendable, Hashable {
        /// It waits until the pause is over, in its turn.
        ///
        /// One that belongs to the refresh of a credential waits for no longer than 5 seconds, and fails at once if
        /// that is not enough: others wait for it.
        case wait
        /// It fails at once, with the code `originPaused`.
        case fail
    }

    private typealias Machine = OriginPauseMachine
    package typealias Ticket = OriginPauseMachine.Ticket

    private struct State {
        var machine: Machine
        var waiters: [Ticket: @Sendable () -> Void] = [:]
    }

    /// One for the whole process, with the standard numbers.
    public static let shared = OriginPauses()

    /// What becomes of a request that is ready to leave meanwhile.
    public let meanwhile: Meanwhile
    /// The longest pause that is made of what a server asks for, and the longest time that one attempt waits so.
    public let longest: Duration
    let clock: any OperationClock
    private let state: Locked<State>

    /// Makes one.
    ///
    /// - Parameters:
    ///   - meanwhile: What becomes of a request that is ready to leave meanwhile: it waits.
    ///   - longest: The longest pause that is made of what a server asks for, and the longest time that one attempt waits
    ///     so before it fails: 60 seconds.
    ///   - pace: How those that waited go on: 10 at once, and 10 more every 100 milliseconds.
    ///   - clock: On which that is counted.
    public init(
        _ meanwhile: Meanwhile = .wait, longest: Duration = .seconds(60),
        pace: PostponementPace = PostponementPace(10, every: .milliseconds(100)), clock: any OperationClock = .system
    ) {
        self.meanwhile = meanwhile
        self.longest = max(longest, .zero).clamped
        self.clock = clock
        state = Locked(State(machine: Machine(pace: pace)))
    }

    /// For how long nothing is sent to the origin of a URL; nil if something may be now.
    public func left(for url: URL) -> Duration? { RequestOrigin(of: url).flatMap { left(for: $0) } }

    /// How many operations wait.
    public var waitingCount: Int { state.withLock { $0.waiters.count } }

    package func left(for origin: RequestOrigin, hasWaited: Bool = false) -> Duration? {
        let now = clock.now
        return state.withLock { $0.machine.left(for: origin, hasWaited: hasWaited, now: now) }
    }

    /// An origin asked to be left alone for so long.
    package func note(_ pause: Duration, for origin: RequestOrigin) {
        let now = clock.now
        let waiters = state.withLock { state in
            state.machine.note(min(pause, longest), for: origin, now: now)
                .compactMap { state.waiters.removeValue(forKey: $0) }
        }
        for askAgain in waiters { askAgain() }
    }

    /// Has somebody told when its turn has come; nil if nothing is to be waited for.
    package func wait(for origin: RequestOrigin, _ goOn: @escaping @Sendable () -> Void) -> Ticket? {
        let now = clock.now
        let (ticket, due) = state.withLock { state in
            let (ticket, due) = state.machine.wait(for: origin, now: now)
            if let ticket { state.waiters[ticket] = goOn }
            return (ticket, due)
        }
        if let due { call(at: due, origin) }
        return ticket
    }

    /// Waits no longer.
    package func leave(_ ticket: Ticket) {
        let waiter = state.withLock { state in
            state.machine.leave(ticket)
            return state.waiters.removeValue(forKey: ticket)
        }
        withExtendedLifetime(waiter) {}
    }

    private func call(at due: OperationInstant, _ origin: RequestOrigin) {
        _ = clock.schedule(at: due) { [weak self] in self?.passTime(origin) }
    }

    private func passTime(_ origin: RequestOrigin) {
        let now = clock.now
        let (waiters, due) = state.withLock { state in
            let (tickets, due) = state.machine.passTime(for: origin, now: now)
            return (tickets.compactMap { state.waiters.removeValue(forKey: $0) }, due)
        }
        if let due { call(at: due, origin) }
        for goOn in waiters { goOn() }
    }
}

/// Which origins are left alone and until when, and who waits for that: a pure value, told the time.
///
/// For each origin somebody has to say when a time has come, as long as somebody waits there.
package struct OriginPauseMachine: Sendable {
    /// One that waits.
    package struct Ticket: Sendable, Hashable {
        let origin: RequestOrigin
        /// Which pause of the origin it was: each has a line of its own.
        let pause: UInt64
        let number: UInt64
    }

    private struct Pause: Sendable {
        let serial: UInt64
        var until: OperationInstant
        /// Until when those in the line were told that it lasts.
        var told: OperationInstant
        var line = TicketLine()
        /// When the next of the line may go; nil if no time is set for that.
        var nextRelease: OperationInstant?
    }

    /// By so much longer it lasts before those that wait are asked whether they still do.
    private static let worthTelling = Duration.seconds(1)

    private var pauses: [RequestOrigin: Pause] = [:]
    private var begun: UInt64 = 0
    private let pace: PostponementPace

    package init(pace: PostponementPace) {
        self.pace = pace
    }

    /// How many origins it knows.
    package var count: Int { pauses.count }

    /// How long an origin is still left alone; nil if it is not.
    ///
    /// - Parameters:
    ///   - origin: Which.
    ///   - hasWaited: Whether its turn has come for who asks. Others come after those who still wait for theirs.
    ///   - now: The time.
    package func left(
        for origin: RequestOrigin, hasWaited: Bool = false, now: OperationInstant
    ) -> Duration? {
        guard let pause = pauses[origin] else { return nil }
        if now < pause.until { return now.duration(to: pause.until) }
        guard !hasWaited, !pause.line.isEmpty, let next = pause.nextRelease else { return nil }
        return max(now.duration(to: next), .zero)
    }

    /// An origin asked for a pause; returns those that wait already, if that is longer than they were told: they ask again.
    package mutating func note(_ pause: Duration, for origin: RequestOrigin, now: OperationInstant) -> [Ticket] {
        // What is over, keeps nobody up and is not looked at any more is forgotten.
        pauses = pauses.filter { now < $0.value.until || $0.value.nextRelease != nil }
        let until = now.advanced(by: pause)
        guard pause > .zero, pauses[origin].map({ $0.until < until }) ?? true else { return [] }
        if pauses[origin] == nil { begun += 1 }
        var known = pauses[origin] ?? Pause(serial: begun, until: until, told: until)
        known.until = until
        // The time that is set finds that it is too early.
        if known.nextRelease != nil { known.nextRelease = until }
        let asksAgain = known.told.duration(to: until) > Self.worthTelling
        if asksAgain { known.told = until }
        let told = asksAgain ? known.line.takeAll() : []
        pauses[origin] = known
        return told.map { Ticket(origin: origin, pause: known.serial, number: $0) }
    }

    /// Somebody waits; nil if nothing is to be waited for.
    package mutating func wait(
        for origin: RequestOrigin, now: OperationInstant
    ) -> (ticket: Ticket?, due: OperationInstant?) {
        // While the line is let go one after the other, whoever comes now comes after it.
        guard var pause = pauses[origin], now < pause.until || !pause.line.isEmpty else { return (nil, nil) }
        let ticket = Ticket(origin: origin, pause: pause.serial, number: pause.line.append())
        let isFirst = pause.nextRelease == nil
        if isFirst { pause.nextRelease = pause.until }
        pauses[origin] = pause
        return (ticket, isFirst ? pause.until : nil)
    }

    /// It waits no longer.
    package mutating func leave(_ ticket: Ticket) {
        guard pauses[ticket.origin]?.serial == ticket.pause else { return }
        pauses[ticket.origin]?.line.remove(ticket.number)
    }

    /// A time has come: who goes, and when the next one comes.
    package mutating func passTime(
        for origin: RequestOrigin, now: OperationInstant
    ) -> (released: [Ticket], due: OperationInstant?) {
        guard var pause = pauses[origin], let due = pause.nextRelease else { return ([], nil) }
        guard due <= now else { return ([], due) }
        let released = pause.line.take(pace.count).map { Ticket(origin: origin, pause: pause.serial, number: $0) }
        pause.nextRelease = pause.line.isEmpty ? nil : now.advanced(by: pace.interval)
        pauses[origin] = pause
        if pause.line.isEmpty, pause.until <= now { pauses[origin] = nil }
        return (released, pause.nextRelease)
    }
}

/// Holds the requests of one operation back while their origin is to be left alone.
final class PauseGate: AttemptGate {
    private struct State {
        var ticket: OriginPauses.Ticket?
        /// Since when it is held back, again and again, for the present attempt.
        var began: (attempt: Int, at: OperationInstant)?
        /// Its turn has come, and it asks once more.
        var hasWaited = false
        /// Where the request goes that may leave.
        var origin: RequestOrigin?
        var isForgotten = false
    }

    private let pauses: OriginPauses
    private let state = Locked(State())

    /// How long a request waits for which others wait, since it is for a refresh.
    private static var longestOfRefresh: Duration { .seconds(5) }

    init(_ pauses: OriginPauses) {
        self.pauses = pauses
    }

    var rank: Int { AttemptRank.pause }

    func clear(
        _ request: NetworkRequest, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptClearance) -> Void
    ) {
        let hasWaited = state.withLock { exchange(&$0.hasWaited, with: false) }
        state.withLock { $0.origin = request.origin }
        guard let left = pauses.left(for: request.origin, hasWaited: hasWaited) else { return answer(.go(request)) }
        // Many wait for a refresh, and for no longer than its own limit: they learn at once where it would take long.
        guard pauses.meanwhile == .wait, left <= Self.longestOfRefresh || !host.networkAttempts.isForRefresh,
            mayWait(left, host)
        else {
            return answer(.refuse(.originPaused(left, request.origin)))
        }
        let turns = TurnTaking()
        let goOn: @Sendable () -> Void = { [weak self] in
            self?.state.withLock { ($0.ticket, $0.hasWaited) = (nil, true) }
            turns.second { answer(.again) }
        }
        guard let ticket = pauses.wait(for: request.origin, goOn) else {
            return answer(.again)
        }
        let isForgotten = state.withLock { state in
            state.ticket = ticket
            return state.isForgotten
        }
        if isForgotten { pauses.leave(ticket) }
        turns.first { answer(.hold(.originPause(left))) }
    }

    func mayLeave(_ number: Int) -> Bool {
        guard let origin = state.withLock({ $0.origin }) else { return true }
        return pauses.left(for: origin, hasWaited: true) == nil
    }

    /// Whether the attempt would not wait for too long in all, nor for longer than the operation has.
    private func mayWait(_ left: Duration, _ host: any AttemptHost) -> Bool {
        let (now, attempt) = (pauses.clock.now, host.attemptCount)
        let began = state.withLock { state in
            if state.began?.attempt != attempt { state.began = (attempt, now) }
            return state.began?.at ?? now
        }
        if began.duration(to: now) + left > pauses.longest { return false }
        return host.timeLeft(at: host.clock.now).map { left < $0 } ?? true
    }

    func forget() {
        let ticket = state.withLock { state in
            state.isForgotten = true
            return exchange(&state.ticket, with: nil)
        }
        if let ticket { pauses.leave(ticket) }
    }
}

extension AttemptRank {
    /// The origin is to be left alone.
    package static let pause = 25
}

extension WaitReason {
    fileprivate static func originPause(_ left: Duration) -> WaitReason {
        let tenths = left.saturatedNanoseconds / 100_000_000
        return WaitReason(.pause, "waiting \(tenths / 10).\(tenths % 10) s, for the server asked all to")
    }
}

extension NetworkError {
    fileprivate static func originPaused(_ left: Duration, _ origin: RequestOrigin) -> NetworkError {
        var error = NetworkError(
            code: .originPaused, phase: .waiting,
            message:
                "\(origin.name) asked to be left alone for a while. Try again later (retryAfter), or allow more time.")
        error.retryAfter = left
        return error
    }
}
