// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

// To be set before the start.
extension AnyNetworkOperation {
    /// How the operation repeats an attempt that failed; not at all if nil, as from the start.
    public var retry: Retry? {
        get { networkAttempts.policy(of: RetryAgent.self)?.retry }
        set { networkAttempts.set(newValue.map(RetryAgent.init)) }
    }

    /// Told of each decision about an attempt that failed, on the callback queue; kept until the operation ended.
    public var retryHandler: (@Sendable (RetryEvent) -> Void)? {
        get { networkAttempts.state.withLock { $0.retryHandler } }
        set {
            var handler = newValue
            networkAttempts.state.withLock { swap(&$0.retryHandler, &handler) }
        }
    }

    /// A key by which the server knows that a repeated request is the same; with it, POST and PATCH are repeated, too.
    public var idempotencyKey: IdempotencyKey? {
        get { networkAttempts.state.withLock { $0.idempotencyKey } }
        set { networkAttempts.state.withLock { $0.idempotencyKey = newValue } }
    }
}

extension NetworkError {
    /// How long the server asked to wait before the next request (`Retry-After`), as far as retry looked at it.
    public var retryAfter: Duration? {
        get { details?.retryAfter }
        set { change { $0.retryAfter = newValue } }
    }
}
