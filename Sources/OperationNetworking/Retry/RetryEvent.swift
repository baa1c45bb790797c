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
    /// What the server asked to wait.
    public let retryAfter: Duration?
    /// How many more requests to this origin could be sent again now; nil without a budget.
    public let budgetLeft: Int?
    /// How much of the window of the policy is left; nil without a window.
    public let timeLeft: Duration?
}

extension RetryEvent: CustomStringConvertible {
    /// The decision in a line, for a log.
    public var description: String {
        let outcome = pause.map { "again in \($0)" } ?? "no more"
        let budget = budgetLeft.map { ", \($0) left in the budget" } ?? ""
        let time = timeLeft.map { ", \($0) left" } ?? ""
        return "attempt \(attempt) failed (\(error.code)\(error.status.map { " \($0)" } ?? "")): "
            + "\(outcome), \(reason)\(budget)\(time)"
    }
}
