// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

extension LoopbackServer {
    /// How a ``LoopbackServer`` listens, and how much it keeps of what it saw.
    public struct Options: Sendable {
        /// Where it listens; 127.0.0.1 on a free port if not set.
        public var addresses: [LoopbackAddress] = [.ipv4]

        /// The time for drips, pauses and slow reading, and for the moments that are written down.
        public var clock: any OperationClock = .system

        /// How many connections the system may hold ready before the server takes them.
        public var backlog = 4_096

        /// Whether connections are taken from the beginning; see ``LoopbackServer/setAccepting(_:)``.
        public var accepts = true

        /// After how many requests a connection is closed; never if nil.
        public var requestsPerConnection: Int?

        /// Whether the last answer on a connection says `Connection: close` before ``requestsPerConnection`` closes it.
        public var announcesClosing = true

        /// Whether `100 Continue` is sent to a client that waits for it.
        public var sendsContinue = true

        /// The size of each connection's receive buffer in the system, in bytes; the system's choice if nil.
        ///
        /// Make it small to see a client wait that uploads to a server that reads slowly.
        public var receiveBufferSize: Int?

        /// The size of each connection's send buffer in the system, in bytes; the system's choice if nil.
        public var sendBufferSize: Int?

        /// How many requests are kept, the latest ones; all are counted.
        public var keptRequests = 10_000

        /// How many bytes of each request's body are kept; all are counted.
        public var keptBodyBytes = 1 << 20

        /// Makes the options that a server has if nothing is said.
        public init() {}
    }
}
