// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// The methods that a network operation calls to notify its delegate of events.
///
/// The operation calls all methods on its callback queue. After a cancellation, the operation calls only
/// ``networkOperation(_:wasCancelledBecause:)``. All methods are optional, because they have default implementations
/// that do nothing.
///
/// For an object that is isolated to the main actor, use ``MainActorNetworkOperationDelegate``.
public protocol NetworkOperationDelegate: AnyObject, Sendable {
    /// Tells the delegate that the session sent a part of the request body.
    ///
    /// - Parameters:
    ///   - operation: The operation that calls the method.
    ///   - progress: The number of bytes that the session has sent so far, and the size of the request body if it is
    ///     known.
    func networkOperation(_ operation: any AnyNetworkOperation, didSend progress: TransferProgress)

    /// Tells the delegate that the session received a part of the response body.
    ///
    /// - Parameters:
    ///   - operation: The operation that calls the method.
    ///   - progress: The number of bytes that the session has received so far, and the size of the response body if it
    ///     is known.
    func networkOperation(_ operation: any AnyNetworkOperation, didReceive progress: TransferProgress)

    /// Tells the delegate that an attempt failed and whether the operation makes another attempt.
    ///
    /// - Parameters:
    ///   - operation: The operation that calls the method.
    ///   - event: The decision, which contains the error of the attempt and the pause before the next attempt.
    func networkOperation(_ operation: any AnyNetworkOperation, didDecide event: RetryEvent)

    /// Tells the delegate that the operation began to wait for the network.
    ///
    /// The operation calls this method once for each outage during which it waits.
    func networkOperationWaitsForNetwork(_ operation: any AnyNetworkOperation)

    /// Tells the delegate that the operation failed with an error, or succeeded if `error` is `nil`.
    ///
    /// To get the result, read ``AnyNetworkOperation/anyOutcome``.
    ///
    /// - Parameters:
    ///   - operation: The operation that calls the method.
    ///   - error: The error with which the operation failed, or `nil` if the operation succeeded.
    func networkOperation(_ operation: any AnyNetworkOperation, didFinishWith error: NetworkError?)

    /// Tells the delegate that the operation was canceled.
    ///
    /// - Parameters:
    ///   - operation: The operation that calls the method.
    ///   - cause: The cause of the cancellation.
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

/// The methods that a network operation calls on the main actor to notify its delegate of events.
///
/// Use this protocol for objects that are isolated to the main actor, such as view controllers. A class that conforms
/// to the protocol does not need `nonisolated` or `@preconcurrency`:
///
/// ```swift
/// @MainActor
/// final class AlbumScreen: MainActorNetworkOperationDelegate {
///     private(set) var text = ""
///
///     func networkOperation(
///         _ operation: any AnyNetworkOperation, didFinishWith error: NetworkError?
///     ) {
///         text = error?.message ?? "\(operation.receivedData?.count ?? 0) bytes"
///     }
/// }
/// ```
///
/// Set the object as the ``AnyNetworkOperation/mainActorDelegate`` of the operation. All methods are optional, because
/// they have default implementations that do nothing. After a cancellation, the operation calls only
/// ``networkOperation(_:wasCancelledBecause:)``.
@MainActor
public protocol MainActorNetworkOperationDelegate: AnyObject {
    /// Tells the delegate that the session sent a part of the request body.
    ///
    /// - Parameters:
    ///   - operation: The operation that calls the method.
    ///   - progress: The number of bytes that the session has sent so far, and the size of the request body if it is
    ///     known.
    func networkOperation(_ operation: any AnyNetworkOperation, didSend progress: TransferProgress)

    /// Tells the delegate that the session received a part of the response body.
    ///
    /// - Parameters:
    ///   - operation: The operation that calls the method.
    ///   - progress: The number of bytes that the session has received so far, and the size of the response body if it
    ///     is known.
    func networkOperation(_ operation: any AnyNetworkOperation, didReceive progress: TransferProgress)

    /// Tells the delegate that an attempt failed and whether the operation makes another attempt.
    ///
    /// - Parameters:
    ///   - operation: The operation that calls the method.
    ///   - event: The decision, which contains the error of the attempt and the pause before the next attempt.
    func networkOperation(_ operation: any AnyNetworkOperation, didDecide event: RetryEvent)

    /// Tells the delegate that the operation began to wait for the network.
    ///
    /// The operation calls this method once for each outage during which it waits.
    func networkOperationWaitsForNetwork(_ operation: any AnyNetworkOperation)

    /// Tells the delegate that the operation failed with an error, or succeeded if `error` is `nil`.
    ///
    /// To get the result, read ``AnyNetworkOperation/anyOutcome``.
    ///
    /// - Parameters:
    ///   - operation: The operation that calls the method.
    ///   - error: The error with which the operation failed, or `nil` if the operation succeeded.
    func networkOperation(_ operation: any AnyNetworkOperation, didFinishWith error: NetworkError?)

    /// Tells the delegate that the operation was canceled.
    ///
    /// - Parameters:
    ///   - operation: The operation that calls the method.
    ///   - cause: The cause of the cancellation.
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
