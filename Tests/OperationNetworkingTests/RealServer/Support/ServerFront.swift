// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation

    /// An nginx between a session and a loopback server.
    ///
    /// The server receives the requests as nginx forwards them.
    struct ServerFront: Sendable {
        let server: NginxServer
        let wire: Wire

        func url(_ target: String, behind port: UInt16) throws -> URL {
            try wire.url("/up/\(port)\(target)", server.ports)
        }
    }
#endif
