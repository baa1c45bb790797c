// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// The settings that determine whether, when and how often an operation sends a failed request again.
///
/// An operation without these settings does not retry. To retry all requests to a service, change a copy of
/// ``standard``, and assign the copy to ``NetworkBase/retry``:
///
/// ```swift
/// var retry = Retry.standard
/// retry.policy.maximumAttempts = 5
/// retry.attemptTimeout = .seconds(10)
/// let shop = NetworkBase(URL(string: "https://api.example.com/v1/")!) {
///     $0.retry = retry
///     $0.retryHandler = { event in print(event) }
/// }
/// let titles: [String] = try await shop.get("titles").run()
/// print(titles.count)
/// ```
///
/// The operation calls the `retryHandler` on its callback queue with each decision about a failed attempt. You can also
/// set ``AnyNetworkOperation/retry`` and ``AnyNetworkOperation/retryHandler`` on a single operation before it starts.
///
/// With the default settings, an operation makes at most three attempts, which begin within one minute. A download that
/// makes progress gets more attempts, and waits for a credential or the network do not count toward the minute. The
/// operation retries only after a temporary failure, and only if the request is safe to repeat. The pause after the
/// first attempt is a random time up to half a second, or up to one second if the server reports that it is overloaded.
/// This upper bound doubles after each further attempt. If a `Retry-After` header specifies a longer pause, the
/// operation waits at least that long, or fails immediately if the pause would end after the minute. The total duration
/// of an attempt is not limited, but the ``TransferTimeouts`` apply.
///
/// A `Retry` is a value. An operation copies the value when you set the operation's `retry` property, or when you
/// create the operation with a base. If you change your copy later, the change does not affect the operation. All
/// copies share the ``budget`` and the ``originPauses``, which are objects. With the default budget
/// ``RetryBudget/shared``, all operations in the process share one limit for each origin.
///
/// Guide: `Docs/Guides/Retry.md`
public struct Retry: Sendable {
    /// The policy that decides whether an operation sends a failed request again.
    ///
    /// The default policy allows three attempts, which begin within one minute, for requests that a server can safely
    /// process more than once.
    public var policy: RetryPolicy
    /// The backoff that determines the pauses between attempts.
    ///
    /// The default is ``RetryBackoff/standard``.
    public var backoff: RetryBackoff
    /// The backoff that determines the pauses if the server reports that it is overloaded.
    ///
    /// The default is ``RetryBackoff/throttled``.
    public var throttledBackoff: RetryBackoff
    /// The budget that limits the total number of retries of all operations that share the budget.
    ///
    /// If the value is `nil`, the total number of retries is not limited.
    ///
    /// The default is ``RetryBudget/shared``.
    public var budget: RetryBudget?
    /// The store that records how long to pause requests to each origin after a response with the status 429 or 503 and
    /// a `Retry-After` header.
    ///
    /// All operations that use the same store respect its pauses.
    ///
    /// The default is `nil`, which makes each operation respect only the `Retry-After` headers that it receives.
    public var originPauses: OriginPauses?
    /// The maximum duration of an attempt, from its preparation until the response is complete.
    ///
    /// The default is `nil`, which does not limit the duration. The operation's clock measures the time. The time does
    /// not include suspensions of the operation, or waits during which the operation releases its slot, for example for
    /// a credential or the network. The time of a download ends when its complete file is about to be moved to its
    /// destination.
    public var attemptTimeout: Duration?
    /// A closure that returns a random number from 0 to 1, which the backoff uses to vary the duration of a pause.
    ///
    /// The operation can call the closure on any thread. Replace this closure only in tests.
    ///
    /// The default closure returns a new random number for each call.
    public var chance: @Sendable () -> Double = { .random(in: 0..<1) }

    /// Creates retry settings from a policy, backoffs and a budget.
    ///
    /// - Parameters:
    ///   - policy: The policy that decides whether an operation sends a failed request again. By default, each property
    ///     of the policy has its default value.
    ///   - backoff: The backoff that determines the pauses between attempts. The default is ``RetryBackoff/standard``.
    ///   - throttledBackoff: The backoff that determines the pauses if the server reports that it is overloaded. The
    ///     default is ``RetryBackoff/throttled``.
    ///   - budget: The budget that limits the total number of retries. The default is ``RetryBudget/shared``. A value
    ///     of `nil` does not limit the number.
    public init(
        policy: RetryPolicy = RetryPolicy(), backoff: RetryBackoff = .standard,
        throttledBackoff: RetryBackoff = .throttled, budget: RetryBudget? = .shared
    ) {
        self.policy = policy
        self.backoff = backoff
        self.throttledBackoff = throttledBackoff
        self.budget = budget
    }

