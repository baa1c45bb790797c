// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An attempt that failed, as ``RetryPolicy/decide`` sees it.
public struct FailedAttempt: Sendable {
    /// Which attempt it was, from 1.
    public let number: Int
    /// How many of those before it do not count: the operation was put aside for something else than their failure.
    public let replays: Int
    /// Why it failed.
    public let error: NetworkError
    /// What was sent, or would have been; nil if it could not be made.
    public let request: NetworkRequest?
    /// The head of the response, if one came.
    public let head: ResponseHead?
    /// How long ago the first attempt began, without the time for which the operation was put aside.
    public let elapsed: Duration
    /// The attempts before this one.
    public let earlier: [AttemptRecord]

    /// Which of those that count it was.
    var countedNumber: Int { number - replays }

    /// Whether the request has a key by which the server knows that it is the same.
    public var hasIdempotencyKey: Bool { request?.headers.contains("Idempotency-Key") ?? false }
}

extension FailedAttempt {
    init(_ report: AttemptReport) {
        self.init(
            number: report.number, replays: report.replays, error: report.error, request: report.request,
            head: report.head, elapsed: report.elapsed, earlier: report.earlier)
    }
}

/// What becomes of an attempt that failed.
public struct RetryAnswer: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case asPolicySays
        case fail
        case again(Duration?)
    }

    let kind: Kind

    /// What the policy would do without you.
    public static let asPolicySays = RetryAnswer(kind: .asPolicySays)
    /// The operation fails.
    public static let fail = RetryAnswer(kind: .fail)
    /// Another attempt, after the pause that the backoff says.
    public static let again = RetryAnswer(kind: .again(nil))
    /// Another attempt, after a pause of yours.
    public static func again(after pause: Duration) -> RetryAnswer { RetryAnswer(kind: .again(pause)) }
}
