// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking
    import Testing

    /// A common use of a web service, tested with httpbin.
    struct HttpbinCase: Sendable, CustomTestStringConvertible {
        /// The requirement, as a sentence.
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
            asking + sending + received + remembered + proving + refused + kept + pictures
    }

    @Suite(
        .enabled(if: HttpbinServer.isThere, "Run Scripts/prepare-httpbin."), .serialized, .timeLimit(.minutes(3)))
    struct RealServerHttpbinTests {
        @Test(arguments: HttpbinCase.all)
        func `operations pass the httpbin cases`(_ httpbinCase: HttpbinCase) async throws {
            try await httpbinCase.run()
        }

        @Test func `there are at least fifty cases, each with a unique name`() {
            #expect(HttpbinCase.all.count >= 50)
            #expect(Set(HttpbinCase.all.map(\.name)).count == HttpbinCase.all.count)
        }
    }
#endif
