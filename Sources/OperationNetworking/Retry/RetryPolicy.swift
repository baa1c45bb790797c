// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A policy that decides whether a failed request may be sent again.
///
/// A ``RetryBackoff`` determines the pauses, and a ``RetryBudget`` limits the total number of retries. A request is
/// sent again if all of these conditions are true:
///
/// 1. One of the ``rules`` matches the failure. The text of the rule says why another attempt may succeed.
/// 2. The request can safely be sent twice, because its method is one of ``methods``, it has an `Idempotency-Key`, or
///    no part of it was sent.
/// 3. The number of attempts is below ``maximumAttempts``, and the next attempt begins within ``window`` of the first.
/// 4. The body can be sent again, or the session has not requested it yet.
///
/// ```swift
/// var policy = RetryPolicy.standard
/// policy.maximumAttempts = 5
/// policy.decide = { attempt in
///     attempt.error.status == 404 ? .again : .asPolicySays
/// }
/// ```
public struct RetryPolicy: Sendable {
    /// The maximum number of attempts, including the first one.
    ///
    /// The default is 3. A value below 1 counts as 1.
    ///
    /// A download makes progress if its last attempt wrote at least 64 KiB more to disk than the attempts before it.
    /// After progress, the count of attempts starts again from that attempt, and the ``window`` begins when that
    /// attempt failed.
    public var maximumAttempts = 3
    /// The time after the start of the first attempt within which every other attempt must begin.
    ///
    /// The default is 60 seconds. If the value is `nil`, the time does not limit the attempts.
    ///
    /// The window starts with the preparation of the first attempt. The window includes everything until the next
    /// attempt begins, such as a call of ``decide`` and the preparation of that attempt. The window does not advance
    /// while the operation is suspended, or waits for anything other than the retry pause, such as the network or a
    /// credential.
    public var window: Duration? = .seconds(60)
    /// The HTTP methods of requests that a server can safely process twice.
    ///
    /// The default is `GET`, `HEAD`, `OPTIONS`, `TRACE`, `PUT` and `DELETE`. If the value is `nil`, every method counts
    /// as safe.
    public var methods: Set<String>? = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]
    /// The rules for the failures after which a request is sent again.
    ///
    /// The policy applies the first rule that matches the failure. The default is ``RetryRule/standard``.
    public var rules = RetryRule.standard
    /// The longest pause that the policy accepts from a server in `Retry-After`.
    ///
    /// The default is 60 seconds. If the server asks for a longer pause, the operation fails immediately, because an
    /// earlier attempt would ignore the server's request. The operation also fails immediately if the remaining
    /// ``window`` or the time until the deadline is shorter than the pause.
    public var longestRetryAfter: Duration = .seconds(60)
    /// A closure that decides whether an attempt that failed is followed by another attempt.
    ///
    /// The default is `nil`, which leaves the decision to the policy. The operation calls the closure after every
    /// failure, with these exceptions:
    ///
    /// - The operation was canceled, or its session is closed or unavailable.
    /// - The ``window`` ended while the next attempt was prepared.
    /// - Another part of the operation handles the failure first, such as a rejected credential or a lost network.
    ///
    /// The closure can take as long as it needs. Canceling the operation cancels the task of the closure. The number of
    /// attempts, the window, the deadline, the body and the budget also limit the closure's decision. The ``rules``,
    /// the ``methods`` and the limits of single rules do not limit it.
    ///
    /// `.again` waits for the pause that the policy would choose. That pause is longer after a failure that indicates
    /// an overloaded server, and never shorter than the server asks for. The limit in ``longestRetryAfter`` applies.
    /// `.again(after:)` waits for exactly the pause that you pass, regardless of the pause that the server asks for in
    /// ``NetworkError/retryAfter``. The operation releases the closure when it ends.
    public var decide: (@Sendable (FailedAttempt) async -> RetryAnswer)?

    /// Creates the standard policy.
    public init() {}

    /// A policy that allows three attempts within a minute for requests that can safely be sent twice.
    public static let standard = RetryPolicy()

    /// A policy that retries requests regardless of their method.
    ///
    /// Use this policy for services that can safely carry out every request twice.
    public static let anyMethod: RetryPolicy = {
        var policy = RetryPolicy()
        policy.methods = nil
        return policy
    }()

    /// The first rule that matches a failure.
    func rule(for error: NetworkError) -> RetryRule? { rules.first { $0.matches(error) } }

    /// Returns the reason not to send a request again, judged by its failure and the request itself.
    ///
    /// The result is `nil` if the request may be sent again. The method does not call ``decide``.
    func objection(to attempt: FailedAttempt, _ rule: RetryRule?, uses: [RetryRule: Int]) -> RetryReason? {
        guard let rule else { return .notWorthwhile }
        if rule.needsKey, !attempt.hasIdempotencyKey { return .notWorthwhile }
        if let limit = rule.limit, uses[rule, default: 0] >= limit { return .notWorthwhile }
        return mayRepeat(attempt) ? nil : .notIdempotent
    }

    private func mayRepeat(_ attempt: FailedAttempt) -> Bool {
        if attempt.error.isUnsent || attempt.hasIdempotencyKey { return true }
        guard let methods, let method = attempt.request?.method else { return true }
        return methods.contains(method)
    }
}

