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
    public let budgetLeft: Int?
    /// The remaining time in ``RetryPolicy/window``, or `nil` if the policy has no window.
    public let timeLeft: Duration?
    /// The time until the operation's deadline or timeout, or `nil` if the operation has neither.
    public let deadlineLeft: Duration?

    /// Creates a retry event, for testing code that handles events.
    ///
    /// - Parameters:
    ///   - attempt: The number of the failed attempt, starting at 1.
    ///   - error: The error with which the attempt failed.
    ///   - pause: The pause before the next attempt. The default is `nil`, which means that no attempt follows.
    ///   - reason: The reason for the decision.
    ///   - rule: The rule of the retry policy that matches the failure. The default is `nil`, which means that no rule
    ///     matches.
    ///   - budgetLeft: The number of retries that the budget currently allows. The default is `nil`, which means that
    ///     there is no budget.
    ///   - timeLeft: The remaining time in ``RetryPolicy/window``. The default is `nil`, which means that the policy
    ///     has no window.
    ///   - deadlineLeft: The time until the operation's deadline or timeout. The default is `nil`, which means that the
    ///     operation has neither.
    public init(
        attempt: Int, error: NetworkError, pause: Duration? = nil, reason: RetryReason, rule: RetryRule? = nil,
        budgetLeft: Int? = nil, timeLeft: Duration? = nil, deadlineLeft: Duration? = nil
    ) {
        self.attempt = attempt
        self.error = error
        self.pause = pause
        self.reason = reason
        self.rule = rule
        self.budgetLeft = budgetLeft
        self.timeLeft = timeLeft
        self.deadlineLeft = deadlineLeft
    }
}

extension RetryEvent: CustomStringConvertible {
    /// A description of the decision in one line, for a log.
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

    /// The number of this attempt among the attempts that count.
    var countedNumber: Int { number - replays }

    /// A Boolean value that indicates whether the request has an `Idempotency-Key` header.
    public var hasIdempotencyKey: Bool { request?.idempotencyKey != nil }
}

/// A rule that identifies a kind of failure after which an operation may send its request again.
public struct RetryRule: Sendable, Hashable {
    private let code: NetworkError.Code
    /// The status code of matching responses, or `nil` if the rule matches all errors with the code.
    private var status: Int?
    /// A sentence that explains why another attempt may succeed.
    public let reason: String
    /// A Boolean value that indicates whether the rule matches failures that an overloaded server causes.
    ///
    /// The default is `false`. If the value is `true`, the longer pauses of ``Retry/throttledBackoff`` apply.
    package var isThrottling = false
    /// The maximum number of times that the rule applies to an operation.
    ///
    /// The default is `nil`, which applies the rule up to the maximum number of attempts.
    package var limit: Int?
    /// A Boolean value that indicates whether the rule applies only to requests with an `Idempotency-Key` header.
    ///
    /// The default is `false`.
    package var needsKey = false

    /// Creates a rule that matches responses with the given status code.
    ///
    /// - Parameters:
    ///   - status: The status code that the rule matches.
    ///   - reason: A sentence that explains why another attempt may succeed.
    public static func status(_ status: Int, because reason: String) -> RetryRule {
        RetryRule(code: .unacceptableStatus, status: status, reason: reason)
    }

    /// Creates a rule that matches errors with the given code.
    ///
    /// - Parameters:
    ///   - code: The error code that the rule matches.
    ///   - reason: A sentence that explains why another attempt may succeed.
    public static func failure(_ code: NetworkError.Code, because reason: String) -> RetryRule {
        RetryRule(code: code, reason: reason)
    }

    /// Returns a copy of the rule that uses the longer pauses of ``Retry/throttledBackoff``.
    public func throttling() -> RetryRule { with { $0.isThrottling = true } }

    /// Returns a copy of the rule that applies to an operation at most the given number of times.
    ///
    /// - Parameter limit: The maximum number of times. If the value is zero or negative, the rule allows no other
    ///   attempt.
    public func limited(to limit: Int) -> RetryRule { with { $0.limit = limit } }

    /// Returns a copy of the rule that applies only to requests with an `Idempotency-Key` header.
    public func onlyWithKey() -> RetryRule { with { $0.needsKey = true } }

    private func with(_ change: (inout RetryRule) -> Void) -> RetryRule {
        var rule = self
        change(&rule)
        return rule
    }

    /// Returns a Boolean value that indicates whether the rule matches an error.
    package func matches(_ error: NetworkError) -> Bool {
        error.code == code && (status == nil || error.status == status)
    }
}

extension RetryRule: CustomStringConvertible {
    /// The status code or the error code that the rule matches.
    public var description: String { status.map { "status \($0)" } ?? "\(code)" }
}

// The standard rules. A request is not sent again after any other failure. Other status codes (such as 501, 505 and
// 511) will be the same the next time. An invalid certificate, request or body does not become valid by sending it
// again.
extension RetryRule {
    /// The default rules, which match failures that may be temporary.
    public static let standard: [RetryRule] = statuses + failures

    private static let statuses: [RetryRule] = [
        .status(408, because: "The server stopped waiting for the request."),
        .status(409, because: "The server may still be processing the first request with this key.").onlyWithKey(),
        .status(425, because: "The server refused to process early data.").limited(to: 1),
        .status(429, because: "The server limits the rate of requests.").throttling(),
        .status(500, because: "The server had an internal error."),
        .status(502, because: "A gateway or proxy got an invalid response from the server."),
        .status(503, because: "The server is temporarily unavailable.").throttling(),
        .status(504, because: "A gateway or proxy got no response from the server in time."),
    ]

    private static let failures: [RetryRule] = [
        .failure(.timedOut, because: "No response arrived in time."),
        .failure(.cannotFindHost, because: "The DNS lookup failed, perhaps only for a moment."),
        .failure(.cannotConnect, because: "The connection could not be established, perhaps only for a moment."),
        .failure(.notConnected, because: "No network was available."),
        .failure(.connectionLost, because: "The connection broke."),
        .failure(.truncatedBody, because: "The connection was closed before the response was complete."),
        .failure(.resourcesExhausted, because: "No file descriptor, thread or memory was available at that moment."),
    ]
}

/// The pause that a server asks for in `Retry-After` (RFC 9110, section 10.2.3): a number of seconds, or a date.
enum RetryAfter {
    /// Returns the pause from now on, or `nil` if the header is missing or invalid.
    ///
    /// If the response has several such headers, the longest pause counts. A date is compared with the `Date` header of
    /// the response, so that a wrong clock of the server or the client does no harm.
    static func pause(in head: ResponseHead, now: Date) -> Duration? {
        head.headers.values("Retry-After").compactMap { pause($0, in: head, now: now) }.max()
    }

    private static func pause(_ field: String, in head: ResponseHead, now: Date) -> Duration? {
        let text = field.trimmingCharacters(in: .whitespaces)
        guard !text.isEmpty else { return nil }
        if text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // A number that does not fit an `Int64` counts as the longest possible pause.
            return .seconds(Int64(text) ?? .max)
        }
        guard let date = HTTPDate.parse(text, now: now) else { return nil }
        let theirs = head.headers["Date"].flatMap { HTTPDate.parse($0, now: now) } ?? now
        return .seconds(max(date.timeIntervalSince(theirs), 0))
    }
}
