// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import Dispatch
    import OperationCore

    /// Watches the network of a Linux machine, by what the kernel says of its interfaces, addresses and routes.
    ///
    /// There is a way out where an interface other than loopback runs, has an address that is more than link-local, and
    /// has a route of the same version of IP. Inside a container that is about the container's own network. Where the
    /// kernel cannot be asked the state is unknown, and ``failure`` says why.
    ///
    /// It has one socket and one queue, no thread of its own, and asks the kernel when it is made, which does not wait
    /// for anything. Use ``SystemConnectivity/shared`` unless you need other routes to count.
    public final class NetlinkMonitor: ConnectivityMonitor {
        private let board = ConnectivityBoard(.unknown)
        private let feed: NetlinkFeed?

        /// Why nothing is known; nil if all is well.
        public let failure: String?

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
                failure = nil
            } catch {
                feed = nil
                failure = "The kernel's messages about the network cannot be had (error \(error.number))."
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
