// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Why an attempt was followed by another, or was the last.
///
/// New reasons may be added.
public struct RetryReason: Hashable, Sendable, CustomStringConvertible {
    /// The name of the reason, fit for a metric's label.
    public let description: String

    private init(_ name: String) { description = name }

    /// The failure is one that may pass.
    public static let mayPass = Self("mayPass")
    /// The user's own rule said so.
    public static let userSaidSo = Self("userSaidSo")
    /// Another attempt would fail in the same way.
    public static let notWorthwhile = Self("notWorthwhile")
    /// The request might be carried out twice.
    public static let notIdempotent = Self("notIdempotent")
    /// The body cannot be sent again.
    public static let bodyNotRepeatable = Self("bodyNotRepeatable")
    /// There were as many attempts as there may be.
    public static let attemptsUsedUp = Self("attemptsUsedUp")
    /// The next attempt would begin too late.
    public static let windowOver = Self("windowOver")
    /// The operation's deadline comes before the next attempt could begin.
    public static let deadlineTooNear = Self("deadlineTooNear")
    /// The server asks to wait longer than is accepted.
    public static let askedToWaitTooLong = Self("askedToWaitTooLong")
    /// Too many requests to this origin were sent again lately.
    public static let budgetUsedUp = Self("budgetUsedUp")
}

/// What was decided after an attempt that failed, and why: one line of the story of an operation.
public struct RetryEvent: Sendable {
    /// Which attempt failed, from 1.
    public let attempt: Int
    /// Why it failed.
    public let error: NetworkError
    /// How long until the next attempt; nil if there is none.
    public let pause: Duration?
    /// Why it was decided so.
    public let reason: RetryReason
    /// The rule of the policy that the failure is about, which says why another attempt may do better; nil if there is none.
    public let rule: RetryRule?
    /// How many more requests to this origin could be sent again now; nil without a budget.
    public let budgetLeft: Int?
    /// How much of the window of the policy is left; nil without a window.
    public let timeLeft: Duration?
    /// How long until the operation's deadline, or the end of its timeout; nil without either.
    public let deadlineLeft: Duration?

    /// What the server asked to wait.
    public var retryAfter: Duration? { error.retryAfter }

    /// Makes an event, for tests of what takes them in.
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

    init(
        _ attempt: FailedAttempt, _ weighing: RetryMachine.Weighing, _ moment: RetryMachine.Moment, of retry: Retry
    ) {
        self.init(
            attempt: attempt.number, error: attempt.error, pause: weighing.pause, reason: weighing.reason,
            rule: weighing.rule,
            budgetLeft: attempt.request.flatMap { request in retry.budget.map { $0.left(for: request.origin) } },
            timeLeft: retry.policy.window.map { max($0 - moment.elapsed, .zero) },
            deadlineLeft: moment.left.map { max($0, .zero) })
    }
}

extension RetryEvent: CustomStringConvertible {
    /// The decision in a line, for a log.
    public var description: String {
        let outcome = pause.map { "again in \($0.inSeconds)" } ?? "no more"
        let because = rule.map { " (\($0.reason))" } ?? ""
        let budget = budgetLeft.map { ", \($0) left in the budget" } ?? ""
        let time = timeLeft.map { ", \($0.inSeconds) left" } ?? ""
        let deadline = deadlineLeft.map { ", \($0.inSeconds) until the deadline" } ?? ""
        return "attempt \(attempt) failed (\(error.code)\(error.status.map { " \($0)" } ?? "")): "
            + "\(outcome), \(reason)\(because)\(budget)\(time)\(deadline)"
    }
}
