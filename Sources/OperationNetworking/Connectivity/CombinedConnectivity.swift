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
    private struct State {
        var path: Connectivity?
        /// Counts up with each change of the path.
        var number = 0
        /// How many changes there are of which the probe does not know yet: what it says is about what was before.
        var changing = 0
        var writing = RepeatFlag()
    }

    private let probe: ProbeMonitor
    private let state = Locked(State())

    init(_ probe: ProbeMonitor) {
        self.probe = probe
    }

    func pathChanged(to path: Connectivity, _ board: ConnectivityBoard) {
        let before = state.withLock { state in
            state.number += 1
            state.changing += 1
            return exchange(&state.path, with: path)
        }
        if path.isOffline {
            probe.rest()
        } else if let before {
            // What was found behind another interface says nothing about this one; what the user pays for it does not
            // matter. At first the probe asks by itself.
            if before.isOffline || before.interfaces.first != path.interfaces.first {
                probe.beginAnew()
            } else {
                probe.lookAgain()
            }
        }
        state.withLock { state in
            state.number += 1
            state.changing -= 1
        }
        write(on: board)
    }

    /// Writes what both say now: one thread at a time, which looks again if there was news meanwhile.
    func write(on board: ConnectivityBoard) {
        state.runRounds(of: \.writing) { board.write(both) }
    }

    /// What both say of the same moment.
    private var both: Connectivity {
        while true {
            let (path, number, isChanging) = state.withLock { ($0.path, $0.number, $0.changing > 0) }
            guard var both = path, !both.isOffline else { return path ?? .unknown }
            let probed = isChanging ? .unknown : probe.known
            both.status = probed.status
            both.isCaptive = probed.isCaptive
            if state.withLock({ $0.number == number }) { return both }
        }
    }
}
