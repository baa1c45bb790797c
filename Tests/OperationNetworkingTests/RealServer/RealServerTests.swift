// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.enabled(if: ServerPrograms.areThere, "Run Scripts/prepare-servers."), .timeLimit(.minutes(2)))
    struct RealServerTests {
        @Test(arguments: Pairing.all, RealServerCase.chosen)
        func `every session passes the real-server cases`(
            _ pairing: Pairing, _ realCase: RealServerCase
        ) async throws {
            try await realCase.run(with: pairing.kind, over: pairing.wire)
        }

        /// A kind of session and its protocol.
        struct Pairing: Sendable, CustomTestStringConvertible {
            let kind: SessionKind
            let wire: Wire

            /// All pairs in the soak.
            ///
            /// Otherwise, other sessions than libcurl's run over one protocol only.
            static let all = SessionKind.allCases.flatMap { kind in
                Wire.allCases.map { Pairing(kind: kind, wire: $0) }
            }.filter { Rounds.isSoak || $0.kind == .curl || $0.wire == .http2 }

            var testDescription: String { "\(kind), \(wire)" }
        }
    }
#endif
