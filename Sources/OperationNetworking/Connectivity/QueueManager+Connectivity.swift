// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

extension QueueManager {
    /// Lets nothing begin while the network is gone; what runs goes on.
    ///
    /// ```swift
    /// let uploads = QueueManager("uploads", width: 2)
    /// let hold = uploads.hold(whileOffline: .system)
    /// ```
    ///
    /// ``QueueManager/explain(_:)`` says so of what waits, and the queue counts as suspended. Your own suspension of
    /// the queue and this one do not know each other: it goes on when both are over.
    ///
    /// - Returns: A token; when it is cancelled or let go of, the queue takes no more notice of the network.
    public func hold(whileOffline monitor: any ConnectivityMonitor) -> NetworkHold {
        NetworkHold(self, monitor)
    }
}
