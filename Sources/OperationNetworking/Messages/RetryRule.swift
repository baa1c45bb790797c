// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

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
    ///   - reason: A sentence that explains why another attempt may succeed. In an ``OfflinePolicy``, the sentence
    ///     explains how an unavailable network causes the error.
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
    package func matches(_ error: NetworkError) -> Bool { matches(error.code, error.status) }

    package func matches(_ code: NetworkError.Code, _ status: Int? = nil) -> Bool {
        code == self.code && (self.status == nil || status == self.status)
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
