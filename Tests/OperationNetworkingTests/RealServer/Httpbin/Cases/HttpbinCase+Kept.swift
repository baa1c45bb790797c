// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import FoundationNetworking
    import OperationNetworking
    import OperationTestKit
    import Testing

    extension HttpbinCase {
        static var kept: [HttpbinCase] {
            [
                HttpbinCase("a file that is still the same") { bench async throws in
                    let operation = bench.base.operation(
                        for: Endpoint<Data>.get("etag/one").header("If-None-Match", "one"))
                    operation.responseRules.statuses = .only(304)
                    #expect(try await operation.run().isEmpty)
                    #expect(operation.response?.value(forHTTPHeaderField: "ETag") == "one")
                },
                HttpbinCase("a file that is another by now") { bench async throws in
                    #expect(try await bench.text("etag/one", ["If-None-Match": "two"]).run().contains("/etag/one"))
                    #expect(try await failure(of: bench.text("etag/one", ["If-Match": "two"]))?.status == 412)
                },
                HttpbinCase("what is fresh is not asked for again") { bench async throws in
                    let folder = try TemporaryFolder()
                    let session = bench.caching(in: folder.url)
                    #expect(try await bench.turn(1, "cache/60", session) == "1")
                    #expect(try await bench.turn(2, "cache/60", session) == "1")
                    #expect(try await bench.turn(3, "get", session) == "3")
                },
                HttpbinCase("what may have changed is asked about, and served as it was") { bench async throws in
                    let folder = try TemporaryFolder()
                    let session = bench.caching(in: folder.url)
                    #expect(try await bench.turn(1, "cache", session) == "1")
                    // The service says 304 to whoever knows a version.
                    #expect(try await bench.turn(2, "cache", session) == "1")
                },
            ]
        }
    }

    extension HttpbinBench {
        /// The same transport with a cache.
        fileprivate func caching(in folder: URL) -> ExchangeSession {
            var configuration = ExchangeConfiguration()
            configuration.cache = HTTPCache(folder: folder)
            return ExchangeSession(over: session.transport, configuration: configuration)
        }

        /// Which request the answer is to, which repeats what was sent.
        fileprivate func turn(_ number: Int, _ path: String, _ session: ExchangeSession) async throws -> String? {
            var base = base
            base.session = session
            base.headers["X-Turn"] = "\(number)"
            return try await base.get(path, as: Echo<NoContent>.self).run().headers["X-Turn"]
        }
    }
#endif
