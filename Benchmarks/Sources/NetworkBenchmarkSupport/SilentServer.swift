// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// A local server that accepts connections and never responds.
package final class SilentServer: Sendable {
    package let port: UInt16
    private let listener: Int32
    private let sockets = Mutex<[Int32]>([])

    package init() {
        #if canImport(Glibc)
            let kind = Int32(SOCK_STREAM.rawValue)
        #else
            let kind = SOCK_STREAM
        #endif
        listener = socket(AF_INET, kind, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(listener, $0, length)
                _ = getsockname(listener, $0, &length)
            }
        }
        _ = listen(listener, 4_096)
        port = UInt16(bigEndian: address.sin_port)
        Thread { [self] in
            while case let socket = accept(listener, nil, nil), socket >= 0 {
                sockets.withLock { $0.append(socket) }
            }
        }.start()
    }

    /// The number of connections that the server has accepted since it was last emptied.
    package var count: Int { sockets.withLock { $0.count } }

    /// Closes all connections.
    package func empty() {
        sockets.withLock { sockets in
            for socket in sockets { close(socket) }
            sockets = []
        }
    }
}
