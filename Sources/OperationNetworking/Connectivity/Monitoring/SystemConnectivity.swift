// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What the system knows about the network: by netlink on Linux, by `NWPathMonitor` on Apple platforms.
///
/// On watchOS and elsewhere the status is always ``Connectivity/Status/unknown``, so that requests are sent. All policies
/// that name no other monitor share the one instance.
public final class SystemConnectivity: ConnectivityMonitor {
    /// The one instance; it begins to watch when it is first asked for.
    public static let shared = SystemConnectivity()

    private let monitor: any ConnectivityMonitor

    private init() {
        #if os(Linux)
            monitor = NetlinkMonitor()
        #elseif canImport(Network) && !os(watchOS)
            monitor = PathMonitor()
        #else
            monitor = UnknownConnectivity()
        #endif
    }

    /// What is known now.
    public var connectivity: Connectivity { monitor.connectivity }

    /// Why nothing is known, or nothing more; nil if all is well.
    public var failure: ConnectivityMonitorError? {
        #if os(Linux)
            (monitor as? NetlinkMonitor)?.failure
        #else
            nil
        #endif
    }

    /// Calls `body` with what is known now, and whenever that has changed: on the queue of the monitor beneath.
    public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
        monitor.observe(body)
    }
}

extension ConnectivityMonitor where Self == SystemConnectivity {
    /// What the system says of the network.
    public static var system: SystemConnectivity { .shared }
}

#if !os(Linux) && (!canImport(Network) || os(watchOS))
    /// Knows nothing.
    private final class UnknownConnectivity: ConnectivityMonitor {
        private let board = ConnectivityBoard(.unknown)

        var connectivity: Connectivity { board.connectivity }

        func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
            board.observe(for: self, body)
        }
    }
#endif