    /// The standard settings, which allow three attempts with the standard policy and backoff, and use the budget
    /// ``RetryBudget/shared``.
    ///
    /// Without a `Retry-After` header, the pause is up to half a second before the second attempt, and up to one second
    /// before the third attempt. If the server reports that it is overloaded, the pauses can be twice as long.
    public static let standard = Retry()
}

/// A decision of the ``RetryPolicy/decide`` closure about whether the operation makes another attempt.
public struct RetryAnswer: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case asPolicySays
        case fail
        case again(Duration?)
    }

    package let kind: Kind

    /// The ``RetryPolicy/rules`` and ``RetryPolicy/methods`` decide whether the operation makes another attempt.
    public static let asPolicySays = RetryAnswer(kind: .asPolicySays)
    /// The operation fails without another attempt.
    public static let fail = RetryAnswer(kind: .fail)
    /// The operation makes another attempt after the pause that the backoff determines.
    public static let again = RetryAnswer(kind: .again(nil))
    /// Returns a decision to make another attempt after the given pause.
    ///
    /// - Parameter pause: The pause before the next attempt. The operation does not vary this pause at random.
    public static func again(after pause: Duration) -> RetryAnswer { RetryAnswer(kind: .again(pause)) }
}

// Set these properties before the operation starts.
extension AnyNetworkOperation {
    /// The settings that determine whether and when the operation sends a failed request again.
    ///
    /// The default is `nil`, which disables retries. Set this property before the operation starts. If neither you nor
    /// the operation's ``NetworkBase`` sets this property, the operation uses the settings of its group.
    public var retry: Retry? {
        get { (networkAttempts.policies?[.retry] as? RetryAgent)?.retry }
        set {
            guard maySet("retry policy") else { return }
            networkAttempts.set(newValue, bySetting: .retry)
        }
    }

    /// A closure that the operation calls on its callback queue with each decision about a failed attempt.
    ///
    /// The operation calls this closure before its failure handler. After a cancellation, the operation does not call
    /// the closure. When the operation ends, it releases the closure.
    public var retryHandler: (@Sendable (RetryEvent) -> Void)? {
        get { networkAttempts.state.withLock { $0.handlers?.retry } }
        set { networkAttempts.changeHandlers { $0.retry = newValue } }
    }

    /// The records of the operation's failed attempts, which are also available after a cancellation.
    ///
    /// The operation records failed attempts only if it uses ``retry``, ``offline``, ``postponed`` or an
    /// ``Authenticator``.
    public var failedAttempts: [AttemptRecord] { networkAttempts.records }

    /// The key that a server uses to recognize a repeated request of the operation.
    ///
    /// The default is `nil`. If you set a key, the operation can also retry `POST` and `PATCH` requests.
    public var idempotencyKey: IdempotencyKey? {
        get { networkAttempts.state.withLock { $0.keys?.own } }
        set { networkAttempts.state.withLock { $0.keys = (newValue, $0.keys?.first) } }
    }
}

extension NetworkAttempts {
    func set(_ retry: Retry?, bySetting setting: ExplicitPolicies = []) {
        let (agent, pause) = (retry.map(RetryAgent.init), retry?.originPauses.map(PauseGate.init))
        changePolicies(bySetting: setting) { policies in
            (exchange(&policies[.retry], with: agent), exchange(&policies[.pause], with: pause))
        }
    }
}

extension RetryEvent {
    init(
        _ attempt: FailedAttempt, _ evaluation: RetryMachine.Evaluation, _ moment: RetryMachine.Moment, of retry: Retry
    ) {
        self.init(
            attempt: attempt.number, error: attempt.error, pause: evaluation.pause, reason: evaluation.reason,
            rule: evaluation.rule)
        budgetLeft = attempt.request.flatMap { request in retry.budget.map { $0.left(for: request.origin) } }
        timeLeft = retry.policy.window.map { max($0 - moment.elapsed, .zero) }
        deadlineLeft = moment.left.map { max($0, .zero) }
    }
}
