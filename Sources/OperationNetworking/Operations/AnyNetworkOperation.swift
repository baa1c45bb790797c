// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A protocol to which every network operation conforms, regardless of its result type.
///
/// Delegates receive a value of this type, and can read the outcome without a cast:
///
/// ```swift
/// func describe(_ operation: any AnyNetworkOperation) -> String {
///     if let error = operation.networkError { return error.message }
///     return "\(operation.receivedData?.count ?? 0) bytes, attempt \(operation.attemptCount)"
/// }
/// ```
///
/// Only ``NetworkOperation`` and its subclasses conform to this protocol.
public protocol AnyNetworkOperation: ResultOperation where ErrorType == NetworkError {
    /// An internal object that performs the attempts.
    var networkAttempts: NetworkAttempts { get }
    /// The queue on which the operation calls its handlers, under a name that no other type uses.
    var callbackQueueOfAttempts: DispatchQueue { get }

    /// Starts, suspends or resumes the operation, depending on its state.
    ///
    /// - Returns: The state of the operation after the call.
    @discardableResult
    func toggle() -> OperationState
}

extension AnyNetworkOperation {
    /// The outcome, with a result of any type.
    ///
    /// The value is `nil` until the outcome is decided. If you know the type of the operation, read `outcome`
    /// instead.
    public var anyOutcome: OperationOutcome<any Sendable, NetworkError>? {
        (self as? any AttemptHost)?.outcomeOfAnyType
    }

    /// The error with which the operation failed.
    ///
    /// The value is `nil` before the operation ends, after a success and after a cancellation.
    public var networkError: NetworkError? { anyOutcome?.error }

    /// The unchanged body of the last response.
    ///
    /// The value is also available if no result could be created from the body. The value is `nil` until the body is
    /// complete, if the status was not accepted, and if the operation does not keep the body in memory. For a response
    /// that was not accepted, ``NetworkError/bodyPrefix`` of the ``networkError`` contains the first bytes.
    public var receivedData: Data? { (self as? any AttemptHost)?.anyTaskResult as? Data }

    /// The request of the current or last attempt, as the session received it.
    ///
    /// The value is `nil` until the first attempt passes its request to the session.
    public var request: NetworkRequest? { networkAttempts.request }

    /// The response of the current or last attempt, available as soon as its headers arrive.
    public var response: HTTPURLResponse? { networkAttempts.response }

    /// The status and the headers of the ``response``, with the headers in the order in which they were received.
    public var responseHead: ResponseHead? { networkAttempts.head }

    /// The task of the current or last attempt.
    ///
    /// Canceling the task cancels the operation.
    public var networkTask: (any NetworkTask)? { networkAttempts.task }

    /// The time measurements of the last transfer.
    public var metrics: TransferMetrics? { networkAttempts.metrics }

    /// The number of attempts that have begun.
    public var attemptCount: Int { networkAttempts.count }

    /// The progress of sending the request's body.
    public var uploadProgress: TransferProgress { networkAttempts.teller.upload }

    /// The progress of receiving the response's body.
    public var downloadProgress: TransferProgress { networkAttempts.teller.download }

    /// A closure that is called on the callback queue while the request's body is sent, and never after a cancellation.
    public var uploadProgressHandler: (@Sendable (TransferProgress) -> Void)? {
        get { networkAttempts.teller.listeners { $0.upload } }
        set { networkAttempts.teller.set(\.upload, newValue) }
    }

    /// A closure that is called on the callback queue while the response's body is received, and never after a
    /// cancellation.
    public var downloadProgressHandler: (@Sendable (TransferProgress) -> Void)? {
        get { networkAttempts.teller.listeners { $0.download } }
        set { networkAttempts.teller.set(\.download, newValue) }
    }

    /// The minimum number of bytes and the minimum time between two progress reports.
    public var progressPacing: ProgressPacing {
        get { networkAttempts.teller.listeners { $0.pacing } }
        set { networkAttempts.teller.set(pacing: newValue) }
    }

    /// A Foundation `Progress` object, to show in the user interface or to add to a tree of other `Progress` objects.
    ///
    /// Read this property before the operation starts. The object is updated on the callback queue and counts bytes.
    /// Canceling, pausing or resuming the object cancels, suspends or resumes the operation.
    public var progress: Progress {
        if let known = networkAttempts.teller.listeners({ $0.foundation }) { return known.progress }
        let made = FoundationProgress(for: self)
        return networkAttempts.teller.listeners { listeners in
            if let known = listeners.foundation { return known.progress }
            listeners.foundation = made
            return made.progress
        }
    }

    /// The delegate, which is notified of events on the callback queue, in addition to the handlers.
    ///
    /// The operation does not keep the delegate alive. For an object that is isolated to the main actor, such as a view
    /// controller, see ``mainActorDelegate``.
    public var delegate: (any NetworkOperationDelegate)? {
        get { networkAttempts.teller.listeners { $0.delegate } }
        set {
            let host = self as? any AttemptHost
            networkAttempts.teller.set(\.operation, host)
            networkAttempts.teller.set(delegate: newValue)
            host?.tellDelegateOfEnd()
        }
    }
}

// Closures that receive the operation in its own type. These closures do not keep the operation alive.
extension AnyNetworkOperation {
    /// Sets a closure that is called with the operation and the progress while the request's body is sent.
    ///
    /// The closure is called on the callback queue, and never after a cancellation. The closure replaces the
    /// ``uploadProgressHandler``.
    @discardableResult
    public func onUploadProgress(_ body: @escaping @Sendable (Self, TransferProgress) -> Void) -> Self {
        uploadProgressHandler = { [weak self] progress in
            if let self { body(self, progress) }
        }
        return self
    }

