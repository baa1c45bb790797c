// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One kind of failure after which a request may be sent again, and why.
public struct RetryRule: Sendable, Hashable {
    /// What a failure must have for the rule to be about it.
    private enum Subject: Sendable, Hashable {
        case status(Int)
        case failure(NetworkError.Code)
    }

    private let subject: Subject
    /// Why another attempt may do better, as a sentence.
    public let reason: String
    /// Whether the server said that it is too much for it, so that pauses begin longer.
    public var isThrottling = false
    /// How often in one operation; nil if only the number of attempts limits it.
    public var limit: Int?
    /// Whether it is only for requests with an `Idempotency-Key`.
    public var needsKey = false

    /// A rule about a status of the response.
    public static func status(_ status: Int, because reason: String) -> RetryRule {
        RetryRule(subject: .status(status), reason: reason)
    }

    /// A rule about a failure of the transfer.
    public static func failure(_ code: NetworkError.Code, because reason: String) -> RetryRule {
        RetryRule(subject: .failure(code), reason: reason)
    }

    /// The same rule, followed by longer pauses (``Retry/throttledBackoff``).
    public func throttling() -> RetryRule { with { $0.isThrottling = true } }

    /// The same rule, so often in one operation.
    public func limited(to limit: Int) -> RetryRule { with { $0.limit = limit } }

    /// The same rule, only for requests with an `Idempotency-Key`.
    public func onlyWithKey() -> RetryRule { with { $0.needsKey = true } }

    private func with(_ change: (inout RetryRule) -> Void) -> RetryRule {
        var rule = self
        change(&rule)
        return rule
    }

    /// Whether the rule is about such a failure.
    public func matches(_ error: NetworkError) -> Bool {
        switch subject {
        case .status(let status): error.code == .unacceptableStatus && error.status == status
        case .failure(let code): error.code == code
        }
    }
}

extension RetryRule: CustomStringConvertible {
    /// What it is about.
    public var description: String {
        switch subject {
        case .status(let status): "status \(status)"
        case .failure(let code): "\(code)"
        }
    }
}

// The table. What is not in it is not sent again: other answers (501, 505 and 511 among them) will be the same the next
// time, and what is wrong with a certificate, a request or a body does not mend itself.
extension RetryRule {
    /// What is worth another attempt unless you say otherwise.
    public static let standard: [RetryRule] = statuses + failures

    private static let statuses: [RetryRule] = [
        .status(408, because: "The server gave up waiting for the request."),
        .status(409, because: "The first request with this key may still be under way.").onlyWithKey(),
        .status(425, because: "The server did not want to act on early data.").limited(to: 1),
        .status(429, because: "The server asks for fewer requests.").throttling(),
        .status(500, because: "The server stumbled."),
        .status(502, because: "What stands before the server got no good answer from it."),
        .status(503, because: "The server cannot answer at present.").throttling(),
        .status(504, because: "What stands before the server got no answer from it in time."),
    ]

    private static let failures: [RetryRule] = [
        .failure(.timedOut, because: "No answer came in time."),
        .failure(.cannotFindHost, because: "The name could not be looked up, which may be so for a moment only."),
        .failure(.cannotConnect, because: "No connection could be made, which may be so for a moment only."),
        .failure(.notConnected, because: "The network was not there."),
        .failure(.connectionLost, because: "The connection broke."),
        .failure(.truncatedBody, because: "The connection was closed before the response was complete."),
        .failure(.resourcesExhausted, because: "This program had no socket or memory left at that moment."),
    ]
}
