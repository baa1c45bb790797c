// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A policy that decides whether an operation sends a failed request again.
///
/// The operation sends the request again if all of these conditions are true:
///
/// 1. One of the ``rules`` matches the failure.
/// 2. The HTTP method is one of ``methods``, the request has an `Idempotency-Key` header, or the session sent no part
///    of the request.
/// 3. The number of attempts is less than ``maximumAttempts``, and the next attempt begins within the ``window`` and at
///    least one second before the operation's deadline.
/// 4. The request body can be sent more than once, or the session has not read it.
///
/// A ``RetryBackoff`` determines the pauses between attempts, and a ``RetryBudget`` limits the total number of retries.
///
/// ```swift
/// var policy = RetryPolicy()
/// policy.maximumAttempts = 5
/// policy.decide = { attempt in
///     attempt.error.status == 404 ? .again : .asPolicySays
/// }
/// ```
public struct RetryPolicy: Sendable {
    /// The maximum number of attempts to send the request, including the first attempt.
    ///
    /// The default is 3. A value less than 1 is treated as 1.
    ///
    /// A download that makes progress gets more attempts. Whenever an attempt fails after the partial file has grown by
    /// at least 64 KiB, the count of attempts and the ``window`` restart.
    public var maximumAttempts = 3
    /// The maximum time between the start of the first attempt and the start of any other attempt.
    ///
    /// The default is 60 seconds. If the value is `nil`, the time is not limited.
    ///
    /// This duration includes the pauses between attempts and the time spent preparing attempts and calling ``decide``.
    /// The duration does not include the time during which the operation is suspended or waits for a slot, a
    /// credential, the network or a rate limit.
    public var window: Duration? = .seconds(60)
    /// The HTTP methods of the requests that a server can safely process more than once.
    ///
    /// The default is `GET`, `HEAD`, `OPTIONS`, `TRACE`, `PUT` and `DELETE`. If the value is `nil`, all methods count
    /// as safe.
    public var methods: Set<String>? = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]
    /// The rules that identify the failures after which an operation sends its request again.
    ///
    /// The policy applies the first rule that matches the failure. The default is ``RetryRule/standard``.
    public var rules = RetryRule.standard
    /// The longest pause that the policy accepts from a `Retry-After` header.
    ///
    /// The default is 60 seconds. If the server requests a longer pause, the operation fails immediately. The operation
    /// also fails immediately if the pause would end after the ``window`` or less than one second before the
    /// operation's deadline.
    public var longestRetryAfter: Duration = .seconds(60)
    /// A closure that decides whether the operation makes another attempt after a failed attempt.
    ///
    /// The default is `nil`, which leaves the decision to the other properties of the policy. The operation calls the
    /// closure after each failed attempt, except in these cases:
    ///
    /// - The program canceled the operation, or the session is closed or unavailable.
    /// - The ``window`` ended while the operation prepared the next attempt.
    /// - The operation's ``OfflinePolicy`` or ``Authenticator`` handles the failure instead.
    /// - The rule of the operation's ``PostponedOperations`` list pauses the operation after the failed attempt.
    ///
    /// The closure can take any amount of time. If you cancel the operation, it cancels the Swift task that runs the
    /// closure. The closure can override the ``rules`` and the ``methods``. However, the number of attempts, the
    /// window, the deadline, the body and the budget can still prevent another attempt.
    ///
    /// If the closure returns ``RetryAnswer/again``, the backoff determines the pause, which is never shorter than the
    /// pause that the server requests. If the closure returns ``RetryAnswer/again(after:)``, the pause is exactly the
    /// specified duration, even if ``NetworkError/retryAfter`` is longer. When the operation ends, it releases the
    /// closure.
    public var decide: (@Sendable (FailedAttempt) async -> RetryAnswer)?

    /// Creates a policy with the default values.
    public init() {}

    /// A policy that allows retries for requests with any HTTP method.
    ///
    /// Use this policy only for services that can safely process any request more than once.
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

/// A strategy that determines the pauses between the attempts of an operation.
///
/// ```swift
/// let patient = RetryBackoff.exponential(from: .seconds(1), upTo: .seconds(60))
/// let even = RetryBackoff.constant(.seconds(5), jitter: .none)
/// ```
///
/// The pauses of a backoff are never negative and never longer than ``longest``. If the server requests a longer pause
/// that the policy accepts, the operation waits for at least the requested time.
public struct RetryBackoff: Sendable, Hashable {
    private enum Growth: Sendable, Hashable {
        case constant
        case linear
        case exponential(multiplier: Double)
    }

