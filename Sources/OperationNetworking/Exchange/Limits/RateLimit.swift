// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

/// A limit on how many requests are sent in a time, with a burst.
///
/// Many services allow 20 requests per second, and answer the next one with the status 429. A limit on how many operations
/// run at the same time does not help: eight fast requests at a time are easily more than 20 per second. A rate limit lets
/// each request wait until it may be sent:
///
/// ```swift
/// func shop(at url: URL) -> NetworkBase {
///     NetworkBase(url) { shop in
///         shop.rateLimit = .perSecond(20, burst: 5)
///     }
/// }
/// ```
///
/// Each request that is sent takes one token: each attempt, each redirect that is followed and each response to a challenge.
/// Tokens return at a steady rate, and the limit keeps at most `burst` of them. Requests get their tokens in the order in
/// which they asked. Only a redirect, a response to a challenge and a request that refreshes a credential go first.
///
/// An operation that waits gives up its slot in its queue. An operation that is canceled or suspended while it waits takes no
/// token.
///
/// A limit applies to all requests that share the object. Set the same object on two bases, and both together stay within
/// it. ``NetworkBase/rateLimit`` limits the requests of a service, ``AnyNetworkOperation/rateLimit`` those of one operation,
/// and ``ExchangeConfiguration/rateLimit`` those of a session. One limit applies to each request: the limit of its operation
/// or base, and otherwise the limit of its session.
public final class RateLimit: Sendable {
    /// The right to send one request.
    package struct Token: Sendable {
        fileprivate let limit: RateLimit
        fileprivate let key: String
        fileprivate let takenAt: OperationInstant

        /// Returns the token to the limit because the request is not sent.
        package func giveBack() { limit.giveBack(self) }

        /// Whether the token is for requests to that origin under that limit.
        package func isGood(for origin: RequestOrigin, of limit: RateLimit) -> Bool {
            self.limit === limit && key == limit.key(of: origin)
        }

        /// Whether the limit may have filled up with other tokens since this one was taken.
        package var isStale: Bool { takenAt.duration(to: limit.clock.now) > limit.fillTime }
    }

    /// The place of a request in the line of its limit.
    package struct Ticket: Sendable {
        fileprivate let limit: RateLimit
        fileprivate let key: String
        fileprivate let number: UInt64

        /// Leaves the line; false if the request got its token before.
        package func leave() -> Bool { limit.leave(self) }
    }

    /// The answer to a request that asks for a token.
    package enum Admission: Sendable {
        case granted(Token)
        /// The request waits, for so long unless others go first; `nil` if the moment is out of range.
        case waits(Ticket, for: Duration?)
    }

    private typealias Waiter = @Sendable (Token) -> Void

    private struct Lane {
        var machine: RateLimitMachine<Waiter>
        /// The timer for the next token.
        ///
        /// Its number tells it from an earlier one.
        var timer: (number: UInt64, due: OperationInstant, timer: (any OperationTimer)?)?
    }

    private struct State {
        /// The requests that are counted together, by host.
        var lanes: [String: Lane] = [:]
        var lastNumber: UInt64 = 0
        /// The number of lanes at which unused ones are removed.
        var maximumCount = 64

        mutating func nextNumber() -> UInt64 {
            lastNumber += 1
            return lastNumber
        }

        /// Changes a lane in place: a copy of its line would cost as much as the line is long.
        mutating func withLane<Result>(_ key: String, _ body: (inout Self, inout Lane) -> Result) -> Result? {
            guard var lane = lanes.removeValue(forKey: key) else { return nil }
            defer { lanes[key] = lane }
            return body(&self, &lane)
        }
    }

    /// What is done after the lock was released.
    private struct Consequences {
        var granted: [Waiter] = []
        var timer: (number: UInt64, due: OperationInstant)?
        var oldTimer: (any OperationTimer)?
    }

    /// Whether any session has a rate limit.
    ///
    /// Operations look at their session only then.
    package static let isUsedBySessions = Atomic(false)

