// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension NetworkError {
    /// What only the errors of operations have: apart, so that errors of sessions stay small.
    struct Details: Sendable, Hashable {
        var bodyPrefix: Data?
        var cause: Boxed?
        var apiError: Boxed?
        var attempts: [AttemptRecord] = []
        var retryAfter: Duration?
        var retryEnd: RetryReason?
    }

    /// An error of any type; two are equal if their texts are.
    struct Boxed: Sendable, Hashable {
        let error: any Error

        static func == (left: Self, right: Self) -> Bool { "\(left.error)" == "\(right.error)" }
        func hash(into hasher: inout Hasher) { hasher.combine("\(error)") }
    }

    /// The first bytes of the body, at most as many as the rules of the operation say.
    ///
    /// They may be anything, secrets included, so they are in no text of this error but ``report(showingBody:)``.
    public var bodyPrefix: Data? {
        get { details?.bodyPrefix }
        set { change { $0.bodyPrefix = newValue } }
    }

    /// The error that was thrown by a hook, the evaluator or a decoder.
    public var cause: (any Error)? {
        get { details?.cause?.error }
        set { change { $0.cause = newValue.map(Boxed.init) } }
    }

    /// What the server said, decoded by ``ResponseRules/decodeError``.
    public var apiError: (any Error)? {
        get { details?.apiError?.error }
        set { change { $0.apiError = newValue.map(Boxed.init) } }
    }

    /// What the server said, if it is of that type.
    public func apiError<Problem: Error>(as type: Problem.Type = Problem.self) -> Problem? {
        apiError as? Problem
    }

    mutating func change(_ change: (inout Details) -> Void) {
        var details = details ?? Details()
        change(&details)
        self.details = details == Details() ? nil : details
    }
}
