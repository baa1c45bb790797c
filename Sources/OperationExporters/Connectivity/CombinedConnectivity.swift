// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

/// A monitor that combines the system's network information with a probe that sends requests to a server.
///
/// While the system reports that there is no network, the probe sends no requests.
///
/// When the network returns, or when the active interface changes, the monitor discards the probe's last result, and
/// the probe sends a new request. If the interface changes often, the probe waits one to two seconds between requests.
/// Until the probe has a new result, the status is `Connectivity.Status.unknown`, and operations treat the network as
/// available.
public final class CombinedConnectivity: ConnectivityMonitor {
    private let board: ConnectivityBoard
    private let observations: [ConnectivityObservation]

    /// Creates a monitor that combines a system monitor with a probe.
    ///
    /// - Parameters:
    ///   - path: A monitor that uses the system's network information, such as `SystemConnectivity.system`.
    ///   - probe: A monitor that sends requests to a server.
    public init(path: any ConnectivityMonitor, probe: ProbeMonitor) {
        let views = Views(probe), board = ConnectivityBoard(.unknown)
        self.board = board
        observations = [
            path.observe { views.pathChanged(to: $0, board) }, probe.observe { _ in views.write(on: board) },
        ]
    }

    deinit { for observation in observations { observation.cancel() } }

    /// The current state of the network.
    public var connectivity: Connectivity { board.connectivity }

    /// Calls a closure with the current state of the network, and again whenever the state changes.
    ///
    /// The method calls the closure with the current state before it returns. Later calls are made on the thread on
    /// which one of the two monitors reports a change.
    ///
    /// - Parameter body: The closure, which receives the state of the network.
    /// - Returns: A token that ends the observation when you cancel or release the token.
    public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
        board.observe(for: self, body)
    }
}

/// The states of both monitors.
private final class Views: Sendable {
    private struct State {
        var path: Connectivity?
        /// The number of changes of the path, counted at the start and at the end of each change.
        var number = 0
        /// The number of path changes that the probe does not know yet, so that its result belongs to the old path.
        var changing = 0
        var writing = RepeatFlag()
    }

    private let probe: ProbeMonitor
    private let state = Locked(State())

    init(_ probe: ProbeMonitor) { self.probe = probe }

    func pathChanged(to path: Connectivity, _ board: ConnectivityBoard) {
        let before = state.withLock { state in
            state.number += 1
            state.changing += 1
            return exchange(&state.path, with: path)
        }
        if path.isOffline {
            probe.run.rest()
        } else if let before {
            // The result for one interface does not apply to another one. A change of the costs does not matter. At
            // first, the probe starts automatically.
            if before.isOffline || before.interfaces.first != path.interfaces.first {
                probe.startOver()
            } else {
                probe.run.lookAgain()
            }
        }
        state.withLock { state in
            state.number += 1
            state.changing -= 1
        }
        write(on: board)
    }

    /// Writes the combined state.
    ///
    /// Only one thread writes at a time, and repeats this if there was a change in the meantime.
    func write(on board: ConnectivityBoard) {
        state.runRounds(of: \.writing) { board.write(both) }
    }

    /// The states of both monitors at the same moment.
    private var both: Connectivity {
        while true {
            let (path, number, isChanging) = state.withLock { ($0.path, $0.number, $0.changing > 0) }
            guard var both = path, !both.isOffline else { return path ?? .unknown }
            let probed = isChanging ? .unknown : probe.run.known
            both.status = probed.status
            both.isCaptive = probed.isCaptive
            if state.withLock({ $0.number == number }) { return both }
        }
    }
}
