// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import Testing

    extension HttpbinCase {
        static var remembered: [HttpbinCase] {
            [
                HttpbinCase(
                    "a cookie is stored and sent with the next request",
                    configure: { $0.cookies = CookieJar() }
                ) { bench async throws in
                    #expect(try await bench.cookies("cookies/set/flavour/vanilla") == ["flavour": "vanilla"])
                    #expect(try await bench.cookies("cookies") == ["flavour": "vanilla"])
                },
                HttpbinCase(
                    "several cookies are stored, and a new value replaces an old one",
                    configure: { $0.cookies = CookieJar() }
                ) { bench async throws in
                    #expect(try await bench.cookies("cookies/set?a=1&b=2") == ["a": "1", "b": "2"])
                    #expect(try await bench.cookies("cookies/set?b=3") == ["a": "1", "b": "3"])
                },
                HttpbinCase(
                    "a server can delete a cookie",
                    configure: { $0.cookies = CookieJar() }
                ) { bench async throws in
                    #expect(try await bench.cookies("cookies/set?a=1&b=2") == ["a": "1", "b": "2"])
                    #expect(try await bench.cookies("cookies/delete?a") == ["b": "2"])
                },
                HttpbinCase("without a cookie jar, no cookie is stored") { bench async throws in
                    #expect(try await bench.cookies("cookies/set/flavour/vanilla") == [:])
                },
                HttpbinCase(
                    "a Cookie header of the request replaces the cookies of the jar",
                    configure: { $0.cookies = CookieJar() }
                ) { bench async throws in
                    #expect(try await bench.cookies("cookies/set?a=1") == ["a": "1"])
                    #expect(try await bench.cookies("cookies", ["Cookie": "mine=yes"]) == ["mine": "yes"])
                },
            ]
        }
    }

    extension HttpbinBench {
        /// The cookies that the service received.
        fileprivate func cookies(_ target: String, _ headers: HeaderFields = [:]) async throws -> [String: String] {
            let text = try await text(target, headers).run()
            return try JSONDecoder().decode([String: [String: String]].self, from: Data(text.utf8))["cookies"] ?? [:]
        }
    }
#endif
