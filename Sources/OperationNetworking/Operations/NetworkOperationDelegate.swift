// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// The methods that notify an object of the events of a network operation.
///
/// All methods are called on the operation's callback queue. After a cancellation, only
/// ``networkOperation(_:wasCancelledBecause:)`` is called. Each method does nothing unless you implement it. You can
/// use one object as the delegate of many operations.
///
/// For an object that is isolated to the main actor, use ``MainActorNetworkOperationDelegate`` instead.
public protocol NetworkOperationDelegate: AnyObject, Sendable {
    /// Tells the delegate that a part of the request's body was sent.
    func networkOperation(_ operation: any AnyNetworkOperation, didSend progress: TransferProgress)

    /// Tells the delegate that a part of the response's body was received.
    func networkOperation(_ operation: any AnyNetworkOperation, didReceive progress: TransferProgress)

    /// Tells the delegate that an attempt failed, and whether the operation will repeat it.
    func networkOperation(_ operation: any AnyNetworkOperation, didDecide event: RetryEvent)

    /// Tells the delegate that the operation begins to wait for the network.
    ///
    /// The operation calls this method each time that it begins to wait.
    func networkOperationWaitsForNetwork(_ operation: any AnyNetworkOperation)

    /// Tells the delegate that the operation failed with an error, or succeeded if `error` is `nil`.
    ///
    /// The result is in the operation's ``AnyNetworkOperation/anyOutcome``.
    func networkOperation(_ operation: any AnyNetworkOperation, didFinishWith error: NetworkError?)

    /// Tells the delegate that the operation was canceled.
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

/// The methods of a ``NetworkOperationDelegate`` for an object that is isolated to the main actor, such as a view
/// controller.
///
/// A class that adopts this protocol needs neither `nonisolated` nor `@preconcurrency`:
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
/// Set such an object as the ``AnyNetworkOperation/mainActorDelegate``. Each method does nothing unless you implement
/// it. After a cancellation, only ``networkOperation(_:wasCancelledBecause:)`` is called.
@MainActor
public protocol MainActorNetworkOperationDelegate: AnyObject {
    /// Tells the delegate that a part of the request's body was sent.
    func networkOperation(_ operation: any AnyNetworkOperation, didSend progress: TransferProgress)

    /// Tells the delegate that a part of the response's body was received.
    func networkOperation(_ operation: any AnyNetworkOperation, didReceive progress: TransferProgress)

    /// Tells the delegate that an attempt failed, and whether the operation will repeat it.
    func networkOperation(_ operation: any AnyNetworkOperation, didDecide event: RetryEvent)

    /// Tells the delegate that the operation begins to wait for the network.
    ///
    /// The operation calls this method each time that it begins to wait.
    func networkOperationWaitsForNetwork(_ operation: any AnyNetworkOperation)

    /// Tells the delegate that the operation failed with an error, or succeeded if `error` is `nil`.
    ///
    /// The result is in the operation's ``AnyNetworkOperation/anyOutcome``.
    func networkOperation(_ operation: any AnyNetworkOperation, didFinishWith error: NetworkError?)

    /// Tells the delegate that the operation was canceled.
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
