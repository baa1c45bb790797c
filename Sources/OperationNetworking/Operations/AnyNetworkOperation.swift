// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
@_spi(Subclassing) import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The protocol to which all network operations conform, regardless of their result types.
///
/// For example, a delegate receives a value of this type and can read the error without a cast:
///
/// ```swift
/// func describe(_ operation: any AnyNetworkOperation) -> String {
///     if let error = operation.networkError { return error.message }
///     let count = operation.receivedData?.count ?? 0
///     return "\(count) bytes, attempt \(operation.attemptCount)"
/// }
/// ```
///
/// Only ``NetworkOperation`` and its subclasses may conform to this protocol. If another type conforms, the process
/// stops as soon as you use a member that needs the state of the request.
public protocol AnyNetworkOperation: ResultOperation where ErrorType == NetworkError {
    /// Starts, suspends or resumes the operation, depending on its state.
    ///
    /// - Returns: The state of the operation after the call.
    @discardableResult
    func toggle() -> OperationState
}

extension AnyNetworkOperation {
    /// The object that performs the attempts of the operation.
    package var networkAttempts: NetworkAttempts {
        guard let attempts = attachment as? NetworkAttempts else {
            preconditionFailure(
                "\(type(of: self)) conforms to AnyNetworkOperation. Only NetworkOperation and its subclasses can.")
        }
        return attempts
    }

    /// The outcome of the operation, with a result of the type `any Sendable`.
    ///
    /// The value is `nil` until the operation has its outcome. If you know the type of the operation, read `outcome`
    /// instead.
    public var anyOutcome: OperationOutcome<any Sendable, NetworkError>? {
        (self as? any AttemptOwner)?.outcomeOfAnyType
    }

    /// The error with which the operation failed, or `nil` if the operation did not fail.
    ///
    /// The value is also `nil` before the operation has its outcome.
    public var networkError: NetworkError? { anyOutcome?.error }

    /// The unchanged body of the last response, or `nil` if the body is not available.
    ///
    /// The body is available even if the operation could not create a result from it. The value is `nil` if the body is
    /// incomplete or if the operation does not keep the body in memory. The value is also `nil` if the operation did
    /// not accept the status code or the content type. In this case, the error's ``NetworkError/bodyPrefix`` contains
    /// the first bytes of the body.
    public var receivedData: Data? { (self as? any AttemptOwner)?.anyTaskResult as? Data }

    /// The request of the current or last attempt.
    ///
    /// The value is `nil` until the first attempt has prepared its request.
    public var request: NetworkRequest? { networkAttempts.request }

    /// The response of the current or last attempt, or `nil` if its headers have not arrived.
    public var response: HTTPURLResponse? { networkAttempts.response }

    /// The status and headers of the current or last attempt's response, or `nil` if they have not arrived.
    public var responseHead: ResponseHead? { networkAttempts.head }

    /// The network task of the current or last attempt, or `nil` if there is no task.
    ///
    /// If you cancel the network task, the operation is also canceled.
    public var networkTask: (any NetworkTask)? { networkAttempts.task }

    /// The metrics of the operation's last transfer, or `nil` if they are not available.
    public var metrics: TransferMetrics? { networkAttempts.metrics }

    /// The number of attempts that the operation has begun.
    public var attemptCount: Int { networkAttempts.count }

    /// The progress of sending the request body.
    public var uploadProgress: TransferProgress { networkAttempts.reporter.upload }

    /// The progress of receiving the response body.
    public var downloadProgress: TransferProgress { networkAttempts.reporter.download }

    /// A closure that the operation calls on its callback queue with the progress of sending the request body.
    ///
    /// After a cancellation, the operation does not call the closure.
    public var uploadProgressHandler: (@Sendable (TransferProgress) -> Void)? {
        get { networkAttempts.reporter.listeners { $0.upload } }
        set { networkAttempts.reporter.set(\.upload, newValue) }
    }

    /// A closure that the operation calls on its callback queue with the progress of receiving the response body.
    ///
    /// After a cancellation, the operation does not call the closure.
    public var downloadProgressHandler: (@Sendable (TransferProgress) -> Void)? {
        get { networkAttempts.reporter.listeners { $0.download } }
        set { networkAttempts.reporter.set(\.download, newValue) }
    }