/// A strategy that determines how long an operation waits before it sends a request again.
///
/// ```swift
/// let patient = RetryBackoff.exponential(from: .seconds(1), upTo: .seconds(60))
/// let even = RetryBackoff.constant(.seconds(5), jitter: .none)
/// ```
///
/// A pause is never negative and never longer than ``longest``. The calculation does not overflow, regardless of the
/// number of attempts.
public struct RetryBackoff: Sendable, Hashable {
    private enum Growth: Sendable, Hashable {
        case constant
        case linear
        case exponential(multiplier: Double)
    }

    /// The pause after the first attempt, before jitter is applied.
    ///
    /// If the backoff is constant, setting this property also sets ``longest``.
    public var base: Duration {
        didSet {
            // A constant backoff has no upper bound besides its base.
            if growth == .constant { longest = base }
        }
    }
    /// The longest possible pause.
    public var longest: Duration
    /// The jitter that randomizes the pauses.
    public var jitter: RetryJitter
    private var growth: Growth

    /// Creates a backoff whose pauses all have the same upper bound.
    ///
    /// With the default jitter, each pause is a random time up to `pause`. With `jitter: .none`, each pause is exactly
    /// `pause`.
    public static func constant(_ pause: Duration, jitter: RetryJitter = .full) -> RetryBackoff {
        RetryBackoff(base: pause, longest: pause, jitter: jitter, growth: .constant)
    }

    /// Creates a backoff whose pauses grow by `base` after each attempt.
    public static func linear(
        from base: Duration, upTo longest: Duration = .seconds(20), jitter: RetryJitter = .full
    ) -> RetryBackoff {
        RetryBackoff(base: base, longest: longest, jitter: jitter, growth: .linear)
    }

    /// Creates a backoff whose pauses are multiplied by `multiplier` after each attempt.
    ///
    /// A multiplier that is less than 1 or not a number counts as 1.
    public static func exponential(
        from base: Duration, upTo longest: Duration = .seconds(20), multiplier: Double = 2, jitter: RetryJitter = .full
    ) -> RetryBackoff {
        RetryBackoff(
            base: base, longest: longest, jitter: jitter,
            growth: .exponential(multiplier: multiplier >= 1 ? multiplier : 1))
    }

    /// A backoff that starts at half a second and doubles after each attempt, up to 20 seconds.
    ///
    /// Full jitter makes each pause a random time between zero and that value.
    public static let standard = exponential(from: .milliseconds(500))

    /// A backoff that starts at one second, for servers that report that they are overloaded.
    public static let throttled = exponential(from: .seconds(1))

    /// Returns the pause after a failed attempt.
    ///
    /// - Parameters:
    ///   - attempt: The number of the attempt that failed. The first attempt has the number 1.
    ///   - previous: The pause before that attempt, or `nil` after the first attempt.
    ///   - chance: A random number from 0 to 1 that selects the pause within the bounds that ``jitter`` sets.
    public func pause(after attempt: Int, previous: Duration? = nil, chance: Double) -> Duration {
        let longest = Self.seconds(longest)
        let base = min(Self.seconds(base), longest)
        let bound = min(grown(base, by: max(attempt, 1) - 1), longest)
        let chance = chance >= 0 ? min(chance, 1) : 0
        let seconds = jitter.spread(
            bound, base: base, previous: previous.map(Self.seconds), longest: longest, by: chance)
        return .nanoseconds(Int64(min(seconds * 1e9, 9e18)))
    }

    private func grown(_ base: Double, by steps: Int) -> Double {
        // A base of zero does not grow. This check also keeps an infinite factor from producing NaN.
        guard base > 0 else { return 0 }
        return switch growth {
        case .constant: base
        case .linear: base * (Double(steps) + 1)
        case .exponential(let multiplier): base * power(multiplier, steps)
        }
    }

    private func power(_ base: Double, _ exponent: Int) -> Double {
        var (result, square, rest) = (1.0, base, exponent)
        while rest > 0 {
            if rest & 1 == 1 { result *= square }
            square *= square
            rest >>= 1
        }
        return result
    }

    /// Returns a duration in seconds, never negative and never infinite.
    private static func seconds(_ duration: Duration) -> Double {
        let (seconds, attoseconds) = max(duration, .zero).clamped.components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}

/// A way to randomize the pauses, so that requests that fail at the same time are not sent again at the same time.
public struct RetryJitter: Sendable, Hashable {
    private enum Kind: Sendable, Hashable { case none, full, equal, decorrelated }

    private let kind: Kind

