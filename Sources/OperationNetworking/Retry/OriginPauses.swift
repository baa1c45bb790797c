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
