// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A description of whether, when and how often an operation sends a failed request again.
///
/// The policy, the backoff and the budget are independent of each other.
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
/// To set the retry behavior for all operations of a service, set ``NetworkBase/retry``.
public struct Retry: Sendable {
    /// The policy that decides whether a request may be sent again.
    public var policy: RetryPolicy
    /// The backoff that determines the pause before the next attempt.
    public var backoff: RetryBackoff
    /// The backoff to use if the server reported that it is overloaded.
    public var throttledBackoff: RetryBackoff
    /// The budget that limits the total number of repeated requests of all operations that share the budget.
    ///
    /// If the value is `nil`, the number is not limited.
    public var budget: RetryBudget?
    /// A store that records which origins asked for a pause, for all operations that share the store.
    ///
    /// The default is `nil`, which makes each operation respect only the pauses in its own responses.
    public var originPauses: OriginPauses?
    /// The maximum duration of one attempt.
    ///
    /// The default is `nil`, which sets no limit. The duration runs from the preparation of the attempt until its
    /// response is complete. The operation's clock measures this time, without the time for which the operation is
    /// suspended.
    public var attemptTimeout: Duration?
    /// A closure that returns a random number from 0 to 1 for each pause.
    ///
    /// A number outside this range counts as the nearest bound. The operation can call the closure on any thread.
    public var chance: @Sendable () -> Double = { .random(in: 0..<1) }

    /// Creates a description of the retry behavior.
    ///
    /// A budget limits only the operations that share it. A new budget for each operation limits nothing. Store a
    /// budget of your own in a `static let`.
    public init(
        policy: RetryPolicy = .standard, backoff: RetryBackoff = .standard,
        throttledBackoff: RetryBackoff = .throttled, budget: RetryBudget? = .shared
    ) {
        self.policy = policy
        self.backoff = backoff
        self.throttledBackoff = throttledBackoff
        self.budget = budget
    }

    /// Three attempts with the standard policy, backoff and budget.
    ///
    /// The pause is up to half a second before the second attempt and up to one second before the third. Both bounds
    /// are doubled if the server reports that it is overloaded. The shared budget limits the number of repeated
    /// requests.
    public static let standard = Retry()
}

/// A decision about whether a failed attempt is followed by another attempt.
public struct RetryAnswer: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case asPolicySays
        case fail
        case again(Duration?)
    }

    package let kind: Kind

    /// The decision that the policy would make.
    public static let asPolicySays = RetryAnswer(kind: .asPolicySays)
    /// The operation fails without another attempt.
    public static let fail = RetryAnswer(kind: .fail)
    /// Another attempt, after the pause that the backoff determines.
    public static let again = RetryAnswer(kind: .again(nil))
    /// Returns the decision to make another attempt after the given pause.
    public static func again(after pause: Duration) -> RetryAnswer { RetryAnswer(kind: .again(pause)) }
}

// Set these properties before the operation starts.
extension AnyNetworkOperation {
    /// The retry behavior of the operation.
    ///
    /// The default is `nil`, which disables retries. If you never set this property, the operation uses the retry
    /// behavior of its group, if the group sets one.
    public var retry: Retry? {
        get { networkAttempts.policy(of: RetryAgent.self)?.retry }
        set {
            guard maySet("retry policy") else { return }
            networkAttempts.markAsSet(.retry)
            networkAttempts.set(newValue)
        }
    }

    /// A closure that the operation calls on its callback queue with each decision about a failed attempt.
    ///
    /// The operation calls this closure before the failure handler, and never after a cancellation. The operation
    /// releases the closure when it ends.
    public var retryHandler: (@Sendable (RetryEvent) -> Void)? {
        get { networkAttempts.state.withLock { $0.retryHandler } }
        set {
            var handler = newValue
            networkAttempts.state.withLock { state in
                if state.machine.phase != .ended { swap(&state.retryHandler, &handler) }
            }
        }
    }

    /// The attempts that failed so far, even if the operation was canceled.
    ///
    /// The array is empty if the operation has no ``retry`` and no other policy that can start another attempt.
    public var failedAttempts: [AttemptRecord] { networkAttempts.records }

    /// A key that tells the server that a repeated request is the same request.
    ///
    /// `POST` and `PATCH` requests with a key are retried, too. The default is `nil`.
    public var idempotencyKey: IdempotencyKey? {
        get { networkAttempts.state.withLock { $0.idempotencyKey } }
        set { networkAttempts.state.withLock { $0.idempotencyKey = newValue } }
    }
}

extension NetworkAttempts {
    func set(_ retry: Retry?) {
        set(retry.map(RetryAgent.init))
        set(gate: retry?.originPauses.map(PauseGate.init))
    }
}

extension RetryEvent {
    init(
        _ attempt: FailedAttempt, _ weighing: RetryMachine.Weighing, _ moment: RetryMachine.Moment, of retry: Retry
    ) {
        self.init(
            attempt: attempt.number, error: attempt.error, pause: weighing.pause, reason: weighing.reason,
            rule: weighing.rule,
            budgetLeft: attempt.request.flatMap { request in retry.budget.map { $0.left(for: request.origin) } },
            timeLeft: retry.policy.window.map { max($0 - moment.elapsed, .zero) },
            deadlineLeft: moment.left.map { max($0, .zero) })
    }
}