    /// Sets a closure that is called with the operation and the progress while the response's body is received.
    ///
    /// The closure is called on the callback queue, and never after a cancellation. The closure replaces the
    /// ``downloadProgressHandler``.
    @discardableResult
    public func onDownloadProgress(_ body: @escaping @Sendable (Self, TransferProgress) -> Void) -> Self {
        downloadProgressHandler = { [weak self] progress in
            if let self { body(self, progress) }
        }
        return self
    }

    /// Adds a closure that is called with the operation and its result when the operation succeeds.
    ///
    /// The closure is called on the callback queue, after the handlers. Each call of this method adds a closure.
    @discardableResult
    public func onSuccess(_ body: @escaping @Sendable (Self, ResultType) -> Void) -> Self {
        onEnd { outcome in
            if case .success(let result) = outcome { { body($0, result) } } else { nil }
        }
    }

    /// Adds a closure that is called with the operation and its error when the operation fails.
    ///
    /// The closure is called on the callback queue, after the handlers. Each call of this method adds a closure.
    @discardableResult
    public func onFailure(_ body: @escaping @Sendable (Self, NetworkError) -> Void) -> Self {
        onEnd { outcome in
            if case .failure(let error) = outcome { { body($0, error) } } else { nil }
        }
    }

    /// Adds a closure that is called when the operation succeeds or fails.
    ///
    /// The closure receives the operation, and the error if the operation fails. The closure is called on the callback
    /// queue, after the handlers, and never after a cancellation. The timeout and the deadline of an operation also
    /// cancel it. Add ``onCancellation(_:)`` for these cases. Each call of this method adds a closure.
    @discardableResult
    public func onCompletion(_ body: @escaping @Sendable (Self, NetworkError?) -> Void) -> Self {
        onEnd { outcome in
            if outcome.cancellationCause == nil { { body($0, outcome.error) } } else { nil }
        }
    }

    /// Adds a closure that is called with the operation and the cause when the operation is canceled.
    ///
    /// The closure is called on the callback queue, after the handlers. Keep a reference to the operation until then.
    /// If a canceled operation is released before that, the closure is not called. Each call of this method adds a
    /// closure.
    @discardableResult
    public func onCancellation(_ body: @escaping @Sendable (Self, CancellationCause) -> Void) -> Self {
        onEnd { outcome in
            if case .cancelled(let cause) = outcome { { body($0, cause) } } else { nil }
        }
    }

    /// Adds a closure that is called when the operation ends.
    ///
    /// - Parameter choose: A closure that returns the closure to call for an outcome, or `nil`.
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

// Closures that run on the main actor. Each call adds a closure to the handlers and to the closures that were added
// before.
extension AnyNetworkOperation {
    /// Adds a closure that is called on the main actor while the request's body is sent, and never after a
    /// cancellation.
    ///
    /// The last progress report comes before the outcome.
    @discardableResult
    public func onMainActor(uploadProgress body: @escaping @MainActor (TransferProgress) -> Void) -> Self {
        addOnMainActor { if case .sent(let progress) = $1 { body(progress) } }
    }

    /// Adds a closure that is called on the main actor while the response's body is received, and never after a
    /// cancellation.
    ///
    /// The last progress report comes before the outcome.
    @discardableResult
    public func onMainActor(downloadProgress body: @escaping @MainActor (TransferProgress) -> Void) -> Self {
        addOnMainActor { if case .received(let progress) = $1 { body(progress) } }
    }

    /// Adds a closure that is called on the main actor with each decision about a failed attempt, and never after a
    /// cancellation.
    ///
    /// The operation releases the closure when it ends.
    @discardableResult
    public func onMainActor(retry body: @escaping @MainActor (RetryEvent) -> Void) -> Self {
        addOnMainActor { if case .decided(let event) = $1 { body(event) } }
    }

    /// Adds a closure that is called on the main actor each time the operation begins to wait for the network.
    ///
    /// The closure receives the operation, and is never called after the end of the operation. The ``offline`` property
    /// determines whether the operation waits at all.
    @discardableResult
    public func onMainActor(offline body: @escaping @MainActor (Self) -> Void) -> Self {
        addOnMainActor { [weak self] _, event in
            if case .waitsForNetwork = event, let self { body(self) }
        }
    }

    /// Adds a closure that is called on the main actor when the operation succeeds or fails, and never after a
    /// cancellation.
    ///
    /// The closure receives the operation, and the error if the operation fails.
    ///
    /// The timeout and the deadline of an operation also cancel it. So do not hide a progress indicator in this
    /// closure. Use `onMainActor(outcome:)`, which is also called after a cancellation.
    @discardableResult
    public func onMainActor(completion body: @escaping @MainActor (Self, NetworkError?) -> Void) -> Self {
        onEnd(on: .main) { outcome in
            guard outcome.cancellationCause == nil else { return nil }
            return { operation in MainActor.assumeIsolated { body(operation, outcome.error) } }
        }
    }

    /// The delegate that is isolated to the main actor, such as a view controller or a view model.
    ///
    /// The operation does not keep the delegate alive. It calls the methods of the delegate on the main actor,
    /// regardless of the callback queue. These calls come in addition to the handlers and the ``delegate``. If you
    /// set the delegate after the operation ended, the delegate is notified of the end immediately.
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
            // After the end, this call releases the closure.
            host.tellDelegateOfEnd()
        }
        return self
    }
}

/// The settings of the groups around an operation, which it asks for when it begins.
///
/// Each group that has settings for network operations offers this value.
struct InheritedSettings: Sendable {
    /// A closure that applies the settings of all groups around an operation, from the nearest one outward.
    let apply: @Sendable (any AnyNetworkOperation) -> Void
}
