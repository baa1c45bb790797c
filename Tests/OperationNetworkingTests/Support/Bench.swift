// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// What a case of the conformance suite works with: a session, and a server of its own.
struct Bench: ClientBench {
    typealias Running = RunningTask

    let kind: SessionKind
    let session: any NetworkSession
    let server: LoopbackServer
    /// Closes the session; its tasks end.
    let closeSession: @Sendable () -> Void
    private let makeURL: @Sendable (String) throws -> URL

    init(_ kind: SessionKind, _ options: LoopbackServer.Options = .init()) throws {
        self.kind = kind
        let server = try LoopbackServer(options)
        self.server = server
        makeURL = { server.url($0) }
        (session, closeSession) = kind.makeSession()
    }

    #if os(Linux)
        /// The same with a real server between session and server.
        init(_ kind: SessionKind, _ options: LoopbackServer.Options, through front: ServerFront) throws {
            self.kind = kind
            let server = try LoopbackServer(options)
            self.server = server
            makeURL = { try front.url($0, behind: server.port) }
            (session, closeSession) = kind.makeSession { configuration in
                configuration.tls.trust = .file(front.server.certificates.authority)
            }
        }
    #endif

    func url(_ target: String) throws -> URL { try makeURL(target) }

    /// Sees that the session still works, and that it sent nothing against the rules.
    func checkHealth(location: SourceLocation = #_sourceLocation) async throws {
        try await checkSession(location: location)
        #expect(server.violations == [], sourceLocation: location)
    }

    /// Sees that the session still works.
    func checkSession(location: SourceLocation = #_sourceLocation) async throws {
        server.route("/health") { _ in .text("well") }
        let record = try await get("/health", location: location)
        #expect(record.text == "well", "afterwards: \(String(describing: record.error))", sourceLocation: location)
    }
}
