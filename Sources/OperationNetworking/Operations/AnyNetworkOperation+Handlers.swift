// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

// Closures that get the operation, in its own type. The operation does not keep itself alive by them.
extension AnyNetworkOperation {
    /// Calls `body` with the operation and the progress while the request's body is sent.
    ///
    /// It is called on the callback queue, never after a cancellation. It replaces the ``uploadProgressHandler``.
    @discardableResult
    public func onUploadProgress(_ body: @escaping @Sendable (Self, TransferProgress) -> Void) -> Self {
        uploadProgressHandler = { [weak self] progress in
            if let self { body(self, progress) }
        }
        return self
    }

    /// Calls `body` with the operation and the progress while the response's body is received.
    ///
    /// It is called on the callback queue, never after a cancellation. It replaces the ``downloadProgressHandler``.
    @discardableResult
    public func onDownloadProgress(_ body: @escaping @Sendable (Self, TransferProgress) -> Void) -> Self {
        downloadProgressHandler = { [weak self] progress in
            if let self { body(self, progress) }
        }
        return self
    }

    /// Calls `body` with the operation and its result when it succeeds.
    ///
    /// It is called on the callback queue, after the handlers. Each call of this method adds a closure.
    @discardableResult
    public func onSuccess(_ body: @escaping @Sendable (Self, ResultType) -> Void) -> Self {
        onEnd { outcome in
            if case .success(let result) = outcome { { body($0, result) } } else { nil }
        }
    }

    /// Calls `body` with the operation and its error when it fails.
    ///
    /// It is called on the callback queue, after the handlers. Each call of this method adds a closure.
    @discardableResult
    public func onFailure(_ body: @escaping @Sendable (Self, NetworkError) -> Void) -> Self {
        onEnd { outcome in
            if case .failure(let error) = outcome { { body($0, error) } } else { nil }
        }
    }

    /// Calls `body` with the operation when it succeeds, and with the operation and its error when it fails.
    ///
    /// It is called on the callback queue, after the handlers, and never after a cancellation. The timeout and the deadline of
    /// an operation cancel it, too: add ``onCancellation(_:)`` for them. Each call of this method adds a closure.
    @discardableResult
    public func onCompletion(_ body: @escaping @Sendable (Self, NetworkError?) -> Void) -> Self {
        onEnd { outcome in
            if outcome.cancellationCause == nil { { body($0, outcome.error) } } else { nil }
        }
    }

    /// Calls `body` with the operation and the cause when it is canceled.
    ///
    /// It is called on the callback queue, after the handlers. Keep the operation until then: a canceled operation that
    /// is freed earlier cannot be handed over. Each call of this method adds a closure.
    @discardableResult
    public func onCancellation(_ body: @escaping @Sendable (Self, CancellationCause) -> Void) -> Self {
        onEnd { outcome in
            if case .cancelled(let cause) = outcome { { body($0, cause) } } else { nil }
        }
    }

    /// Adds a closure for the end.
    ///
    /// - Parameter choose: Returns what to call after this outcome; `nil` for nothing.
    private func onEnd(
        on queue: DispatchQueue? = nil,
        _ choose: @escaping @Sendable (OperationOutcome<ResultType, NetworkError>) -> (@Sendable (Self) -> Void)?
    ) -> Self {
        addObserver(isWaiter: false) { [weak self] operation in
            guard let operation = operation as? TypedOperation<ResultType, NetworkError>,
                let outcome = operation.outcome, let body = choose(outcome)
            else { return }
            let queue = queue ?? operation.callbackQueue
            let call = { @Sendable [weak self] in
                if let self { body(self) }
            }
            // A cancellation may come from the operation's own `deinit`, where nothing may keep the operation.
            if outcome.cancellationCause != nil {
                queue.async(execute: call)
            } else {
                operation.enqueueHandler(on: queue, call)
            }
        }
        return self
    }
}

// Closures that run on the main actor. Each call adds one, beside the handlers and those that were added before.
extension AnyNetworkOperation {
    /// Calls `body` on the main actor while the request's body is sent, never after a cancellation.
    ///
    /// The last progress comes before the outcome.
    @discardableResult
    public func onMainActor(uploadProgress body: @escaping @MainActor (TransferProgress) -> Void) -> Self {
        addOnMainActor { if case .sent(let progress) = $1 { body(progress) } }
    }

    /// Calls `body` on the main actor while the response's body is received, never after a cancellation.
    ///
    /// The last progress comes before the outcome.
    @discardableResult
    public func onMainActor(downloadProgress body: @escaping @MainActor (TransferProgress) -> Void) -> Self {
        addOnMainActor { if case .received(let progress) = $1 { body(progress) } }
    }

    /// Calls `body` on the main actor with each decision about an attempt that failed, never after a cancellation.
    ///
    /// It is released when the operation ends.
    @discardableResult
    public func onMainActor(retry body: @escaping @MainActor (RetryEvent) -> Void) -> Self {
        addOnMainActor { if case .decided(let event) = $1 { body(event) } }
    }

    /// Calls `body` on the main actor with the operation each time the operation begins to wait for the network.
    ///
    /// It is never called after the end of the operation. ``offline`` says whether the operation waits at all.
    @discardableResult
    public func onMainActor(offline body: @escaping @MainActor (Self) -> Void) -> Self {
        addOnMainActor { [weak self] _, event in
            if case .waitsForNetwork = event, let self { body(self) }
        }
    }

    /// Calls `body` on the main actor with the operation when it succeeds, and with the operation and its error when it
    /// fails; never after a cancellation.
    ///
    /// The timeout and the deadline of an operation cancel it, too. So do not hide a progress indicator in this closure. Use
    /// `onMainActor(outcome:)`, which is also called after a cancellation.
    @discardableResult
    public func onMainActor(completion body: @escaping @MainActor (Self, NetworkError?) -> Void) -> Self {
        onEnd(on: .main) { outcome in
            guard outcome.cancellationCause == nil else { return nil }
            return { operation in MainActor.assumeIsolated { body(operation, outcome.error) } }
        }
    }

    /// An object of the main actor, such as a view controller or a view model, that is notified of each event.
    ///
    /// The operation does not keep it alive. Its methods are called on the main actor, whatever the callback queue is, beside
    /// the handlers and the ``delegate``. If you set it after the operation ended, it is notified of the end immediately.
    ///
    /// ```swift
    /// @MainActor
    /// final class CoverModel: MainActorNetworkOperationDelegate {
    ///     private(set) var fraction = 0.0
    ///
    ///     func load(_ operation: NetworkDataOperation<Data>) {
    ///         operation.mainActorDelegate = self
    ///         operation.start()
    ///     }
    ///
    ///     func networkOperation(_ operation: any AnyNetworkOperation, didReceive progress: TransferProgress) {
    ///         fraction = progress.fraction ?? 0
    ///     }
    /// }
    /// ```
    @MainActor public var mainActorDelegate: (any MainActorNetworkOperationDelegate)? {
        get { networkAttempts.teller.mainActorCallbacks?.delegate }
        set {
            guard let host = self as? any AttemptHost else { return }
            networkAttempts.teller.mainActorCallbacks(of: host).delegate = newValue
            if newValue != nil { host.tellDelegateOfEnd() }
        }
    }

    @discardableResult
    func addOnMainActor(_ callback: @escaping MainActorCallbacks.Callback) -> Self {
        if let host = self as? any AttemptHost {
            networkAttempts.teller.mainActorCallbacks(of: host).add(callback)
            // After the end, this releases it.
            host.tellDelegateOfEnd()
        }
        return self
    }
}
