// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An attempt that failed, as ``RetryPolicy/decide`` sees it.
public struct FailedAttempt: Sendable {
    /// Which attempt it was, from 1.
    public let number: Int
    /// Why it failed.
    public let error: NetworkError
    /// What was sent, or would have been; nil if it could not be made.
    public let request: NetworkRequest?
    /// The head of the response, if one came.
    public let head: ResponseHead?
    /// How long ago the first attempt began.
    public let elapsed: Duration
    /// The attempts before this one.
    public let earlier: [AttemptRecord]

    /// Whether the request has a key by which the server knows that it is the same.
    public var hasIdempotencyKey: Bool { request?.headers.contains("Idempotency-Key") ?? false }
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
