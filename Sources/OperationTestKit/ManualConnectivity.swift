// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking

/// A connectivity monitor that reports the network state that a test sets.
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

    /// Creates a monitor with an initial state.
    ///
    /// - Parameter connectivity: The initial state of the network. The default is `Connectivity.satisfied`.
    public init(_ connectivity: Connectivity = .satisfied) {
        board = ConnectivityBoard(connectivity)
    }

    /// The current state of the network.
    public var connectivity: Connectivity { board.connectivity }

    /// The number of observers, which is 0 after all observations have ended.
    package var observerCount: Int { board.listenerCount }

    /// Sets the state of the network and notifies the observers on the current thread.
    public func write(_ connectivity: Connectivity) { board.write(connectivity) }

    /// Calls a closure with the current state, and again whenever the state changes.
    ///
    /// The method calls the closure with the current state before it returns. Later calls are made on the thread that
    /// sets the state.
    ///
    /// - Parameter body: The closure, which receives the state of the network.
    /// - Returns: A token that ends the observation when you cancel or release the token.
    public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
        board.observe(for: self, body)
    }
}