    /// No randomization, for tests and for servers that distribute the requests themselves.
    public static let none = RetryJitter(kind: .none)
    /// A random pause between zero and the full pause, which causes the fewest requests in total under load.
    public static let full = RetryJitter(kind: .full)
    /// Half of the pause, plus a random time up to the other half.
    public static let equal = RetryJitter(kind: .equal)
    /// A random pause between the first pause and three times the previous pause, which replaces the growth of the
    /// backoff.
    public static let decorrelated = RetryJitter(kind: .decorrelated)

    func spread(_ bound: Double, base: Double, previous: Double?, longest: Double, by chance: Double) -> Double {
        switch kind {
        case .none: return bound
        case .full: return bound * chance
        case .equal: return bound / 2 + bound / 2 * chance
        case .decorrelated:
            let top = max((previous ?? base) * 3, base)
            return min(base + (top - base) * chance, longest)
        }
    }
}

/// A limit on the number of requests that operations may send again, so that many failures do not overload a server.
///
/// A budget keeps a separate allowance for each origin (scheme, host and port). All operations that use the budget
/// share these allowances. By default, every ten first attempts within ten seconds allow two retries. In addition, the
/// allowance includes a reserve of ten retries, which refills by one retry per second. Operations do not wait for an
/// allowance. An operation that gets no allowance fails with the error it already has.
///
/// A budget has an effect only if operations share it. Store a budget of your own where all operations can use it, and
/// do not create one for each operation. After an hour without a request to an origin, the budget may reset the
/// allowance for that origin.
///
/// ```swift
/// enum Budgets {
///     static let generous = RetryBudget(share: 0.5, reserve: 100)
/// }
/// ```
public final class RetryBudget: Sendable {
    private struct Books {
        var allowances: [RequestOrigin: RetryAllowance] = [:]
        /// The number of origins at which the budget removes the allowances that are no longer needed.
        var limit = 64
    }

    /// The budget that all operations without another budget share in this process.
    ///
    /// This budget uses the system clock. Tests that run in parallel share this budget, too. Give each operation or
    /// network base under test its own budget.
    public static let shared = RetryBudget()

    private let terms: RetryTerms
    private let clock: any OperationClock
    private let books = Locked(Books())

    /// Creates a budget.
    ///
    /// - Parameters:
    ///   - share: The number of retries that each first attempt allows. The default is 0.2.
    ///   - window: The time after which an earned share expires. The default is 10 seconds.
    ///   - reserve: The number of retries that are allowed without any first attempt. The default is 10.
    ///   - refillPerSecond: The number of retries by which the reserve refills each second. The default is 1.
    ///   - clock: The clock that the budget reads. The default is the system clock.
    public init(
        share: Double = 0.2, window: Duration = .seconds(10), reserve: Int = 10, refillPerSecond: Double = 1,
        clock: any OperationClock = .system
    ) {
        self.clock = clock
        terms = RetryTerms(share: share, window: window, reserve: reserve, refillPerSecond: refillPerSecond)
    }

    /// Records that a request is sent to an origin for the first time.
    package func earn(for origin: RequestOrigin) {
        withAllowance(of: origin) { $0.earn(terms, now: $1) }
    }

    /// Spends an allowance for sending a request to an origin again, and returns whether there was one.
    package func spend(for origin: RequestOrigin) -> Bool {
        withAllowance(of: origin) { $0.spend(terms, now: $1) }
    }

    /// Returns the allowance of a request that was not sent after all.
    package func refund(for origin: RequestOrigin) {
        withAllowance(of: origin) { $0.refund(terms, now: $1) }
    }

    /// Returns the number of requests that could be sent again to an origin now.
    package func left(for origin: RequestOrigin) -> Int {
        withAllowance(of: origin) { $0.left(terms, now: $1) }
    }

    /// The number of origins for which the budget keeps an allowance.
    package var originCount: Int { books.withLock { $0.allowances.count } }

    /// Returns the number of retries that the budget currently allows for the origin of a URL.
    ///
    /// - Returns: The number of retries, or `nil` if the URL has no origin to which a request can be sent.
    public func left(for url: URL) -> Int? {
        RequestOrigin(of: url).map { left(for: $0) }
    }

    private func withAllowance<Result>(
        of origin: RequestOrigin, _ body: (inout RetryAllowance, OperationInstant) -> Result
    ) -> Result {
        // Read the clock outside the lock, because it may be an implementation by the app.
        let now = clock.now
        return books.withLock { books in
            if books.allowances[origin] == nil, books.allowances.count >= books.limit { tidy(&books, now) }
            return body(&books.allowances[origin, default: RetryAllowance(terms, now: now)], now)
        }
    }

    /// Removes the origins that were not used recently.
    ///
    /// The more origins there are, the less often the budget does this.
    private func tidy(_ books: inout Books, _ now: OperationInstant) {
        books.allowances = books.allowances.filter { _, allowance in
            var allowance = allowance
            return !allowance.isForgettable(terms, now: now)
        }
        books.limit = max(64, books.allowances.count * 2)
    }
}
