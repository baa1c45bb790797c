// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

// To be set before the start.
extension AnyNetworkOperation {
    /// How the operation repeats an attempt that failed; not at all if nil, as from the start.
    ///
    /// In a group whose network operations repeat, one on which it was never set does as they do, from its beginning on.
    public var retry: Retry? {
        get { networkAttempts.policy(of: RetryAgent.self)?.retry }
        set {
            guard maySet("retry") else { return }
            networkAttempts.say(.retry)
            networkAttempts.set(newValue)
        }
    }

    /// Told of each decision about an attempt that failed, on the callback queue; kept until the operation ended.
    ///
    /// It is called before the handler of the failure, and never after a cancellation.
    public var retryHandler: (@Sendable (RetryEvent) -> Void)? {
        get { networkAttempts.state.withLock { $0.retryHandler } }
        set {
            var handler = newValue
            networkAttempts.state.withLock { state in
                if state.machine.phase != .ended { swap(&state.retryHandler, &handler) }
            }
        }
    }

    /// The attempts that failed so far, also where the operation was cancelled; empty if it was not to repeat any.
    public var failedAttempts: [AttemptRecord] { networkAttempts.records }

    /// A key by which the server knows that a repeated request is the same; with it, POST and PATCH are repeated, too.
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

extension NetworkError {
    /// How long the server asked to wait before the next request (`Retry-After`), counted from its answer.
    public var retryAfter: Duration? {
        get { details?.retryAfter }
        set { change { $0.retryAfter = newValue } }
    }
}
