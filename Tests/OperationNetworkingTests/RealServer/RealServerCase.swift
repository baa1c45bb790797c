// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import Testing

    /// A requirement that every session must meet with a real server, over every protocol.
    struct RealServerCase: Sendable, CustomTestStringConvertible {
        /// The requirement, as a sentence.
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

        /// Runs the case with a new session, which must still work afterward.
        func run(with kind: SessionKind, over wire: Wire) async throws {
            let bench = RealBench(try await NginxServer.shared.value, kind, wire, configure)
            defer { bench.closeSession() }
            try await body(bench)
            let record = try await bench.get("/small")
            #expect(record.isSuccess && record.bodyCount == 100, "after the case: \(String(describing: record.error))")
        }

        /// All cases, or the cases whose names contain the value of the environment variable `CONFORMANCE_CASE`.
        static let chosen: [RealServerCase] = {
            let all = reading + sending + connecting + stopping
            guard let part = ProcessInfo.processInfo.environment["CONFORMANCE_CASE"] else { return all }
            return all.filter { $0.name.contains(part) }
        }()
    }
#endif
