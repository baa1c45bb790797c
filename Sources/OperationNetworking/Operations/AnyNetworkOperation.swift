// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A network operation of any type: what delegates get, and what all network operations have in common.
///
/// A delegate reads the outcome without a cast:
///
/// ```swift
/// func describe(_ operation: any AnyNetworkOperation) -> String {
///     if let error = operation.networkError { return error.message }
///     return "\(operation.receivedData?.count ?? 0) bytes, attempt \(operation.attemptCount)"
/// }
/// ```
///
/// Only ``NetworkOperation`` conforms to it.
public protocol AnyNetworkOperation: ResultOperation where ErrorType == NetworkError {
    /// What carries out the attempts; there is nothing in it for users.
    var networkAttempts: NetworkAttempts { get }
    /// The queue on which the operation calls its handlers, under a name that nobody else uses.
    var callbackQueueOfAttempts: DispatchQueue { get }

    /// Starts, suspends or resumes the operation, whichever comes next, and returns the state after that.
    @discardableResult
    func toggle() -> OperationState
}

extension AnyNetworkOperation {
    /// The outcome, with its result as a value of any type; `nil` until the outcome is decided.
    ///
    /// If you know the type of the operation, read `outcome` instead.
    public var anyOutcome: OperationOutcome<any Sendable, NetworkError>? {
        (self as? any AttemptHost)?.outcomeOfAnyType
    }

    /// The error of an operation that failed; `nil` before its end, after a success and after a cancellation.
    public var networkError: NetworkError? { anyOutcome?.error }

    /// The body of the last response as it came, also if it could not be made into a result.
    ///
    /// It is `nil` until the body is complete, if the status was not accepted, and if the operation does not keep the body
    /// in memory. The first bytes of a response that was not accepted are the ``NetworkError/bodyPrefix`` of the
    /// ``networkError``.
    public var receivedData: Data? { (self as? any AttemptHost)?.anyTaskResult as? Data }

    /// The request of the present attempt, or the last one, as it was handed to the session; nil before that.
    public var request: NetworkRequest? { networkAttempts.request }

    /// The response of the present attempt, or the last one, as soon as its head came.
    public var response: HTTPURLResponse? { networkAttempts.response }

    /// The head of that response, with its fields in their order.
    public var responseHead: ResponseHead? { networkAttempts.head }

    /// The task of the present attempt, or the last one.
    ///
    /// Cancelling it ends the operation as cancelled.
    public var networkTask: (any NetworkTask)? { networkAttempts.task }

    /// How the last transfer spent its time.
    public var metrics: TransferMetrics? { networkAttempts.metrics }

    /// How many attempts were begun.
    public var attemptCount: Int { networkAttempts.count }

    /// How much of the request's body was sent.
    public var uploadProgress: TransferProgress { networkAttempts.teller.upload }

    /// How much of the response's body was received.
    public var downloadProgress: TransferProgress { networkAttempts.teller.download }

    /// Called while the request's body is sent, on the callback queue; never after a cancellation.
    public var uploadProgressHandler: (@Sendable (TransferProgress) -> Void)? {
        get { networkAttempts.teller.listeners { $0.upload } }
        set { networkAttempts.teller.set(\.upload, newValue) }
    }

    /// Called while the response's body is received, on the callback queue; never after a cancellation.
    public var downloadProgressHandler: (@Sendable (TransferProgress) -> Void)? {
        get { networkAttempts.teller.listeners { $0.download } }
        set { networkAttempts.teller.set(\.download, newValue) }
    }

    /// How often progress is told.
    public var progressPacing: ProgressPacing {
        get { networkAttempts.teller.listeners { $0.pacing } }
        set { networkAttempts.teller.set(pacing: newValue) }
    }

    /// The progress for Foundation, to be shown or to be hung into a tree of others; ask for it before the start.
    ///
    /// It is kept on the callback queue, counts bytes, and cancels, suspends and resumes the operation.
    public var progress: Progress {
        if let known = networkAttempts.teller.listeners({ $0.foundation }) { return known.progress }
        let made = FoundationProgress(for: self)
        return networkAttempts.teller.listeners { listeners in
            if let known = listeners.foundation { return known.progress }
            listeners.foundation = made
            return made.progress
        }
    }

    /// An object that is told what happens, on the callback queue, beside the handlers; it is not kept alive.
    ///
    /// For an object of the main actor, such as a view controller, see ``mainActorDelegate``.
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
