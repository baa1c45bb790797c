// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// A session, and the sites of the real server that are known by name.
    struct NamedBench: ClientBench {
        let server: NginxServer
        let session: any NetworkSession
        let closeSession: @Sendable () -> Void
        private let site: String

        /// Makes a session that trusts our authority unless it is told otherwise.
        init(_ site: String, _ change: (inout CurlSession.Configuration) throws -> Void = { _ in }) async throws {
            server = try await NginxServer.shared.value
            self.site = site
            var configuration = CurlSession.Configuration()
            configuration.proxy = .none
            configuration.tls.trust = .file(server.certificates.authority)
            let name = URL(string: site)?.host ?? ""
            configuration.addressOverrides = ["\(name):443": "127.0.0.1:\(server.ports.http2)"]
            try change(&configuration)
            let session = CurlSession(configuration: configuration)
            (self.session, closeSession) = (session, { session.close() })
        }

        func url(_ target: String) throws -> URL {
            guard let url = URL(string: site + target) else { throw ServerFailure(description: "\(site) is no URL") }
            return url
        }

        /// What it is answered, with the session closed afterwards.
        static func get(
            _ site: String, _ target: String = "/spoken", location: SourceLocation = #_sourceLocation,
            _ change: (inout CurlSession.Configuration) throws -> Void = { _ in }
        ) async throws -> RecordingReceiver.Record {
            let bench = try await NamedBench(site, change)
            defer { bench.closeSession() }
            return try await bench.get(target, location: location)
        }

        /// Sees that it is refused before anything is sent, and the next one, too.
        static func refuses(
            _ site: String, _ code: NetworkError.Code, location: SourceLocation = #_sourceLocation,
            _ change: (inout CurlSession.Configuration) throws -> Void = { _ in }
        ) async throws {
            let bench = try await NamedBench(site, change)
            defer { bench.closeSession() }
            for _ in 0..<2 {
                let record = await bench.run(
                    try bench.request("POST", "/spoken", body: .data(Data("secret".utf8))), location: location)
                #expect(record.error?.code == code, "\(String(describing: record.error))", sourceLocation: location)
                #expect(record.error?.phase == .connecting, sourceLocation: location)
                #expect(record.error?.isUnsent == true, sourceLocation: location)
                #expect(record.head == nil && record.sent == 0, sourceLocation: location)
            }
        }
    }
#endif
