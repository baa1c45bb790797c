// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Puts together what is known of the way out of this machine, and what a probe finds behind it.
///
/// While there is no way out, there is no network, and nothing is asked. When one comes, or another interface takes
/// over, the probe asks at once. Until it knows something the state is unknown, which is treated as if the network were
/// there.
public final class CombinedConnectivity: ConnectivityMonitor {
    private let board: ConnectivityBoard
    private let observations: [ConnectivityObservation]

    /// Makes a monitor of both.
    public init(path: any ConnectivityMonitor, probe: ProbeMonitor) {
        let views = Views(probe), board = ConnectivityBoard(.unknown)
        self.board = board
        observations = [
            path.observe { views.pathChanged(to: $0, board) }, probe.observe { views.probeChanged(to: $0, board) },
        ]
    }

    deinit { for observation in observations { observation.cancel() } }

    /// What is known now.
    public var connectivity: Connectivity { board.connectivity }

    /// Calls `body` with what is known now, and whenever that has changed: on the thread of either monitor.
    public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
        board.observe(for: self, body)
    }
}

/// What both say.
private final class Views: Sendable {
    private struct State {
        var path: Connectivity?
        var probe = Connectivity.unknown

        var both: Connectivity {
            guard var both = path, !both.isOffline else { return path ?? .unknown }
            both.status = probe.status
            both.isCaptive = probe.isCaptive
            return both
        }
    }

    private let probe: ProbeMonitor
    private let state = Locked(State())

    init(_ probe: ProbeMonitor) {
        self.probe = probe
    }

    func pathChanged(to path: Connectivity, _ board: ConnectivityBoard) {
        let isFirst = state.withLock { state in
            defer { state.path = path }
            return state.path == nil
        }
        write(on: board)
        // At first it asks by itself.
        if path.isOffline { probe.rest() } else if !isFirst { probe.askNow() }
    }

    func probeChanged(to probe: Connectivity, _ board: ConnectivityBoard) {
        state.withLock { $0.probe = probe }
        write(on: board)
    }

    /// Until what is on the board is what both say last, for both may write at the same time.
    private func write(on board: ConnectivityBoard) {
        while true {
            let both = state.withLock { $0.both }
            board.write(both)
            if state.withLock({ $0.both }) == both { return }
        }
    }
}
