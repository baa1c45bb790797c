// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An attempt that failed, as ``RetryPolicy/decide`` sees it.
public struct FailedAttempt: Sendable {
    /// Which attempt it was, from 1.
    public let number: Int
    /// How many of those before it do not count: the operation was put aside for something else than their failure, or a
    /// download got somewhere in them.
    public let replays: Int
    /// Why it failed.
    public let error: NetworkError
    /// What was sent, or would have been; nil if it could not be made.
    public let request: NetworkRequest?
    /// The head of the response, if one came.
    public let head: ResponseHead?
    /// How long ago the first attempt that counts began, without the time for which the operation was suspended or put
    /// aside.
    public let elapsed: Duration
    /// The attempts before this one.
    public let earlier: [AttemptRecord]

    /// Makes one, for tests of a rule.
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

    init(_ report: AttemptReport) {
        self.init(
            number: report.number, replays: report.replays, error: report.error, request: report.request,
            head: report.head, elapsed: report.elapsed, earlier: report.earlier)
    }

    /// Which of those that count it was.
    var countedNumber: Int { number - replays }

    /// Whether the request has a key by which the server knows that it is the same.
    public var hasIdempotencyKey: Bool { request?.idempotencyKey != nil }
}

/// What becomes of an attempt that failed.
public struct RetryAnswer: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case asPolicySays
        case fail
        case again(Duration?)
    }

    package let kind: Kind

    /// What the policy would do without you.
    public static let asPolicySays = RetryAnswer(kind: .asPolicySays)
    /// The operation fails.
    public static let fail = RetryAnswer(kind: .fail)
    /// Another attempt, after the pause that the backoff says.
    public static let again = RetryAnswer(kind: .again(nil))
    /// Another attempt, after a pause of yours.
    public static func again(after pause: Duration) -> RetryAnswer { RetryAnswer(kind: .again(pause)) }
}
