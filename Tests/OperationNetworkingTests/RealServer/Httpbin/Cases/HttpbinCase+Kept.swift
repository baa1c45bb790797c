// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import FoundationNetworking
    import OperationNetworking
    import Testing

    extension HttpbinCase {
        static var kept: [HttpbinCase] {
            [
                HttpbinCase("If-None-Match with the current ETag receives status 304") { bench async throws in
                    let operation = bench.base.operation(
                        for: Endpoint<Data>.get("etag/one").header("If-None-Match", "one"))
                    operation.responseRules.statuses = .only(304)
                    #expect(try await operation.run().isEmpty)
                    #expect(operation.response?.value(forHTTPHeaderField: "ETag") == "one")
                },
                HttpbinCase("with another ETag, If-None-Match receives the file and If-Match fails with 412") {
                    bench async throws in
                    #expect(try await bench.text("etag/one", ["If-None-Match": "two"]).run().contains("/etag/one"))
                    #expect(try await failure(of: bench.text("etag/one", ["If-Match": "two"]))?.status == 412)
                },
                HttpbinCase("a fresh cached response is not requested again") { bench async throws in
                    let folder = try TemporaryFolder()
                    let session = bench.caching(in: folder.url)
                    #expect(try await bench.turn(1, "cache/60", session) == "1")
                    #expect(try await bench.turn(2, "cache/60", session) == "1")
                    #expect(try await bench.turn(3, "get", session) == "3")
                },
                HttpbinCase("a stale cached response is revalidated and served") { bench async throws in
                    let folder = try TemporaryFolder()
                    let session = bench.caching(in: folder.url)
                    #expect(try await bench.turn(1, "cache", session) == "1")
                    // httpbin returns 304 for every conditional request.
                    #expect(try await bench.turn(2, "cache", session) == "1")
                },
            ]
        }
    }

    extension HttpbinBench {
        /// A session over the same transport with a cache.
        fileprivate func caching(in folder: URL) -> ExchangeSession {
            ExchangeSession.over(session.transport) { $0.cache = HTTPCache(folder: folder) }
        }

        /// Sends a numbered request and returns the number that the response echoes.
        fileprivate func turn(_ number: Int, _ path: String, _ session: ExchangeSession) async throws -> String? {
            var base = base
            base.session = session
            base.headers["X-Turn"] = "\(number)"
            return try await base.get(path, as: Echo<NoContent>.self).run().headers["X-Turn"]
        }
    }
#endif
