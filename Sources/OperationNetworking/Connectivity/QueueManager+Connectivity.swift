// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

extension QueueManager {
    /// Lets nothing begin while the network is gone, and until it has been back for a while; what runs goes on.
    ///
    /// ```swift
    /// let uploads = QueueManager("uploads", width: 2)
    /// let hold = uploads.hold(whileOffline: .system)
    /// ```
    ///
    /// ``QueueManager/explain(_:)`` says so of what waits, and the queue counts as suspended. Your own suspension of
    /// the queue and this one do not know each other: it goes on when both are over. What waits then begins as the
    /// queue's width allows, and not at a pace: give a queue that may hold many a width.
    ///
    /// - Parameters:
    ///   - monitor: What says whether the network is there.
    ///   - settling: How long the network must have been back, and up to twice that by chance: half a second. One that
    ///     comes and goes within that time lets nothing begin, and many machines do not all begin at the same moment.
    ///   - clock: On which that is counted.
    ///   - chance: Gives a number from 0 up to 1 for each return of the network.
    /// - Returns: A token, which keeps the queue; when it is cancelled or let go of, the queue takes no more notice of
    ///   the network.
    public func hold(
        whileOffline monitor: any ConnectivityMonitor, settling: Duration = ParkingPace.standard.settling,
        clock: any OperationClock = .system, chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) -> NetworkHold {
        let hold = QueueHold(self, because: "the network is gone")
        return NetworkHold(self, monitor, HoldSwitch(hold, settling: settling, clock, chance))
    }
}
