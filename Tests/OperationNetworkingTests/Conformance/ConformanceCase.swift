// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
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

    /// Runs the case with a new session and a new server; a case that hangs fails after a while.
    func run(with kind: SessionKind) async throws {
        try await run { options in try Bench(kind, options) }
    }

    /// The same with a bench of another kind.
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

    /// How long a case may take: not long where many are expected to hang.
    private func patience(_ kind: SessionKind) -> Duration {
        #if canImport(FoundationNetworking)
            if kind == .urlSession { return .seconds(URLSessionDifference.isHang(name) ? 3 : 15) }
        #endif
        return Rounds.isSoak ? .seconds(1_500) : .seconds(90)
    }

    /// Where a case is chosen by the environment, tells at once which one runs.
    private static func trace(_ text: String) {
        guard ProcessInfo.processInfo.environment["CONFORMANCE_CASE"] != nil else { return }
        FileHandle.standardError.write(Data("\(text)\n".utf8))
    }

    /// All cases, or those whose name contains what the environment's `CONFORMANCE_CASE` says.
    static let chosen: [ConformanceCase] = {
        guard let part = ProcessInfo.processInfo.environment["CONFORMANCE_CASE"] else { return all }
        return all.filter { $0.name.contains(part) }
    }()

    static let all: [ConformanceCase] =
        rightResponses + wrongResponses + givenAsTheyAre + limits + requests + bodies + connections + cancelling
        + brakes
        + times
}
