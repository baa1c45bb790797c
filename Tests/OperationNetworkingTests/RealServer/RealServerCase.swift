// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// One thing that every session must do with a real server, whatever is spoken with it.
    struct RealServerCase: Sendable, CustomTestStringConvertible {
        /// What must hold, as a sentence.
        let name: String
        private let configure: @Sendable (inout CurlSession.Configuration) -> Void
        private let body: @Sendable (RealBench) async throws -> Void

        init(
            _ name: String, configure: @escaping @Sendable (inout CurlSession.Configuration) -> Void = { _ in },
            _ body: @escaping @Sendable (RealBench) async throws -> Void
        ) {
            self.name = name
            self.configure = configure
            self.body = body
        }

        var testDescription: String { name }

        /// Runs the case with a new session, which must work afterwards.
        func run(with kind: SessionKind, over wire: Wire) async throws {
            let bench = RealBench(try await NginxServer.shared.value, kind, wire, configure)
            defer { bench.closeSession() }
            try await body(bench)
            let record = try await bench.get("/small")
            #expect(record.isSuccess && record.bodyCount == 100, "afterwards: \(String(describing: record.error))")
        }

        /// All cases, or those whose name contains what the environment's `CONFORMANCE_CASE` says.
        static let chosen: [RealServerCase] = {
            let all = reading + sending + connecting + stopping
            guard let part = ProcessInfo.processInfo.environment["CONFORMANCE_CASE"] else { return all }
            return all.filter { $0.name.contains(part) }
        }()
    }
#endif
