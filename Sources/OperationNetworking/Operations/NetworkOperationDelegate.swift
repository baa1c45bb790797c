// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Is told what happens to a network operation: the way in for those who prefer objects to closures.
///
/// All calls come on the operation's callback queue, and those that the closures would not get do not come either: after
/// a cancellation there is only that. Each is empty unless implemented. One object may serve many operations.
public protocol NetworkOperationDelegate: AnyObject, Sendable {
    /// So much of the request's body was sent.
    func networkOperation(_ operation: any AnyNetworkOperation, didSend progress: TransferProgress)

    /// So much of the response's body was received.
    func networkOperation(_ operation: any AnyNetworkOperation, didReceive progress: TransferProgress)

    /// An attempt failed, and it was decided what becomes of it.
    func networkOperation(_ operation: any AnyNetworkOperation, didDecide event: RetryEvent)

    /// It waits since the network is gone, once for each time that this is so.
    func networkOperationWaitsForNetwork(_ operation: any AnyNetworkOperation)

    /// It ended, with an error or with a result, which is read on the operation.
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
