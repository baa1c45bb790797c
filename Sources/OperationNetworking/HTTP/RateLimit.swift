// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

/// A limit on the number of requests that operations or sessions send in a period of time.
///
/// For example, a service might accept 20 requests per second and reject further requests with the status code 429. The
/// following rate limit delays the requests that would exceed 20 requests per second:
///
/// ```swift
/// func shop(at url: URL) -> NetworkBase {
///     NetworkBase(url) { shop in
///         shop.rateLimit = .perSecond(20, burst: 5)
///     }
/// }
/// ```
///
/// A rate limit contains up to `burst` tokens, and replaces used tokens at a steady rate. Each request takes one token,
/// including each retry, each redirect and each request with a credential after a challenge. If no token is available,
/// a request waits. Waiting requests get tokens in the order in which they began to wait. However, requests that follow
/// a redirect, respond to a challenge or refresh a credential get tokens first.
///
/// While an operation waits for a token before an attempt, it releases its slot in the queue, so that another operation
/// can start. However, the operation keeps its slot while a request that follows a redirect or a challenge waits. If
/// the session has a cache, the operation also keeps its slot while a `GET` or `HEAD` request waits. If you cancel or
/// suspend a waiting operation, the operation does not take a token.
///
/// You can set a limit as ``NetworkBase/rateLimit``, ``AnyNetworkOperation/rateLimit`` or
/// ``ExchangeConfiguration/rateLimit``. If you set the same object in several places, all requests in these places
/// share the limit. If an operation or its base has a limit, the limit of the session does not apply to the operation's
/// requests.
public final class RateLimit: Sendable {
    /// A permission to send one request.
    package struct Token: Sendable {
        fileprivate let limit: RateLimit
        fileprivate let key: String
        fileprivate let takenAt: OperationInstant

        /// Returns the token to the limit because the request is not sent.
        package func giveBack() { limit.giveBack(self) }

        /// Returns whether the token is valid for requests to an origin under a limit.
        package func isGood(for origin: RequestOrigin, of limit: RateLimit) -> Bool {
            self.limit === limit && key == limit.key(of: origin)
        }

        /// Whether the limit may have filled up with other tokens since this one was taken.
        package var isStale: Bool { takenAt.duration(to: limit.clock.now) > limit.fillTime }
    }

    /// The position of a request in the queue of its limit.
    package struct Ticket: Sendable {
        fileprivate let limit: RateLimit
        fileprivate let key: String
        fileprivate let number: UInt64

        /// Leaves the queue, and returns `false` if the request already got its token.
        package func leave() -> Bool { limit.leave(self) }
    }

    /// The result of a request for a token.
    package enum Admission: Sendable {
        case granted(Token)
        /// The request waits for this duration unless others go first, or `nil` if the time is out of range.
        case waits(Ticket, for: Duration?)
    }

    /// A closure that receives the time of its turn.
    private typealias Waiter = @Sendable (OperationInstant) -> Void

    private struct State {
        /// The requests that are counted together, by host, and the entries of their lanes in the heap.
        var lanes: [String: (machine: RateLimitMachine<Waiter>, entry: (name: UInt64, due: OperationInstant)?)] = [:]
        /// The lanes with waiting requests, ordered by the time of their next token.
        var next = TimerHeap<String>()
        var lastNumber: UInt64 = 0
        /// The number of lanes at which unused ones are removed.
        var maximumCount = 64

        /// Modifies a lane in place, because a copy of its queue would take time in proportion to the queue's length.
        ///
        /// - Returns: The result, and the calls for the requests that get a token after the change.
        mutating func change<Result>(
            _ key: String, _ now: OperationInstant, _ body: (inout RateLimitMachine<Waiter>) -> Result
        ) -> (result: Result?, calls: [@Sendable () -> Void]) {
            guard var lane = lanes.removeValue(forKey: key) else { return (nil, []) }
            let result = body(&lane.machine)
            let granted = lane.machine.grant(now: now)
            let due = lane.machine.due(now: now)
            // Another waiting request does not change the time of the first one. An entry that was due is never kept,
            // because its request got the token.
            if due != lane.entry?.due {
                if let entry = lane.entry { _ = next.remove(entry.name) }
                lane.entry = due.map { (next.insert(key, due: $0), $0) }
            }
            lanes[key] = lane
            return (result, granted.map { granted in { granted(now) } })
        }

        /// Returns the calls for the requests whose token is available.
        mutating func timePassed(now: OperationInstant) -> [@Sendable () -> Void] {
            next.takeDue(at: now).flatMap { change($0, now) { _ in }.calls }
        }
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
    private let state: GateShell<State>

