// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import FoundationNetworking
    import OperationNetworking
    import OperationTestKit
    import Testing

    extension HttpbinCase {
        static var redirected: [HttpbinCase] {
            [
                HttpbinCase("several redirects are followed to the final response") { bench async throws in
                    let operation = bench.base.get("redirect/4", as: Echo<NoContent>.self)
                    #expect(try await operation.run().url.hasSuffix("/get"))
                    #expect(operation.response?.url?.path == "/get")
                },
                HttpbinCase("redirects to relative URLs are followed") { bench async throws in
                    #expect(try await bench.get("relative-redirect/3").url.hasSuffix("/get"))
                },
                HttpbinCase("redirects to absolute URLs are followed") { bench async throws in
                    #expect(try await bench.get("absolute-redirect/3").url.hasSuffix("/get"))
                },
                HttpbinCase("a 303 redirect changes POST to GET") { bench async throws in
                    let echo: Echo<NoContent> = try await bench.base.send(
                        Song.sample, to: "redirect-to", query: ["url": "/anything", "status_code": 303]
                    ).run()
                    #expect(echo.method == "GET" && echo.data == "" && echo.headers["Content-Type"] == nil)
                },
                HttpbinCase("a 302 redirect changes POST to GET") { bench async throws in
                    let echo: Echo<NoContent> = try await bench.base.send(
                        Song.sample, to: "redirect-to", query: ["url": "/anything", "status_code": 302]
                    ).run()
                    #expect(echo.method == "GET" && echo.data == "")
                },
                HttpbinCase("a 307 redirect repeats POST with its body") { bench async throws in
                    let echo: Echo<Song> = try await bench.base.send(
                        Song.sample, to: "redirect-to", query: ["url": "/anything", "status_code": 307]
                    ).run()
                    #expect(echo.method == "POST" && echo.json == .sample)
                },
                HttpbinCase("a 308 redirect repeats the upload of a file") { bench async throws in
                    let bytes = Data(TestPattern.bytes(count: 100_000))
                    let file = try TemporaryFile(bytes)
                    let target = "redirect-to?url=/anything&status_code=308"
                    let operation = NetworkUploadOperation(
                        url: try bench.url(target), method: "PUT", body: .file(try FileRegion(file.url)),
                        urlSession: bench.session
                    ) { data, _ in try JSONDecoder().decode(Echo<NoContent>.self, from: data) }
                    let echo = try await operation.run()
                    #expect(echo.method == "PUT" && echo.bytes == bytes)
                },
                HttpbinCase("too many redirects fail with tooManyRedirects") { bench async throws in
                    #expect(await failure(of: bench.base.get("redirect/11", as: Data.self))?.code == .tooManyRedirects)
                },
                HttpbinCase(
                    "with the stop policy, a redirect is delivered as the response",
                    configure: { $0.redirects = .stop }
                ) { bench async throws in
                    let operation = bench.base.get("redirect/1", as: Data.self)
                    operation.responseRules.statuses = .only(302)
                    operation.responseRules.contentTypes = .any
                    _ = try await operation.run()
                    #expect(operation.response?.value(forHTTPHeaderField: "Location") == "/get")
                },
                HttpbinCase("secret headers are not sent to another host") { bench async throws in
                    let port = try #require(bench.base.url.port)
                    let stranger = "http://localhost:\(port)/anything"
                    var base = bench.base
                    for name in ["Authorization", "Cookie", "X-Api-Key"] { base.headers[name] = "secret" }
                    base.headers["X-Plain"] = "plain"
                    let echo = try await base.get("redirect-to", ["url": stranger], as: Echo<NoContent>.self).run()
                    #expect(echo.url.hasPrefix("http://localhost"))
                    #expect(!echo.headers.values.contains { $0.contains("secret") })
                    #expect(echo.headers["X-Plain"] == "plain")
                },
                HttpbinCase("a redirect to a file URL fails with invalidRedirect") { bench async throws in
                    let error = await failure(
                        of: bench.base.get("redirect-to", ["url": "file:///etc/passwd"], as: Data.self))
                    #expect(error?.code == .invalidRedirect)
                },
            ]
        }
    }

    extension NetworkBase {
        /// Sends JSON to a path with a query.
        fileprivate func send<Value: Encodable & Sendable, Answer: Decodable & Sendable>(
            _ value: Value, to path: String, query: [String: (any Sendable)?]
        ) -> EndpointOperation<Answer> {
            var endpoint = Endpoint<Answer>.post(path, json: value)
            endpoint.query = query
            return operation(for: endpoint)
        }
    }
#endif
