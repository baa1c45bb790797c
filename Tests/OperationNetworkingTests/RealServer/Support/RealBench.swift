// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking

    /// The session and server of a real-server case.
    struct RealBench: ClientBench {
        let server: NginxServer
        let wire: Wire
        let session: any NetworkSession
        let closeSession: @Sendable () -> Void

        init(
            _ server: NginxServer, _ kind: SessionKind, _ wire: Wire,
            _ change: (inout CurlSession.Configuration) -> Void = { _ in }
        ) {
            self.server = server
            self.wire = wire
            (session, closeSession) = kind.makeSession { configuration in
                configuration.tls.trust = .file(server.certificates.authority)
                change(&configuration)
            }
        }

        func url(_ target: String) throws -> URL { try wire.url(target, server.ports) }
    }
#endif