    /// The minimum number of bytes and the minimum time between progress reports.
    public var progressPacing: ProgressPacing {
        get { networkAttempts.reporter.listeners { $0.pacing } }
        set { networkAttempts.reporter.set(pacing: newValue) }
    }

    /// A Foundation `Progress` object that represents the progress of the operation in bytes.
    ///
    /// Use the object in the user interface, or add it to a tree of `Progress` objects. Read this property before the
    /// operation starts, so that the object receives all updates. The operation updates the object on its callback
    /// queue. If you cancel, pause or resume the object, the operation is canceled, suspended or resumed, respectively.
    public var progress: Progress {
        if let known = networkAttempts.reporter.listeners({ $0.foundation }) { return known.progress }
        let made = FoundationProgress(for: self)
        return networkAttempts.reporter.change { listeners in
            if let known = listeners.foundation { return known.progress }
            listeners.foundation = made
            return made.progress
        }
    }

    /// The delegate whose methods the operation calls on its callback queue, in addition to the handlers.
    ///
    /// The operation keeps a weak reference to the delegate. For an object that is isolated to the main actor, such as
    /// a view controller, use ``mainActorDelegate``.
    public var delegate: (any NetworkOperationDelegate)? {
        get { networkAttempts.reporter.listeners { $0.delegate } }
        set {
            let owner = self as? any AttemptOwner
            networkAttempts.reporter.set(\.operation, owner)
            networkAttempts.reporter.set(delegate: newValue)
            owner?.notifyDelegateOfEnd()
        }
    }
}

// Closures that receive the operation in its own type. These closures do not keep the operation alive.
extension AnyNetworkOperation {
    /// Sets a closure that receives the operation and the progress of sending the request body.
    ///
    /// The closure replaces the ``uploadProgressHandler``. The operation calls the closure on its callback queue, but
    /// not after a cancellation.
    @discardableResult
    public func onUploadProgress(_ body: @escaping @Sendable (Self, TransferProgress) -> Void) -> Self {
        uploadProgressHandler = { [weak self] progress in
            if let self { body(self, progress) }
        }
        return self
    }

    /// Sets a closure that receives the operation and the progress of receiving the response body.
    ///
    /// The closure replaces the ``downloadProgressHandler``. The operation calls the closure on its callback queue, but
    /// not after a cancellation.
    @discardableResult
    public func onDownloadProgress(_ body: @escaping @Sendable (Self, TransferProgress) -> Void) -> Self {
        downloadProgressHandler = { [weak self] progress in
            if let self { body(self, progress) }
        }
        return self
    }

    /// Adds a closure that receives the operation and its result when the operation succeeds.
    ///
    /// The operation calls the closure on its callback queue, after the handlers and the closures that you added
    /// earlier.
    @discardableResult
    public func onSuccess(_ body: @escaping @Sendable (Self, ResultType) -> Void) -> Self {
        onEnd { outcome in
            if case .success(let result) = outcome { { body($0, result) } } else { nil }
        }
    }

    /// Adds a closure that receives the operation and its error when the operation fails.
    ///
    /// The operation calls the closure on its callback queue, after the handlers and the closures that you added
    /// earlier.
    @discardableResult
    public func onFailure(_ body: @escaping @Sendable (Self, NetworkError) -> Void) -> Self {
        onEnd { outcome in
            if case .failure(let error) = outcome { { body($0, error) } } else { nil }
        }
    }

    /// Adds a closure that receives the operation, and its error if there is one, when the operation succeeds or fails.
    ///
    /// The operation calls the closure on its callback queue, after the handlers and the closures that you added
    /// earlier. If the operation is canceled, for example by its timeout or deadline, it does not call the closure. To
    /// handle cancellations, use ``onCancellation(_:)``.
    ///
    /// - Parameter body: A closure that receives the operation and its error. If the operation succeeds, the error is
    ///   `nil`.
    @discardableResult
    public func onCompletion(_ body: @escaping @Sendable (Self, NetworkError?) -> Void) -> Self {
        onEnd { outcome in
            if outcome.cancellationCause == nil { { body($0, outcome.error) } } else { nil }
        }
    }

