// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Is told what happens to a network operation: the way in for those who prefer objects to closures.
///
/// All calls come on the operation's callback queue, and those that the closures would not get do not come either: after
/// a cancellation there is only that. Each is empty unless implemented. One object may serve many operations.
///
/// An object of the main actor adopts ``MainActorNetworkOperationDelegate`` instead.
public protocol NetworkOperationDelegate: AnyObject, Sendable {
    /// So much of the request's body was sent.
    func networkOperation(_ operation: any AnyNetworkOperation, didSend progress: TransferProgress)

    /// So much of the response's body was received.
    func networkOperation(_ operation: any AnyNetworkOperation, didReceive progress: TransferProgress)

    /// An attempt failed, and it was decided what becomes of it.
    func networkOperation(_ operation: any AnyNetworkOperation, didDecide event: RetryEvent)

    /// It waits since the network is gone, once for each time that this is so.
    func networkOperationWaitsForNetwork(_ operation: any AnyNetworkOperation)

    /// It ended, with an error or with a result, which is the operation's ``AnyNetworkOperation/anyOutcome``.
    func networkOperation(_ operation: any AnyNetworkOperation, didFinishWith error: NetworkError?)

    /// It was cancelled.
    func networkOperation(_ operation: any AnyNetworkOperation, wasCancelledBecause cause: CancellationCause)
}

extension NetworkOperationDelegate {
    /// Does nothing.
    public func networkOperation(_ operation: any AnyNetworkOperation, didSend progress: TransferProgress) {}

    /// Does nothing.
    public func networkOperation(_ operation: any AnyNetworkOperation, didReceive progress: TransferProgress) {}

    /// Does nothing.
    public func networkOperation(_ operation: any AnyNetworkOperation, didDecide event: RetryEvent) {}

    /// Does nothing.
    public func networkOperationWaitsForNetwork(_ operation: any AnyNetworkOperation) {}

    /// Does nothing.
    public func networkOperation(_ operation: any AnyNetworkOperation, didFinishWith error: NetworkError?) {}

    /// Does nothing.
    public func networkOperation(
        _ operation: any AnyNetworkOperation, wasCancelledBecause cause: CancellationCause
    ) {}
}

/// The methods of a ``NetworkOperationDelegate`` for an object of the main actor, such as a view controller.
///
/// A class that adopts it needs neither `nonisolated` nor `@preconcurrency`:
///
/// ```swift
/// @MainActor
/// final class AlbumScreen: MainActorNetworkOperationDelegate {
///     private(set) var text = ""
///
///     func networkOperation(_ operation: any AnyNetworkOperation, didFinishWith error: NetworkError?) {
///         text = error?.message ?? "\(operation.receivedData?.count ?? 0) bytes"
///     }
/// }
/// ```
///
/// Set it as the ``AnyNetworkOperation/mainActorDelegate``. Each method does nothing unless you implement it. After a
/// cancellation only the method about that is called.
@MainActor
public protocol MainActorNetworkOperationDelegate: AnyObject {
    /// A part of the request's body was sent.
    func networkOperation(_ operation: any AnyNetworkOperation, didSend progress: TransferProgress)

    /// A part of the response's body was received.
    func networkOperation(_ operation: any AnyNetworkOperation, didReceive progress: TransferProgress)

    /// An attempt failed, and the operation decided whether to repeat it.
    func networkOperation(_ operation: any AnyNetworkOperation, didDecide event: RetryEvent)

    /// The operation begins to wait for the network.
    func networkOperationWaitsForNetwork(_ operation: any AnyNetworkOperation)

    /// The operation failed with an error, or succeeded if `error` is `nil`.
    ///
    /// The result is the operation's ``AnyNetworkOperation/anyOutcome``.
    func networkOperation(_ operation: any AnyNetworkOperation, didFinishWith error: NetworkError?)

    /// The operation was canceled.
    func networkOperation(_ operation: any AnyNetworkOperation, wasCancelledBecause cause: CancellationCause)
}

extension MainActorNetworkOperationDelegate {
    /// Does nothing.
    public func networkOperation(_ operation: any AnyNetworkOperation, didSend progress: TransferProgress) {}

    /// Does nothing.
    public func networkOperation(_ operation: any AnyNetworkOperation, didReceive progress: TransferProgress) {}

    /// Does nothing.
    public func networkOperation(_ operation: any AnyNetworkOperation, didDecide event: RetryEvent) {}

    /// Does nothing.
    public func networkOperationWaitsForNetwork(_ operation: any AnyNetworkOperation) {}

    /// Does nothing.
    public func networkOperation(_ operation: any AnyNetworkOperation, didFinishWith error: NetworkError?) {}

    /// Does nothing.
    public func networkOperation(
        _ operation: any AnyNetworkOperation, wasCancelledBecause cause: CancellationCause
    ) {}
}