    /// The pause after the first attempt, without jitter.
    ///
    /// If the backoff is constant and you set this property, ``longest`` changes to the same value.
    public var base: Duration {
        didSet {
            // A constant backoff has no upper bound besides its base.
            if growth == .constant { longest = base }
        }
    }
    /// The maximum duration of a pause.
    public var longest: Duration
    /// The jitter that varies the pauses at random.
    public var jitter: RetryJitter
    private var growth: Growth

    /// Creates a backoff whose pauses have the same upper bound after each attempt.
    ///
    /// With the default jitter, each pause is a random time up to `pause`. With the jitter ``RetryJitter/none``, each
    /// pause is exactly `pause`.
    public static func constant(_ pause: Duration, jitter: RetryJitter = .full) -> RetryBackoff {
        RetryBackoff(base: pause, longest: pause, jitter: jitter, growth: .constant)
    }

    /// Creates a backoff whose pauses, without jitter, increase by `base` after each attempt up to `longest`.
    ///
    /// - Parameters:
    ///   - base: The pause after the first attempt, without jitter.
    ///   - longest: The maximum duration of a pause. The default is 20 seconds.
    ///   - jitter: The jitter that varies the pauses at random. The default is ``RetryJitter/full``.
    public static func linear(
        from base: Duration, upTo longest: Duration = .seconds(20), jitter: RetryJitter = .full
    ) -> RetryBackoff {
        RetryBackoff(base: base, longest: longest, jitter: jitter, growth: .linear)
    }

    /// Creates a backoff whose pauses, without jitter, increase by the factor `multiplier` after each attempt up to
    /// `longest`.
    ///
    /// - Parameters:
    ///
    ///   - base: The pause after the first attempt, without jitter.
    ///   - longest: The maximum duration of a pause. The default is 20 seconds.
    ///   - multiplier: The factor between consecutive pauses. The default is 2. A value that is less than 1 or NaN
    ///     is treated as 1.
    ///   - jitter: The jitter that varies the pauses at random. The default is ``RetryJitter/full``.
    public static func exponential(
        from base: Duration, upTo longest: Duration = .seconds(20), multiplier: Double = 2, jitter: RetryJitter = .full
    ) -> RetryBackoff {
        RetryBackoff(
            base: base, longest: longest, jitter: jitter,
            growth: .exponential(multiplier: multiplier >= 1 ? multiplier : 1))
    }

    /// A backoff in which the upper bound of the pauses is half a second at first, and doubles after each attempt until
    /// the bound reaches 20 seconds.
    ///
    /// Each pause is a random time between zero and this bound, because the jitter is ``RetryJitter/full``.
    public static let standard = exponential(from: .milliseconds(500))

    /// A backoff for servers that report an overload, which is like ``standard`` but begins with an upper bound of one
    /// second.
    public static let throttled = exponential(from: .seconds(1))

    /// Returns the pause after a failed attempt.
    ///
    /// - Parameters:
    ///   - attempt: The number of the failed attempt, starting at 1.
    ///   - previous: The pause before that attempt, or `nil` for the first attempt.
    ///   - chance: A random number from 0 to 1 that selects the pause within the bounds that ``jitter`` determines.
    package func pause(after attempt: Int, previous: Duration? = nil, chance: Double) -> Duration {
        let longest = Self.seconds(longest)
        let base = min(Self.seconds(base), longest)
        let bound = min(grown(base, by: max(attempt, 1) - 1), longest)
        let seconds = jitter.spread(
            bound, base: base, previous: previous.map(Self.seconds), longest: longest, by: chance.asChance)
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
        max(duration, .zero).clamped.seconds
    }
}

/// A way to vary the pauses of a ``RetryBackoff`` at random.
///
/// Without jitter, operations that fail at the same time would also send their requests again at the same time.
public struct RetryJitter: Sendable, Hashable {
    private enum Kind: Sendable, Hashable { case none, full, equal, decorrelated }

    private let kind: Kind

