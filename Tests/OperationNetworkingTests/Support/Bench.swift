// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// A session and its own server, for a case of the conformance suite.
struct Bench: ClientBench {
    typealias Running = RunningTask

    let kind: SessionKind
    let session: any NetworkSession
    let server: LoopbackServer
    /// Closes the session, which ends its tasks.
    let closeSession: @Sendable () -> Void
    #if OPERATIONKIT_LIBCURL
        private let clock = SessionClock()
    #endif
    private let makeURL: @Sendable (String) throws -> URL

    init(_ kind: SessionKind, _ options: LoopbackServer.Options = .init()) throws {
        self.kind = kind
        let server = try LoopbackServer(options)
        self.server = server
        makeURL = { server.url($0) }
        #if OPERATIONKIT_LIBCURL
            (session, closeSession) = kind.makeSession(by: clock) { _ in }
        #else
            (session, closeSession) = kind.makeSession()
        #endif
    }

    #if OPERATIONKIT_LIBCURL
        /// Creates a bench with a real server between the session and the loopback server.
        init(_ kind: SessionKind, _ options: LoopbackServer.Options, through front: ServerFront) throws {
            self.kind = kind
            let server = try LoopbackServer(options)
            self.server = server
            makeURL = { try front.url($0, behind: server.port) }
            (session, closeSession) = kind.makeSession(by: clock) { configuration in
                configuration.tls.trust = .file(front.server.certificates.authority)
            }
        }
    #endif

    func url(_ target: String) throws -> URL { try makeURL(target) }

    /// A time limit that a test can let pass, and that nothing else exceeds on a busy machine.
    ///
    /// The clock of Foundation's sessions cannot be moved, so their limit is short enough to wait for.
    var passableLimit: Duration { kind == .urlSession ? .seconds(2) : .seconds(40) }

    /// Lets the limit pass for the session.
    func passLimit() async throws {
        #if OPERATIONKIT_LIBCURL
            guard kind == .urlSession else { return try await clock.leap(passableLimit, noticedBy: session) }
        #endif
        try await Task.sleep(for: passableLimit + .milliseconds(300))
    }

    /// Checks that the session refuses the endless head of the response, and still works.
    func checkHeadIsRefused(location: SourceLocation = #_sourceLocation) async throws {
        let error = try await get().error
        #expect(
            [.headerTooLarge, .invalidResponse].contains(error?.code), "\(String(describing: error))",
            sourceLocation: location)
        try await checkHealth(location: location)
    }

    /// Checks that the session still works and sent no invalid request.
    func checkHealth(location: SourceLocation = #_sourceLocation) async throws {
        try await checkSession(location: location)
        #expect(server.violations == [], sourceLocation: location)
    }

    /// Checks that the session still works.
    func checkSession(location: SourceLocation = #_sourceLocation) async throws {
        server.route("/health") { _ in .text("well") }
        let record = try await get("/health", location: location)
        #expect(record.text == "well", "afterwards: \(String(describing: record.error))", sourceLocation: location)
    }
}
