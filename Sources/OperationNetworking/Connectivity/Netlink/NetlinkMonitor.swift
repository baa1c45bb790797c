// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import Dispatch
    import Foundation
    import OperationCore

    /// Watches the network of a Linux machine, by what the kernel says of its interfaces, addresses and routes.
    ///
    /// There is a way out where an interface other than loopback runs and has a route, and where some interface has an
    /// address of the same version of IP that is more than link-local. A tunnel is an interface as any other, whatever
    /// carries it. Inside a container all that is about the container's own network. Where the kernel cannot be asked,
    /// the state is unknown, and ``failure`` says why.
    ///
    /// It has one socket and one queue, no thread of its own, and asks the kernel when it is made, which does not wait
    /// for anything. Use ``SystemConnectivity/shared`` unless you need other routes to count.
    public final class NetlinkMonitor: ConnectivityMonitor {
        private let board = ConnectivityBoard(.unknown)
        private let feed: NetlinkFeed?
        private let refusal: SystemError?

        /// Why nothing is known, or nothing more; nil if all is well.
        public var failure: ConnectivityMonitorError? {
            guard let error = refusal ?? feed?.failure else { return nil }
            return ConnectivityMonitorError(
                error.number,
                "The kernel does not tell about the network (errno \(error.number)), so it counts as unknown. "
                    + Self.advice(error.number))
        }

        /// What can be done about a failure.
        package static func advice(_ number: Int32) -> String {
            switch number {
            case EPERM, EACCES, EAFNOSUPPORT, EPROTONOSUPPORT:
                "Allow the process netlink sockets (AF_NETLINK), or use a ProbeMonitor."
            case ENOBUFS, ENOMEM, EMFILE, ENFILE, EAGAIN:
                "The system had no room; make the monitor anew, or use a ProbeMonitor."
            default: "Make the monitor anew, or use a ProbeMonitor."
            }
        }

        /// Makes a monitor.
        ///
        /// - Parameter need: Which routes count.
        public convenience init(_ need: RouteNeed = .defaultRoute) {
            self.init(need, receiveBufferSize: nil)
        }

        package init(_ need: RouteNeed, receiveBufferSize: Int32?) {
            do throws(SystemError) {
                let socket = try NetlinkSocket.open(receiveBufferSize: receiveBufferSize)
                feed = NetlinkFeed(socket, need, board)
                refusal = nil
            } catch {
                feed = nil
                refusal = error
            }
        }

        deinit { feed?.close() }

        /// What is known now.
        public var connectivity: Connectivity { board.connectivity }

        /// Calls `body` with what is known now, and whenever that has changed: on the monitor's queue.
        public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
            board.observe(for: self, body)
        }

        /// The socket, for tests; nil if there is none.
        package var descriptor: Int32? { feed?.descriptor }
        /// How often messages were lost, for tests.
        package var overruns: Int { feed?.overruns ?? 0 }
    }
#endif
