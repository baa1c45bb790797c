// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// What a case of the conformance suite works with: a session, and a server of its own.
struct Bench: Sendable {
    let kind: SessionKind
    let session: any NetworkSession
    let server: LoopbackServer
    /// Closes the session; its tasks end.
    let closeSession: @Sendable () -> Void

    init(_ kind: SessionKind, _ options: LoopbackServer.Options = .init()) throws {
        self.kind = kind
        server = try LoopbackServer(options)
        (session, closeSession) = kind.makeSession()
    }

    func request(
        _ method: String = "GET", _ target: String = "/", _ headers: HeaderFields = [:], body: RequestBody = .none,
        _ change: (inout TransferOptions) -> Void = { _ in }
    ) throws -> NetworkRequest {
        var options = TransferOptions()
        // A case that would hang fails.
        options.timeouts = TransferTimeouts(connect: .seconds(60), firstByte: .seconds(60), idle: .seconds(60))
        change(&options)
        return try NetworkRequest(method, url: server.url(target), headers: headers, body: body, options: options)
    }

    /// Makes a task and starts it.
    func start(
        _ request: NetworkRequest,
        _ react: @escaping @Sendable (RecordingReceiver.Event, any NetworkTask) -> Void = { _, _ in }
    ) -> Running {
        let receiver = RecordingReceiver(react)
        let task = session.makeTask(with: request, receiver: receiver)
        task.resume()
        return Running(task: task, receiver: receiver)
    }

    /// Starts a task and waits for its end, which must come once and by the rules.
    func run(
        _ request: NetworkRequest, location: SourceLocation = #_sourceLocation,
        _ react: @escaping @Sendable (RecordingReceiver.Event, any NetworkTask) -> Void = { _, _ in }
    ) async -> RecordingReceiver.Record {
        await start(request, react).end(location)
    }

    /// Asks for a target, and waits for the end.
    func get(_ target: String = "/", location: SourceLocation = #_sourceLocation) async throws
        -> RecordingReceiver.Record
    {
        await run(try request("GET", target), location: location)
    }

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

    struct Running: Sendable {
        let task: any NetworkTask
        let receiver: RecordingReceiver

        @discardableResult
        func end(_ location: SourceLocation = #_sourceLocation) async -> RecordingReceiver.Record {
            let record = await receiver.end()
            #expect(record.ends == 1, sourceLocation: location)
            #expect(record.faults == [], sourceLocation: location)
            return record
        }
    }
}
