// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking

/// A monitor of the network that a test moves.
///
/// ```swift
/// import OperationNetworking
/// import OperationTestKit
///
/// let clock = ManualClock(), network = ManualConnectivity()
/// let waiting = OfflineWaiting(monitor: network, clock: clock)
/// network.write(.unsatisfied)
/// // … let the code under test run into it …
/// network.write(.satisfied)
/// clock.advance(by: .seconds(1))
/// ```
public final class ManualConnectivity: ConnectivityMonitor {
    private let board: ConnectivityBoard

    /// Makes a monitor that says this until it is moved.
    public init(_ connectivity: Connectivity = .satisfied) {
        board = ConnectivityBoard(connectivity)
    }

    /// What it says.
    public var connectivity: Connectivity { board.connectivity }

    /// How many are told of changes: none, where nobody was left behind.
    public var observerCount: Int { board.listenerCount }

    /// Says something else from now on, and tells all who want to know, on this thread.
    public func write(_ connectivity: Connectivity) { board.write(connectivity) }

    /// Calls `body` with what it says now, and whenever it says something else: on the thread that moves it.
    public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
        board.observe(for: self, body)
    }
}
