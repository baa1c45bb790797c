// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// How often, when and how much a request is sent again: three values that know nothing of each other.
///
/// ```swift
/// func albums(at url: URL) -> NetworkDataOperation<Data> {
///     let operation = NetworkDataOperation(url: url) { data, _ in data }
///     operation.retry = .standard
///     operation.retryHandler = { event in print(event) }
///     return operation
/// }
/// ```
///
/// For all operations of a service, set ``NetworkBase/retry``.
public struct Retry: Sendable {
    /// Whether a request may be sent again.
    public var policy: RetryPolicy
    /// How long to wait before.
    public var backoff: RetryBackoff
    /// How long to wait where the server said that it is too much for it.
    public var throttledBackoff: RetryBackoff
    /// How many may be sent again in all; without limit if nil.
    public var budget: RetryBudget?
    /// How long one attempt may take, on the operation's clock, not counting the time for which it is suspended.
    public var attemptTimeout: Duration?
    /// Gives a number from 0 up to 1 for each pause.
    public var chance: @Sendable () -> Double = { .random(in: 0..<1) }

    /// Makes a way to repeat.
    public init(
        policy: RetryPolicy = .standard, backoff: RetryBackoff = .standard,
        throttledBackoff: RetryBackoff = .throttled, budget: RetryBudget? = .shared
    ) {
        self.policy = policy
        self.backoff = backoff
        self.throttledBackoff = throttledBackoff
        self.budget = budget
    }

    /// Three attempts, up to half a second before the second and up to a second before the third, as far as the budget goes.
    public static let standard = Retry()
}
