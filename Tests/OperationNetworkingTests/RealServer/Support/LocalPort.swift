// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore

    /// Local ports for servers that cannot choose a port themselves.
    enum LocalPort {
        private static let given = Locked<Set<UInt16>>([])

        /// Returns a free port below the range that the system assigns to clients.
        ///
        /// No two calls return the same port. Otherwise, two sites of one server could share a port.
        static func free() -> UInt16 {
            while true {
                let port = UInt16.random(in: 10_000..<32_000)
                guard given.withLock({ $0.insert(port).inserted }) else { continue }
                let socket = makeSocket()
                defer { close(socket) }
                if withAddress(port, { bind(socket, $0, $1) }) == 0 { return port }
            }
        }

        /// Returns whether a server listens at the port.
        static func isOpen(_ port: UInt16) -> Bool {
            let socket = makeSocket()
            defer { close(socket) }
            return withAddress(port) { connect(socket, $0, $1) } == 0
        }

        /// Returns a socket that is connected to the port, or -1.
        static func connection(to port: UInt16) -> Int32 {
            let socket = makeSocket()
            if withAddress(port, { connect(socket, $0, $1) }) == 0 { return socket }
            close(socket)
            return -1
        }

        /// Returns a listening socket and its port.
        static func listener() -> (socket: Int32, port: UInt16) {
            let socket = makeSocket()
            _ = withAddress(0) { bind(socket, $0, $1) }
            _ = listen(socket, 1_024)
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            _ = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
            }
            return (socket, UInt16(bigEndian: address.sin_port))
        }

        private static func makeSocket() -> Int32 {
            let socket = Foundation.socket(AF_INET, Int32(socket: SOCK_STREAM) | Int32(socket: SOCK_CLOEXEC), 0)
            var yes: Int32 = 1
            setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
            return socket
        }

        private static func withAddress(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32
        {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = inet_addr("127.0.0.1")
            return withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
    }
#endif
