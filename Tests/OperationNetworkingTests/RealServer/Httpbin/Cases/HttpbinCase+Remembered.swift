// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    extension HttpbinCase {
        static var remembered: [HttpbinCase] {
            [
                HttpbinCase(
                    "a cookie is kept and sent with the next request",
                    configure: { $0.cookies = CookieJar() }
                ) { bench async throws in
                    #expect(try await bench.cookies("cookies/set/flavour/vanilla") == ["flavour": "vanilla"])
                    #expect(try await bench.cookies("cookies") == ["flavour": "vanilla"])
                },
                HttpbinCase(
                    "several cookies at once, and one that changes",
                    configure: { $0.cookies = CookieJar() }
                ) { bench async throws in
                    #expect(try await bench.cookies("cookies/set?a=1&b=2") == ["a": "1", "b": "2"])
                    #expect(try await bench.cookies("cookies/set?b=3") == ["a": "1", "b": "3"])
                },
                HttpbinCase(
                    "a cookie is deleted",
                    configure: { $0.cookies = CookieJar() }
                ) { bench async throws in
                    #expect(try await bench.cookies("cookies/set?a=1&b=2") == ["a": "1", "b": "2"])
                    #expect(try await bench.cookies("cookies/delete?a") == ["b": "2"])
                },
                HttpbinCase("without a jar nothing is kept") { bench async throws in
                    #expect(try await bench.cookies("cookies/set/flavour/vanilla") == [:])
                },
                HttpbinCase(
                    "a Cookie field of the request takes the place of the jar",
                    configure: { $0.cookies = CookieJar() }
                ) { bench async throws in
                    #expect(try await bench.cookies("cookies/set?a=1") == ["a": "1"])
                    #expect(try await bench.cookies("cookies", ["Cookie": "mine=yes"]) == ["mine": "yes"])
                },
            ]
        }
    }

    extension HttpbinBench {
        /// The cookies that the service says it got.
        fileprivate func cookies(_ target: String, _ headers: HeaderFields = [:]) async throws -> [String: String] {
            let text = try await text(target, headers).run()
            return try JSONDecoder().decode([String: [String: String]].self, from: Data(text.utf8))["cookies"] ?? [:]
        }
    }
#endif
