// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Whether a request that failed may be sent again: a value that knows neither of pauses nor of budgets.
///
/// A request is sent again if
///
/// 1. its failure is one of ``rules``, whose text says why;
/// 2. sending it twice does no harm: its method is one of ``methods``, or it has an `Idempotency-Key`, or nothing of it
///    was sent;
/// 3. its body can be sent again;
/// 4. there were fewer than ``maximumAttempts``, and the next one begins within ``window`` of the first.
///
/// ```swift
/// var policy = RetryPolicy.standard
/// policy.maximumAttempts = 5
/// policy.decide = { attempt in
///     attempt.error.status == 404 ? .again : .asPolicySays
/// }
/// ```
public struct RetryPolicy: Sendable {
    /// How many attempts there may be, the first one included: 3.
    ///
    /// Less than one counts as one.
    public var maximumAttempts = 3
    /// No attempt begins later than this after the first one; nil if the time does not matter: 60 seconds.
    public var window: Duration? = .seconds(60)
    /// The methods that do no harm if they are carried out twice.
    public var methods: Set<String> = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]
    /// After which failures: the first rule that matches counts.
    public var rules = RetryRule.standard
    /// The longest time that a server may ask to wait (`Retry-After`): 60 seconds.
    ///
    /// If it asks for more, the operation fails at once, since to come earlier than told would be wrong.
    public var longestRetryAfter: Duration = .seconds(60)
    /// Your own say: what becomes of an attempt that failed.
    ///
    /// It is asked after every failure, may take its time, and its task is cancelled when the operation is. Attempts,
    /// window, body and budget limit what it says, too.
    public var decide: (@Sendable (FailedAttempt) async -> RetryAnswer)?

    /// Makes the standard policy.
    public init() {}

    /// Three attempts within a minute, of requests that do no harm if they are sent twice.
    public static let standard = RetryPolicy()

    /// Whatever method it is: for services all of whose requests may be carried out twice.
    public static let anyMethod: RetryPolicy = {
        var policy = RetryPolicy()
        policy.methods = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "POST", "PATCH"]
        return policy
    }()

    /// What the values say of an attempt, without ``decide``.
    func judge(_ attempt: FailedAttempt, uses: [RetryRule: Int]) -> RetryVerdict {
        guard let rule = rules.first(where: { $0.matches(attempt.error) }) else { return .stop(.notWorthwhile) }
        if rule.needsKey, !attempt.hasIdempotencyKey { return .stop(.notWorthwhile) }
        if let limit = rule.limit, uses[rule, default: 0] >= limit { return .stop(.notWorthwhile) }
        guard mayRepeat(attempt) else { return .stop(.notIdempotent) }
        return .repeating(rule)
    }

    private func mayRepeat(_ attempt: FailedAttempt) -> Bool {
        if attempt.error.isUnsent || attempt.hasIdempotencyKey { return true }
        guard let method = attempt.request?.method else { return true }
        return methods.contains(method)
    }
}

enum RetryVerdict: Sendable, Equatable {
    case stop(RetryReason)
    case repeating(RetryRule)
}
