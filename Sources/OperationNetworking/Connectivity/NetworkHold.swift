// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// That a queue is held while the network is gone: to be kept for as long as that shall be so.
public final class NetworkHold: Sendable {
    private let observation: ConnectivityObservation
    private let hold: QueueHold

    init(_ queue: QueueManager, _ monitor: any ConnectivityMonitor) {
        let hold = QueueHold(queue, because: "the network is gone")
        self.hold = hold
        observation = monitor.observe { hold.set($0.isOffline) }
    }

    deinit { cancel() }

    /// Ends it: the queue goes on, unless it is suspended for other reasons.
    public func cancel() {
        observation.cancel()
        hold.end()
    }
}
