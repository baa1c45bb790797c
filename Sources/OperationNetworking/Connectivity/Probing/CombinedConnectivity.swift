// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Puts together what is known of the way out of this machine, and what a probe finds behind it.
///
/// While there is no way out, there is no network, and nothing is asked. When one comes, or another interface takes
/// over, what the probe found before is forgotten, and it asks at once: once in a second or two, if that happens often.
/// Until it knows something the state is unknown, which is treated as if the network were there.
public final class CombinedConnectivity: ConnectivityMonitor {
    private let board: ConnectivityBoard
    private let observations: [ConnectivityObservation]

    /// Makes a monitor of both.
    public init(path: any ConnectivityMonitor, probe: ProbeMonitor) {
        let views = Views(probe), board = ConnectivityBoard(.unknown)
        self.board = board
        observations = [
            path.observe { views.pathChanged(to: $0, board) }, probe.observe { _ in views.write(on: board) },
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
    private let probe: ProbeMonitor
    private let path = Locked<Connectivity?>(nil)

    init(_ probe: ProbeMonitor) {
        self.probe = probe
    }

    private var both: Connectivity {
        let path = path.withLock { $0 }
        guard var both = path, !both.isOffline else { return path ?? .unknown }
        let probed = probe.connectivity
        both.status = probed.status
        both.isCaptive = probed.isCaptive
        return both
    }

    func pathChanged(to path: Connectivity, _ board: ConnectivityBoard) {
        let isFirst = self.path.withLock { exchange(&$0, with: path) == nil }
        if path.isOffline {
            probe.rest()
        } else if !isFirst {
            // What was found behind another interface says nothing about this one. At first it asks by itself.
            probe.beginAnew()
        }
        write(on: board)
    }

    /// Until what is on the board is what both say last, for both may write at the same time.
    func write(on board: ConnectivityBoard) {
        while true {
            let both = both
            board.write(both)
            if self.both == both { return }
        }
    }
}