    /// Creates a limit on the number of requests in a period of time.
    ///
    /// - Parameters:
    ///   - count: The maximum average number of requests in a period. A value less than 1 is treated as 1.
    ///   - period: The length of the period to which `count` applies.
    ///   - burst: The maximum number of requests that can be sent immediately after a time without requests. The
    ///     default is 1, which spaces all requests evenly.
    ///   - isPerHost: A Boolean value that indicates whether the limit applies to each host separately. The default is
    ///     `false`, which counts the requests to all hosts together.
    ///   - clock: The clock that measures the period. The default is the system clock.
    public init(
        _ count: Int, per period: Duration, burst: Int = 1, perHost isPerHost: Bool = false,
        clock: any OperationClock = .system
    ) {
        (self.count, self.period, self.burst) = (max(count, 1), max(period, .nanoseconds(1)).clamped, max(burst, 1))
        self.isPerHost = isPerHost
        self.clock = clock
        state = GateShell(State(), clock: clock, nextDue: \.next.nextDue) { state, now, _ in
            state.timePassed(now: now)
        }
    }

    /// Creates a limit on the number of requests per second.
    ///
    /// - Parameters:
    ///   - count: The maximum average number of requests per second. A value less than 1 is treated as 1.
    ///   - burst: The maximum number of requests that can be sent immediately after a time without requests. The
    ///     default is 1, which spaces all requests evenly.
    ///   - isPerHost: A Boolean value that indicates whether the limit applies to each host separately. The default is
    ///     `false`, which counts the requests to all hosts together.
    ///   - clock: The clock that measures the period. The default is the system clock.
    public static func perSecond(
        _ count: Int, burst: Int = 1, perHost isPerHost: Bool = false, clock: any OperationClock = .system
    ) -> RateLimit {
        RateLimit(count, per: .seconds(1), burst: burst, perHost: isPerHost, clock: clock)
    }

    /// The number of requests that are currently waiting for a token.
    package var waitingCount: Int { state.withLock { $0.lanes.values.reduce(0) { $0 + $1.machine.waitingCount } } }

    /// The number of hosts whose tokens the limit tracks.
    package var laneCount: Int { state.withLock { $0.lanes.count } }

    /// The time until all tokens are available again.
    private var fillTime: Duration { TokenBucket(count, per: period, burst: burst, now: clock.now).fillTime }

    /// The name of the lane of a request.
    private func key(of origin: RequestOrigin) -> String { isPerHost ? origin.place.host : "" }

    /// Requests a token.
    ///
    /// - Parameters:
    ///   - origin: The origin to which the request is sent.
    ///   - isAhead: Whether the request goes before all other waiting requests.
    ///   - granted: A closure that receives the token if the request has to wait, unless the ticket leaves the queue
    ///     before. The closure must not run code of the app on the calling thread, which may belong to another request.
    package func take(
        for origin: RequestOrigin, isAhead: Bool, _ granted: @escaping @Sendable (Token) -> Void
    ) -> Admission {
        let key = key(of: origin)
        return state.apply { state, now, _ in
            if state.lanes[key] == nil { makeLane(key, &state, now) }
            let number = state.lastNumber + 1
            let (admission, calls) = state.change(key, now) { machine -> Admission? in
                if machine.take(now: now) { return nil }
                // The request retains the limit until it gets a token or leaves, because the limit sets the timer.
                let turn = machine.wait(
                    { granted(Token(limit: self, key: key, takenAt: $0)) }, number, isAhead: isAhead, now: now)
                return .waits(Ticket(limit: self, key: key, number: number), for: turn.map { now.duration(to: $0) })
            }
            state.lastNumber = number
            return ((admission ?? nil) ?? .granted(Token(limit: self, key: key, takenAt: now)), calls)
        }
    }

    private func leave(_ ticket: Ticket) -> Bool {
        // The closure of the request is released here, without holding the lock.
        (state.apply { state, now, _ in state.change(ticket.key, now) { $0.leave(ticket.number) } } ?? nil) != nil
    }

    private func giveBack(_ token: Token) {
        _ = state.apply { state, now, _ in state.change(token.key, now) { $0.giveBack(now: now) } }
    }

