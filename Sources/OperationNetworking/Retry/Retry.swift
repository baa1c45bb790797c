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
    /// How many may be sent again in all, of the operations that share it; without limit if nil.
    public var budget: RetryBudget?
    /// Where it is noted which origins asked to be left alone, for all operations that share it; each heeds only what it was
    /// told itself if nil, as from the start.
    public var originPauses: OriginPauses?
    /// How long one attempt may take, from its preparation until its response is complete, on the operation's clock and
    /// without the time for which it is suspended; as long as it likes if nil.
    public var attemptTimeout: Duration?
    /// Gives a number from 0 up to 1 for each pause; what is beyond counts as the nearest of them.
    public var chance: @Sendable () -> Double = { .random(in: 0..<1) }

    /// Makes a way to repeat.
    ///
    /// A budget limits only what shares it: one that is made anew for each operation limits nothing. Keep your own in a
    /// `static let`.
    public init(
        policy: RetryPolicy = .standard, backoff: RetryBackoff = .standard,
        throttledBackoff: RetryBackoff = .throttled, budget: RetryBudget? = .shared
    ) {
        self.policy = policy
        self.backoff = backoff
        self.throttledBackoff = throttledBackoff
        self.budget = budget
    }

    /// Three attempts, with up to half a second before the second and up to a second before the third, twice that where the
    /// server says that it is too much for it, as far as the budget goes.
    public static let standard = Retry()
}
