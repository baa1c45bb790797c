// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Watches whether a server can be reached, by asking it again and again.
///
/// It is for those who must know more than that there is a way out of this machine: whether there is a network behind
/// it, or only the page on which one signs in (``Connectivity/isCaptive``). It costs a request each time, so ask a
/// server of yours, and not too often; together with the system's monitor (``CombinedConnectivity``) it can do with
/// seldom.
///
/// ```swift
/// func watch(_ url: URL) -> some ConnectivityMonitor {
///     CombinedConnectivity(path: .system, probe: ProbeMonitor(NetworkProbe(url)))
/// }
/// ```
///
/// The session should not follow redirects (as an ``ExchangeSession`` does), for then a sign-in page is hardly known
/// from what was asked for. It asks from the beginning until it is let go of. It takes two probes without an answer, one
/// soon after the other, for the network to count as gone; failures that have other causes, such as a certificate that
/// is not trusted, say nothing about it, and what is known stays.
public final class ProbeMonitor: ConnectivityMonitor {
    private let board = ConnectivityBoard(.unknown)
    private let run: ProbeRun

    /// Makes a monitor, which begins to ask at once.
    ///
    /// - Parameters:
    ///   - probe: What is asked.
    ///   - session: By what it is asked.
    ///   - clock: On which the pauses are counted.
    public init(
        _ probe: NetworkProbe, session: any NetworkSession = DefaultNetworkSession.platformTransport,
        clock: any OperationClock = .system
    ) {
        run = ProbeRun(probe, session, clock, board)
        run.askNow()
    }

    deinit { run.end() }

    /// What came of the last probe that says something; unknown before.
    public var connectivity: Connectivity { board.connectivity }

    /// Calls `body` with what is known now, and whenever that has changed: on the session's thread, or the clock's.
    public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
        board.observe(for: self, body)
    }

    /// Asks now, and not only when it is time to.
    ///
    /// A probe that has been under way for a second or more is given up, since it may be about what was before.
    public func askNow() { run.askNow() }

    /// Forgets what it knew, since there is another way out, and asks as soon as it may: a path that comes and goes
    /// has it ask once in a second or two.
    package func beginAnew() {
        run.rest()
        run.askSoon()
    }

    /// Asks as soon as it may, unless it is asking: something about the way out has changed, and it may be the same.
    package func lookAgain() { run.lookAgain() }

    /// What is known in this moment, which those who observe are told.
    var known: Connectivity { run.known }

    /// Asks no more until `askNow()`, and knows nothing meanwhile.
    package func rest() { run.rest() }
}