    /// Adds a closure that receives the operation and the cause when the operation is canceled.
    ///
    /// The operation calls the closure on its callback queue, after the handlers and the closures that you added
    /// earlier. If the operation is freed before it ends, the closure is not called. Therefore, keep a reference to the
    /// operation until it ends, or add the operation to a queue, or start it with `startAndKeepAlive()`.
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
            // A cancellation may come from the operation's own `deinit`, where nothing may keep the operation. The weak
            // reference is `nil` there.
            guard let self, let operation = operation as? TypedOperation<ResultType, NetworkError>,
                let outcome = operation.outcome, let body = choose(outcome)
            else { return }
            let queue = queue ?? operation.callbackQueue
            let call = { @Sendable in body(self) }
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
    /// Adds a closure that the operation calls on the main actor with the progress of sending the request body.
    ///
    /// The operation calls the closure for the last time before it reports its outcome. After a cancellation, the
    /// operation does not call the closure.
    @discardableResult
    public func onMainActor(uploadProgress body: @escaping @MainActor (TransferProgress) -> Void) -> Self {
        addOnMainActor { if case .sent(let progress) = $1 { body(progress) } }
    }

    /// Adds a closure that the operation calls on the main actor with the progress of receiving the response body.
    ///
    /// The operation calls the closure for the last time before it reports its outcome. After a cancellation, the
    /// operation does not call the closure.
    @discardableResult
    public func onMainActor(downloadProgress body: @escaping @MainActor (TransferProgress) -> Void) -> Self {
        addOnMainActor { if case .received(let progress) = $1 { body(progress) } }
    }

    /// Adds a closure that the operation calls on the main actor with each decision about a failed attempt.
    ///
    /// After a cancellation, the operation does not call the closure. When the operation ends, it releases the closure.
    @discardableResult
    public func onMainActor(retry body: @escaping @MainActor (RetryEvent) -> Void) -> Self {
        addOnMainActor { if case .decided(let event) = $1 { body(event) } }
    }

    /// Adds a closure that the operation calls on the main actor when the operation begins to wait for the network.
    ///
    /// The closure receives the operation. The operation waits only if its ``offline`` policy allows a wait. After the
    /// operation ends, it does not call the closure.
    @discardableResult
    public func onMainActor(offline body: @escaping @MainActor (Self) -> Void) -> Self {
        addOnMainActor { [weak self] _, event in
            if case .waitsForNetwork = event, let self { body(self) }
        }
    }

    /// Adds a closure that the operation calls on the main actor when the operation succeeds or fails.
    ///
    /// If the operation is canceled, for example by its timeout or deadline, it does not call the closure. To hide a
    /// progress indicator, use `onMainActor(outcome:)`, which also handles cancellations.
    ///
    /// - Parameter body: A closure that receives the operation and its error. If the operation succeeds, the error is
    ///   `nil`.
    @discardableResult
    public func onMainActor(completion body: @escaping @MainActor (Self, NetworkError?) -> Void) -> Self {
        onEnd(on: .main) { outcome in
            guard outcome.cancellationCause == nil else { return nil }
            return { operation in MainActor.assumeIsolated { body(operation, outcome.error) } }
        }
    }

    /// The delegate whose methods the operation calls on the main actor.
    ///
    /// The operation keeps a weak reference to the delegate. The operation also calls its handlers and its
    /// ``delegate``. If you set this property after the operation ends, the operation still notifies the delegate of
    /// the end.
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
    ///     func networkOperation(
    ///         _ operation: any AnyNetworkOperation,
    ///         didReceive progress: TransferProgress
    ///     ) {
    ///         fraction = progress.fraction ?? 0
    ///     }
    /// }
    /// ```
    @MainActor public var mainActorDelegate: (any MainActorNetworkOperationDelegate)? {
        get { networkAttempts.reporter.mainActorCallbacks?.delegate }
        set {
            guard let owner = self as? any AttemptOwner else { return }
            networkAttempts.reporter.mainActorCallbacks(of: owner).delegate = newValue
            if newValue != nil { owner.notifyDelegateOfEnd() }
        }
    }

    @discardableResult
    func addOnMainActor(_ callback: @escaping MainActorCallbacks.Callback) -> Self {
        if let owner = self as? any AttemptOwner {
            networkAttempts.reporter.mainActorCallbacks(of: owner).add(callback)
            // After the end, this call releases the closure.
            owner.notifyDelegateOfEnd()
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
