// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// A session and a site of the real server that has a host name.
    struct NamedBench: ClientBench {
        let server: NginxServer
        let session: any NetworkSession
        let closeSession: @Sendable () -> Void
        private let site: String

        /// Creates a session that trusts the authority of the tests unless `change` sets another trust.
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

        /// Sends a GET request, closes the session, and returns the record.
        static func get(
            _ site: String, _ target: String = "/spoken", location: SourceLocation = #_sourceLocation,
            _ change: (inout CurlSession.Configuration) throws -> Void = { _ in }
        ) async throws -> RecordingReceiver.Record {
            let bench = try await NamedBench(site, change)
            defer { bench.closeSession() }
            return try await bench.get(target, location: location)
        }

        /// Expects that two requests in sequence are refused before anything is sent.
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
