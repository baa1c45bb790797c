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
/// 3. there were fewer than ``maximumAttempts``, and the next one begins within ``window`` of the first;
/// 4. its body can be sent again, or was not asked for yet.
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
    /// Less than one counts as one. A download in whose last attempt at least 64 KiB more came to the disk than before has
    /// got somewhere: its attempts are counted anew from that one, and the ``window`` begins when it failed.
    public var maximumAttempts = 3
    /// No attempt begins later than this after the first one; nil if the time does not matter: 60 seconds.
    ///
    /// It runs from the preparation of the first attempt, over all that comes between, ``decide`` and the preparation of the
    /// next attempt included, and stands still while the operation is suspended.
    public var window: Duration? = .seconds(60)
    /// The methods that do no harm if they are carried out twice; nil if that is so whatever the method is.
    public var methods: Set<String>? = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]
    /// After which failures: the first rule that matches counts.
    public var rules = RetryRule.standard
    /// The longest time that a server may ask to wait (`Retry-After`): 60 seconds.
    ///
    /// If it asks for more, the operation fails at once, since to come earlier than told would be wrong. So it does if what
    /// is left of ``window``, or until the deadline, is less: those govern.
    public var longestRetryAfter: Duration = .seconds(60)
    /// Your own say: what becomes of an attempt that failed.
    ///
    /// It is asked after every failure but a cancellation, and but those of which others decide before: a rejected
    /// credential, a network that is gone. It may take its time, and its task is cancelled when the operation
    /// is. Attempts, window, deadline, body and budget limit what it says, too; ``rules``, ``methods`` and the limits of
    /// single rules do not. `.again` waits as the policy would: longer after a failure that says that it is too much for
    /// the server, and never shorter than the server asks. `.again(after:)` waits just that, whatever the server asks:
    /// ``NetworkError/retryAfter`` says what. It is let go of when the operation ended.
    public var decide: (@Sendable (FailedAttempt) async -> RetryAnswer)?

    /// Makes the standard policy.
    public init() {}

    /// Three attempts within a minute, of requests that do no harm if they are sent twice.
    public static let standard = RetryPolicy()

    /// Whatever method it is: for services all of whose requests may be carried out twice.
    public static let anyMethod: RetryPolicy = {
        var policy = RetryPolicy()
        policy.methods = nil
        return policy
    }()

    /// The rule that a failure is about.
    func rule(for error: NetworkError) -> RetryRule? { rules.first { $0.matches(error) } }

    /// Why the request is not sent again, as far as failure and request say; nil if it may be, without ``decide``.
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