    private let isPerHost: Bool
    private let clock: any OperationClock
    private let count: Int
    private let period: Duration
    private let burst: Int
    private let state = Locked(State())

    /// Creates a limit of a number of requests per period.
    ///
    /// - Parameters:
    ///   - count: How many requests may be sent in one period. Values below 1 count as 1.
    ///   - period: The length of a period. Tokens return one after another, not all at the end of a period.
    ///   - burst: How many requests may be sent immediately after a time without requests. The default is 1, which spaces
    ///     all requests evenly.
    ///   - isPerHost: Whether each host has tokens of its own. The default is `false`, which counts all requests together.
    ///   - clock: The clock that measures the time. The default is the clock of the system.
    public init(
        _ count: Int, per period: Duration, burst: Int = 1, perHost isPerHost: Bool = false,
        clock: any OperationClock = .system
    ) {
        (self.count, self.period, self.burst) = (max(count, 1), max(period, .nanoseconds(1)).clamped, max(burst, 1))
        self.isPerHost = isPerHost
        self.clock = clock
    }

    /// Creates a limit of a number of requests per second.
    ///
    /// - Parameters:
    ///   - count: How many requests may be sent in a second. Values below 1 count as 1.
    ///   - burst: How many requests may be sent immediately after a time without requests. The default is 1.
    ///   - isPerHost: Whether each host has tokens of its own. The default is `false`, which counts all requests together.
    ///   - clock: The clock that measures the time. The default is the clock of the system.
    public static func perSecond(
        _ count: Int, burst: Int = 1, perHost isPerHost: Bool = false, clock: any OperationClock = .system
    ) -> RateLimit {
        RateLimit(count, per: .seconds(1), burst: burst, perHost: isPerHost, clock: clock)
    }

    /// The number of requests that wait for a token.
    public var waitingCount: Int { state.withLock { $0.lanes.values.reduce(0) { $0 + $1.machine.waitingCount } } }

    /// How many hosts the limit remembers.
    package var laneCount: Int { state.withLock { $0.lanes.count } }

    /// How long it takes until all tokens are there again.
    private var fillTime: Duration { TokenBucket(count, per: period, burst: burst, now: clock.now).fillTime }

    /// The name of the lane of a request.
    private func key(of origin: RequestOrigin) -> String { isPerHost ? origin.place.host : "" }

    /// Asks for a token.
    ///
    /// - Parameters:
    ///   - origin: Where the request goes.
    ///   - isAhead: Whether the request goes before all others that wait.
    ///   - granted: Called with the token if the request has to wait, unless the ticket left the line before. The closure must
    ///     not run code of users on the calling thread, which may belong to another request.
    package func take(
        for origin: RequestOrigin, isAhead: Bool, _ granted: @escaping @Sendable (Token) -> Void
    ) -> Admission {
        let (key, now) = (key(of: origin), clock.now)
        let (ticket, time, consequences): (Ticket?, Duration?, Consequences) = state.withLock { state in
            if state.lanes[key] == nil { makeLane(key, &state, now) }
            return state.withLane(key) { state, lane in
                if lane.machine.take(now: now) { return (nil, nil, Consequences()) }
                let number = state.nextNumber()
                let moment = lane.machine.wait(granted, number, isAhead: isAhead, now: now)
                return (
                    Ticket(limit: self, key: key, number: number), moment.map { now.duration(to: $0) },
                    advance(&lane, &state, now)
                )
            } ?? (nil, nil, Consequences())
        }
        carryOut(consequences, key, now)
        guard let ticket else { return .granted(Token(limit: self, key: key, takenAt: now)) }
        return .waits(ticket, for: time)
    }

    private func leave(_ ticket: Ticket) -> Bool {
        var (waiter, timer): (Waiter?, (any OperationTimer)?)
        state.withLock { state in
            state.withLane(ticket.key) { _, lane in
                waiter = lane.machine.leave(ticket.number)
                if lane.machine.waitingCount == 0 { timer = exchange(&lane.timer, with: nil)?.timer }
            } ?? ()
        }
        timer?.cancel()
        return waiter != nil
    }