    /// A kind of jitter that does not vary the pauses, which is useful in tests.
    public static let none = RetryJitter(kind: .none)
    /// A kind of jitter that selects a random time between zero and the pause without jitter.
    ///
    /// Each ``RetryBackoff`` uses this jitter by default.
    public static let full = RetryJitter(kind: .full)
    /// A kind of jitter that selects a random time between 50 and 100 percent of the pause without jitter.
    public static let equal = RetryJitter(kind: .equal)
    /// A kind of jitter that selects a random pause between ``RetryBackoff/base`` and three times the previous pause.
    ///
    /// With this jitter, the pauses do not follow the backoff's growth.
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

/// The decisions about the failed attempts of one operation, as a value that receives the time and the random numbers.
///
/// The machine does not know the ``RetryBudget`` and does not wait.
package struct RetryMachine: Sendable {
    /// The circumstances of a decision.
    package struct Moment: Sendable {
        /// The elapsed part of the window, including the time that the user's closure took.
        let elapsed: Duration
        /// The time until the operation's deadline or the end of its timeout, or `nil` without either.
        let left: Duration?
        /// A random number from 0 to 1.
        let chance: Double

        /// Creates the circumstances, and limits the random number to the range from 0 to 1.
        package init(elapsed: Duration, left: Duration? = nil, chance: Double) {
            self.elapsed = elapsed
            self.left = left
            self.chance = chance.asChance
        }
    }

    /// The result of a decision.
    package struct Evaluation: Sendable, Equatable {
        /// The pause before the next attempt, or `nil` if there is none.
        package let pause: Duration?
        package let reason: RetryReason
        /// The rule that matches the failure, if there is one.
        package let rule: RetryRule?
    }

    private var uses: [RetryRule: Int] = [:]
    private var lastPause: Duration?

    package init() {}

    /// Decides about a failed attempt, without its budget.
    package func evaluate(
        _ attempt: FailedAttempt, _ answer: RetryAnswer, of retry: Retry, _ moment: Moment
    ) -> Evaluation {
        let rule = retry.policy.rule(for: attempt.error)
        func stop(_ reason: RetryReason) -> Evaluation { Evaluation(pause: nil, reason: reason, rule: rule) }
        guard !attempt.error.isFinal else { return stop(.notWorthwhile) }
        switch answer.kind {
        case .fail: return stop(.userSaidSo)
        case .asPolicySays:
            if let reason = retry.policy.objection(to: attempt, rule, uses: uses) { return stop(reason) }
        case .again: break
        }
        guard attempt.countedNumber < max(retry.policy.maximumAttempts, 1) else { return stop(.attemptsUsedUp) }
        let (pause, reason) = pause(attempt, answer, rule, retry, moment)
        guard let pause else { return stop(reason) }
        // Check the body last, because its error replaces the failure.
        guard attempt.request?.body.canBeSentNow != false else { return stop(.bodyNotRepeatable) }
        return Evaluation(pause: pause, reason: reason, rule: rule)
    }

    /// Returns the pause before the next attempt, or `nil` if no other attempt is possible, and the reason.
    private func pause(
        _ attempt: FailedAttempt, _ answer: RetryAnswer, _ rule: RetryRule?, _ retry: Retry, _ moment: Moment
    ) -> (pause: Duration?, reason: RetryReason) {
        var (least, extra): (Duration, Duration)
        if case .again(let wanted?) = answer.kind {
            // A closure that returns a pause knows the pause that the server asks for.
            (least, extra) = (max(wanted, .zero).clamped, .zero)
        } else {
            let asked = attempt.error.retryAfter.map { max($0, .zero).clamped }
            if let asked, asked > retry.policy.longestRetryAfter { return (nil, .askedToWaitTooLong) }
            let backoff = rule?.isThrottling == true ? retry.throttledBackoff : retry.backoff
            least = backoff.pause(after: attempt.countedNumber, previous: lastPause, chance: moment.chance)
            // Never start earlier than the server allows, and do not start all operations at that moment.
            if let asked { least = max(least, asked) }
            extra = asked.map { $0 / 10 * moment.chance } ?? .zero
        }
        if let window = retry.policy.window {
            let room = window - moment.elapsed
            guard least <= room else { return (nil, .windowOver) }
            extra = min(extra, room - least)
        }
        if let left = moment.left {
            let room = left - Self.leastTime
            guard least <= room else { return (nil, .deadlineTooNear) }
            extra = min(extra, room - least)
        }
        return (least + extra, answer.kind == .asPolicySays ? .mayPass : .userSaidSo)
    }

    /// An attempt with less time before the deadline is not worth its request.
    private static let leastTime = Duration.seconds(1)

    /// Records the decision about a failed attempt.
    package mutating func record(_ evaluation: Evaluation) {
        if let rule = evaluation.rule, evaluation.pause != nil { uses[rule, default: 0] += 1 }
        lastPause = evaluation.pause
    }
}
