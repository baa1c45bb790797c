// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// One thing that people do with a service, as httpbin answers it.
    struct HttpbinCase: Sendable, CustomTestStringConvertible {
        /// What must hold, as a sentence.
        let name: String
        private let configure: @Sendable (inout ExchangeConfiguration) -> Void
        private let body: @Sendable (HttpbinBench) async throws -> Void

        init(
            _ name: String, configure: @escaping @Sendable (inout ExchangeConfiguration) -> Void = { _ in },
            _ body: @escaping @Sendable (HttpbinBench) async throws -> Void
        ) {
            self.name = name
            self.configure = configure
            self.body = body
        }

        var testDescription: String { name }

        func run() async throws {
            let bench = try HttpbinBench(try await HttpbinServer.shared.value, configure)
            defer { bench.close() }
            try await body(bench)
        }

        static let all =
            asking + sending + redirected + remembered + proving + refused + formats + timed + pieces + kept + pictures
    }

    @Suite(
        .enabled(if: HttpbinServer.isThere, "Run Scripts/prepare-httpbin."), .serialized, .timeLimit(.minutes(3)))
    struct RealServerHttpbinTests {
        @Test(arguments: HttpbinCase.all)
        func `operations do with httpbin what people want`(_ httpbinCase: HttpbinCase) async throws {
            try await httpbinCase.run()
        }

        @Test func `they are sixty at least, and each has a name of its own`() {
            #expect(HttpbinCase.all.count >= 60)
            #expect(Set(HttpbinCase.all.map(\.name)).count == HttpbinCase.all.count)
        }
    }
#endif