    private func giveBack(_ token: Token) {
        let now = clock.now
        let consequences = state.withLock { state in
            state.withLane(token.key) { state, lane in
                lane.machine.giveBack(now: now)
                return advance(&lane, &state, now)
            }
        }
        if let consequences { carryOut(consequences, token.key, now) }
    }

    private func passTime(_ key: String, _ number: UInt64) {
        let now = clock.now
        let consequences = state.withLock { state in
            state.withLane(key) { state, lane -> Consequences? in
                guard lane.timer?.number == number else { return nil }
                lane.timer = nil
                return advance(&lane, &state, now)
            } ?? nil
        }
        if let consequences { carryOut(consequences, key, now) }
    }

    /// Grants the tokens that are there, and sets the timer for the next one.
    private func advance(_ lane: inout Lane, _ state: inout State, _ now: OperationInstant) -> Consequences {
        var consequences = Consequences(granted: lane.machine.grant(now: now))
        let due = lane.machine.due(now: now)
        if let timer = lane.timer, let due, timer.due <= due { return consequences }
        consequences.oldTimer = exchange(&lane.timer, with: nil)?.timer
        if let due {
            let number = state.nextNumber()
            lane.timer = (number, due, nil)
            consequences.timer = (number, due)
        }
        return consequences
    }

    private func carryOut(_ consequences: Consequences, _ key: String, _ now: OperationInstant) {
        consequences.oldTimer?.cancel()
        if let (number, due) = consequences.timer {
            let timer = clock.schedule(at: due) { self.passTime(key, number) }
            // It may have fired already, or the last request that waited may have left.
            let isOfUse = state.withLock { state in
                state.withLane(key) { _, lane in
                    guard lane.timer?.number == number else { return false }
                    lane.timer?.timer = timer
                    return true
                } ?? false
            }
            if !isOfUse { timer.cancel() }
        }
        for granted in consequences.granted { granted(Token(limit: self, key: key, takenAt: now)) }
    }

    private func makeLane(_ key: String, _ state: inout State, _ now: OperationInstant) {
        if state.lanes.count >= state.maximumCount {
            // A lane that has all its tokens equals a new one.
            state.lanes = state.lanes.filter { _, lane in
                var machine = lane.machine
                return !machine.isUnused(now: now)
            }
            state.maximumCount = max(64, state.lanes.count * 2)
        }
        state.lanes[key] = Lane(
            machine: RateLimitMachine(bucket: TokenBucket(count, per: period, burst: burst, now: now)))
    }
}

extension RateLimit: CustomStringConvertible {
    /// The limit as a part of a sentence: "20 requests per second".
    public var description: String {
        let unit = period == .seconds(1) ? "second" : "\(period)"
        return "\(count) \(count == 1 ? "request" : "requests") per \(unit)" + (isPerHost ? " and host" : "")
    }
}

/// The rate limit that a request carries to its exchange, with the token that its operation waited for.
package final class RatePass: Sendable {
    private struct State {
        var token: RateLimit.Token?
        /// Whether a task was made of the request: then only its exchange may return the token.
        var isSent = false
    }

    /// The limit, which each request that follows from this one waits for as well.
    package let limit: RateLimit
    private let state: Locked<State>

    package init(_ limit: RateLimit, _ token: RateLimit.Token? = nil) {
        self.limit = limit
        state = Locked(State(token: token))
    }

    /// A task was made of the request.
    package func markSent() { state.withLock { $0.isSent = true } }

    /// Takes the token back, unless a task was made of the request.
    package func withdraw() -> RateLimit.Token? {
        state.withLock { $0.isSent ? nil : exchange(&$0.token, with: nil) }
    }

    /// Takes the token, for the first request of an exchange.
    package func takeToken() -> RateLimit.Token? { state.withLock { exchange(&$0.token, with: nil) } }
}

extension NetworkRequest {
    package var ratePass: RatePass? { companion.flatMap { $0 as? RatePass } }

    /// Returns the same request with a rate limit.
    package func with(_ pass: RatePass) -> NetworkRequest { with(companion: pass) }
}