    private func makeLane(_ key: String, _ state: inout State, _ now: OperationInstant) {
        if state.lanes.count >= state.maximumCount {
            // A lane that has all its tokens is equal to a new lane.
            state.lanes = state.lanes.filter { _, lane in
                var machine = lane.machine
                return !machine.isUnused(now: now)
            }
            state.maximumCount = max(64, state.lanes.count * 2)
        }
        state.lanes[key] = (RateLimitMachine(bucket: TokenBucket(count, per: period, burst: burst, now: now)), nil)
    }
}

extension RateLimit: CustomStringConvertible {
    /// A description of the limit, such as "20 requests per second".
    public var description: String {
        let unit = period == .seconds(1) ? "second" : "\(period)"
        return "\(count) \(count == 1 ? "request" : "requests") per \(unit)" + (isPerHost ? " and host" : "")
    }
}

/// The rate limit that a request carries to its exchange, with the token that its operation waited for.
package final class RatePass: Sendable {
    /// The limit, which also applies to each request that follows from this one.
    package let limit: RateLimit
    /// The token, and whether a task was created from the request.
    ///
    /// After that, only the exchange of the task may return the token.
    private let state: Locked<(token: RateLimit.Token?, isSent: Bool)>

    package init(_ limit: RateLimit, _ token: RateLimit.Token? = nil) {
        self.limit = limit
        state = Locked((token, false))
    }

    /// Records that a task was created from the request.
    package func markSent() { state.withLock { $0.isSent = true } }

    /// Takes the token back, unless a task was created from the request.
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

/// The requests that wait for the tokens of one bucket, as a value that receives the time and has no clock.
package struct RateLimitMachine<Waiter: Sendable>: Sendable {
    private var bucket: TokenBucket
    /// The requests that go before all others, and the others.
    private var (ahead, line) = (ForgettingList<Waiter>(), ForgettingList<Waiter>())

    package init(bucket: TokenBucket) {
        self.bucket = bucket
    }

    package var waitingCount: Int { ahead.count + line.count }

    /// Takes a token, unless others wait for one.
    package mutating func take(now: OperationInstant) -> Bool { waitingCount == 0 && bucket.take(now: now) }

    /// Adds a waiting request.
    ///
    /// Each number is higher than all earlier numbers.
    ///
    /// - Returns: The time of the request's turn, unless others go first, or `nil` if the time is out of range.
    package mutating func wait(
        _ waiter: Waiter, _ number: UInt64, isAhead: Bool, now: OperationInstant
    ) -> OperationInstant? {
        if isAhead { ahead.append(waiter, id: number) } else { line.append(waiter, id: number) }
        return bucket.moment(of: isAhead ? ahead.count : waitingCount, now: now)
    }

    /// Removes a waiting request, and returns `nil` if the request does not wait.
    package mutating func leave(_ number: UInt64) -> Waiter? { ahead.remove(number) ?? line.remove(number) }

    /// Returns an unused token to the bucket.
    package mutating func giveBack(now: OperationInstant) { bucket.giveBack(now: now) }

    /// Returns the requests that get a token now, in their order.
    package mutating func grant(now: OperationInstant) -> [Waiter] {
        var granted: [Waiter] = []
        while waitingCount > 0, bucket.take(now: now), let waiter = ahead.popFirst() ?? line.popFirst() {
            granted.append(waiter)
        }
        return granted
    }

    /// Returns the time of the next request's token, or `nil` if no request waits or the time is out of range.
    package mutating func due(now: OperationInstant) -> OperationInstant? {
        waitingCount == 0 ? nil : bucket.moment(of: 1, now: now)
    }

    /// Returns whether the value is equal to a new one.
    package mutating func isUnused(now: OperationInstant) -> Bool { waitingCount == 0 && bucket.isFull(now: now) }
}

/// A token bucket, whose tokens return at a steady rate up to a maximum number.
///
/// The bucket uses integers, so that rounding errors do not accumulate.
package struct TokenBucket: Sendable, Equatable {
    /// The number of tokens that return in a period.
    private let count: Int128
    /// A period in nanoseconds, which is also the amount by which one token lowers the level.
    private let period: Int128
    private let capacity: Int128
    /// The level, which rises by `count` each nanosecond.
    private var level: Int128
    /// The time of the level in nanoseconds.
    private var counted: Int64

    package init(_ count: Int, per period: Duration, burst: Int, now: OperationInstant) {
        self.count = Int128(max(count, 1))
        self.period = Int128(max(period.saturatedNanoseconds, 1))
        // Each factor is below 2^63, so that neither a product nor the sum of two can overflow.
        capacity = Int128(max(burst, 1)) * self.period
        level = capacity
        counted = now.offset.saturatedNanoseconds
    }

    /// The time until all tokens are available again.
    package var fillTime: Duration { .nanoseconds(Int64(clamping: Self.roundedUp(capacity, count))) }

    package mutating func take(now: OperationInstant) -> Bool {
        settle(now)
        guard level >= period else { return false }
        level -= period
        return true
    }

    package mutating func giveBack(now: OperationInstant) {
        settle(now)
        level = min(level + period, capacity)
    }

    /// Returns the time at which a number of tokens is available if none is taken, or `nil` if the time is out of
    /// range.
    package mutating func moment(of tokens: Int, now: OperationInstant) -> OperationInstant? {
        settle(now)
        let missing = Int128(max(tokens, 1)) * period - level
        guard missing > 0 else { return now }
        return Int64(exactly: Int128(counted) + Self.roundedUp(missing, count))
            .map { OperationInstant(offset: .nanoseconds($0)) }
    }

    package mutating func isFull(now: OperationInstant) -> Bool {
        settle(now)
        return level == capacity
    }

    private mutating func settle(_ now: OperationInstant) {
        let moment = now.offset.saturatedNanoseconds
        // If a clock runs backwards, no time is counted twice.
        guard moment > counted else { return }
        let passed = min(Int128(moment) - Int128(counted), Int128(Int64.max))
        level = min(level + passed * count, capacity)
        counted = moment
    }

    private static func roundedUp(_ dividend: Int128, _ divisor: Int128) -> Int128 {
        dividend / divisor + (dividend % divisor == 0 ? 0 : 1)
    }
}
