// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A reason why an operation makes or does not make another attempt after a failed attempt.
///
/// Future versions may add reasons.
public struct RetryReason: Hashable, Sendable, CustomStringConvertible {
    /// The name of the reason, which you can use as a metric label.
    public let description: String

    private init(_ name: String) { description = name }

    /// The failure may be temporary, so another attempt follows.
    public static let mayPass = Self("mayPass")
    /// Your ``RetryPolicy/decide`` closure made the decision.
    public static let userSaidSo = Self("userSaidSo")
    /// No rule of the ``RetryPolicy`` allows another attempt, or another attempt would fail with the same error.
    public static let notWorthwhile = Self("notWorthwhile")
    /// The request is not idempotent, so sending it again might repeat its effect.
    public static let notIdempotent = Self("notIdempotent")
    /// The request body can be sent only once, and the session has already begun to read the body.
    public static let bodyNotRepeatable = Self("bodyNotRepeatable")
    /// The operation has made the maximum number of attempts.
    public static let attemptsUsedUp = Self("attemptsUsedUp")
    /// The next attempt would begin after the end of ``RetryPolicy/window``.
    public static let windowOver = Self("windowOver")
    /// Another attempt would have less than one second before the operation's deadline or the end of its timeout.
    public static let deadlineTooNear = Self("deadlineTooNear")
    /// The server requested a longer pause than the retry policy allows.
    public static let askedToWaitTooLong = Self("askedToWaitTooLong")
    /// The retry budget does not allow more retries to the origin of the request.
    public static let budgetUsedUp = Self("budgetUsedUp")
}

/// A decision about whether an operation makes another attempt after a failed attempt.
public struct RetryEvent: Sendable {
    /// The number of the failed attempt, starting at 1.
    public let attempt: Int
    /// The error with which the attempt failed.
    public let error: NetworkError
    /// The pause before the next attempt, or `nil` if the operation makes no other attempt.
    public let pause: Duration?
    /// The reason for the decision.
    public let reason: RetryReason
    /// The rule of the retry policy that matches the failure, or `nil` if no rule matches.
    ///
    /// The ``RetryRule/reason`` of the rule explains why another attempt may succeed.
    public let rule: RetryRule?
    /// The number of retries that the budget currently allows for the origin of the request, or `nil` if there is no
    /// budget.
    package var budgetLeft: Int?
    /// The remaining time in ``RetryPolicy/window``, or `nil` if the policy has no window.
    package var timeLeft: Duration?
    /// The time until the operation's deadline or timeout, or `nil` if the operation has neither.
    package var deadlineLeft: Duration?

    /// Creates a retry event, for testing code that handles events.
    ///
    /// - Parameters:
    ///   - attempt: The number of the failed attempt, starting at 1.
    ///   - error: The error with which the attempt failed.
    ///   - pause: The pause before the next attempt. The default is `nil`, which means that no attempt follows.
    ///   - reason: The reason for the decision.
    ///   - rule: The rule of the retry policy that matches the failure. The default is `nil`, which means that no rule
    ///     matches.
    public init(
        attempt: Int, error: NetworkError, pause: Duration? = nil, reason: RetryReason, rule: RetryRule? = nil
    ) {
        self.attempt = attempt
        self.error = error
        self.pause = pause
        self.reason = reason
        self.rule = rule
    }
}

extension RetryEvent: CustomStringConvertible {
    /// A description of the decision in one line, for a log.
    ///
    /// The line contains the retries that are left in the budget, and the time until the end of the policy's window and
    /// until the operation's deadline.
    public var description: String {
        let outcome = pause.map { "next attempt in \($0.inSeconds)" } ?? "no other attempt"
        let because = rule.map { " (\($0.reason))" } ?? ""
        let budget = budgetLeft.map { ", \($0) left in the budget" } ?? ""
        let time = timeLeft.map { ", \($0.inSeconds) left in the window" } ?? ""
        let deadline = deadlineLeft.map { ", \($0.inSeconds) until the deadline" } ?? ""
        return "attempt \(attempt) failed (\(error.code)\(error.status.map { " \($0)" } ?? "")): "
            + "\(outcome), \(reason)\(because)\(budget)\(time)\(deadline)"
    }
}

/// A description of a failed attempt for closures that decide whether to make another attempt.
public struct FailedAttempt: Sendable {
    /// The number of the attempt, starting at 1.
    public let number: Int
    /// The number of earlier attempts that do not count toward the maximum number of attempts.
    ///
    /// An attempt does not count if the operation was paused after it, for example because the server rejected the
    /// credential or the network became unavailable. If a download makes progress in an attempt, the attempts before
    /// this attempt do not count either.
    public let replays: Int
    /// The error with which the attempt failed.
    public let error: NetworkError
    /// The request of the attempt, or `nil` if the operation could not create a request.
    public let request: NetworkRequest?
    /// The status and headers of the response, or `nil` if there was no response.
    public let head: ResponseHead?
    /// The time since the start of the first attempt, or since the end of the last attempt in which a download made
    /// progress.
    ///
    /// This time includes the pauses before retries, but no other waits and no suspensions of the operation.
    public let elapsed: Duration
    /// The records of the attempts before this attempt.
    public let earlier: [AttemptRecord]
    /// The number of attempts so far in which a download made progress, including this one.
    package var advances = 0

    /// Creates a description of a failed attempt, for testing a rule.
    ///
    /// - Parameters:
    ///   - number: The number of the attempt, starting at 1.
    ///   - replays: The number of earlier attempts that do not count toward the maximum number of attempts. The default
    ///     is 0.
    ///   - error: The error with which the attempt failed.
    ///   - request: The request of the attempt. The default is `nil`, which means that the operation could not create a
    ///     request.
    ///   - head: The status and headers of the response. The default is `nil`, which means that there was no response.
    ///   - elapsed: The time since the start of the first attempt, or since the end of the last attempt in which a
    ///     download made progress. The default is zero.
    ///   - earlier: The records of the attempts before this attempt. The default is an empty array.
    public init(
        number: Int, replays: Int = 0, error: NetworkError, request: NetworkRequest? = nil, head: ResponseHead? = nil,
        elapsed: Duration = .zero, earlier: [AttemptRecord] = []
    ) {
        self.number = number
        self.replays = replays
        self.error = error
        self.request = request
        self.head = head
        self.elapsed = elapsed
        self.earlier = earlier
    }

    /// Returns a copy with another error.
    func with(_ error: NetworkError) -> FailedAttempt {
        var copy = FailedAttempt(
            number: number, replays: replays, error: error, request: request, head: head, elapsed: elapsed,
            earlier: earlier)
        copy.advances = advances
        return copy
    }

    /// The number of this attempt among the attempts that count.
    var countedNumber: Int { number - replays }

    /// A Boolean value that indicates whether the request has an `Idempotency-Key` header.
    package var hasIdempotencyKey: Bool { request?.idempotencyKey != nil }
}
