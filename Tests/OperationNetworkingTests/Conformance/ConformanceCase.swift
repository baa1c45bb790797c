// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// A requirement that every session must meet, with the server that tests it.
struct ConformanceCase: Sendable, CustomTestStringConvertible {
    /// The requirement, as a sentence.
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

    /// Returns a case whose server responds with 204 to requests for `/`.
    static func withNoContent(
        _ name: String, options: @escaping @Sendable (inout LoopbackServer.Options) -> Void = { _ in },
        _ body: @escaping @Sendable (Bench) async throws -> Void
    ) -> ConformanceCase {
        ConformanceCase(name, options: options) { bench async throws in
            bench.server.route("/") { _ in .status(204) }
            try await body(bench)
        }
    }

    var testDescription: String { name }

    /// Runs the case with a new session and a new server.
    ///
    /// A case that hangs fails after a timeout.
    func run(with kind: SessionKind) async throws {
        try await run { options in try Bench(kind, options) }
    }

    /// Runs the case with a bench that the closure creates.
    func run(_ makeBench: (LoopbackServer.Options) throws -> Bench) async throws {
        var options = LoopbackServer.Options()
        self.options(&options)
        let bench = try makeBench(options)
        Self.trace("\(bench.kind) \(name)")
        let watch = Task {
            try await Task.sleep(for: patience(bench.kind))
            Issue.record("\(name): this hangs; requests \(bench.server.requests.map(\.target)), \(bench.server.counts)")
        }
        let work = Task { try await body(bench) }
        let watcher = Task {
            if case .success = await watch.result { work.cancel() }
        }
        let result = await work.result
        watch.cancel()
        await watcher.value
        bench.closeSession()
        await bench.server.stopped()
        try result.get()
    }

    /// The time limit for a case.
    ///
    /// It is short for cases that are expected to hang.
    private func patience(_ kind: SessionKind) -> Duration {
        #if canImport(FoundationNetworking)
            if kind == .urlSession { return .seconds(URLSessionDifference.isHang(name) ? 3 : 15) }
        #endif
        return Rounds.isSoak ? .seconds(1_500) : .seconds(90)
    }

    /// Prints the running case immediately if the environment selects cases.
    private static func trace(_ text: String) {
        guard ProcessInfo.processInfo.environment["CONFORMANCE_CASE"] != nil else { return }
        FileHandle.standardError.write(Data("\(text)\n".utf8))
    }

    /// All cases, or the cases whose names contain the value of the environment variable `CONFORMANCE_CASE`.
    static let chosen: [ConformanceCase] = {
        guard let part = ProcessInfo.processInfo.environment["CONFORMANCE_CASE"] else { return all }
        return all.filter { $0.name.contains(part) }
    }()

    static let all: [ConformanceCase] =
        rightResponses + wrongResponses + givenAsTheyAre + limits + requests + bodies + connections + cancelling
        + brakes
        + times
}
