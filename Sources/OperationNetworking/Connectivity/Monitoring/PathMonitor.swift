// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if canImport(Network) && !os(watchOS)
    import Dispatch
    import Network

    /// A monitor of the network on Apple platforms, by `NWPathMonitor`.
    ///
    /// There is none on watchOS: for most apps on a real watch `NWPathMonitor` reports no network, although requests succeed
    /// (Apple's technical note TN3135).
    public final class PathMonitor: ConnectivityMonitor {
        private let board = ConnectivityBoard(.unknown)
        private let monitor: NWPathMonitor

        /// Makes a monitor of all interfaces.
        public init() {
            monitor = NWPathMonitor()
            monitor.pathUpdateHandler = { [board] path in board.write(Connectivity(path)) }
            monitor.start(queue: DispatchQueue(label: "OperationKit.PathMonitor"))
        }

        deinit { monitor.cancel() }

        /// What is known now.
        public var connectivity: Connectivity { board.connectivity }

        /// Calls `body` with what is known now, and whenever that has changed: on the monitor's queue.
        public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
            board.observe(for: self, body)
        }
    }

    extension Connectivity {
        /// A path that needs a connection first (a VPN on demand) counts as one: a request makes it.
        fileprivate init(_ path: NWPath) {
            let kinds: [(NWInterface.InterfaceType, Interface)] = [
                (.wiredEthernet, .wired), (.wifi, .wifi), (.cellular, .cellular), (.other, .other),
            ]
            self.init(
                path.status == .unsatisfied ? .unsatisfied : .satisfied,
                interfaces: kinds.filter { path.usesInterfaceType($0.0) }.map(\.1), isExpensive: path.isExpensive,
                isConstrained: path.isConstrained)
        }
    }
#endif
