// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

/// One thing that every session must do, with the server that asks it of it.
struct ConformanceCase: Sendable, CustomTestStringConvertible {
    /// What must hold, as a sentence.
    let name: String
    private let options: @Sendable (inout LoopbackServer.Options) -> Void
    private let body: @Sendable (Bench) async throws -> Void

    init(
        _ name: String, options: @escaping @Sendable (inout LoopbackServer.Options) -> Void = { _ in },
        _ body: @escaping @Sendable (Bench) async throws -> Void
    ) {
        self.name = name
        self.options = options
        self.body = body
    }

    var testDescription: String { name }

    /// Runs the case with a new session and a new server, and sees that both end without anything left over.
    func run(with kind: SessionKind) async throws {
        var options = LoopbackServer.Options()
        self.options(&options)
        let bench = try Bench(kind, options)
        do {
            try await body(bench)
        } catch {
            bench.closeSession()
            throw error
        }
        bench.closeSession()
        await bench.server.stopped()
    }

    static let all: [ConformanceCase] =
        rightResponses + wrongResponses + givenAsTheyAre + limits + requests + bodies + connections + cancelling
        + brakes
        + times
}
