// Part of OperationKit, released under the MIT licence.
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
                HttpbinCase("several redirects lead to the answer") { bench async throws in
                    let operation = bench.base.get("redirect/4", as: Echo<NoContent>.self)
                    #expect(try await operation.run().url.hasSuffix("/get"))
                    #expect(operation.response?.url?.path == "/get")
                },
                HttpbinCase("redirects to relative addresses") { bench async throws in
                    #expect(try await bench.get("relative-redirect/3").url.hasSuffix("/get"))
                },
                HttpbinCase("redirects to absolute addresses") { bench async throws in
                    #expect(try await bench.get("absolute-redirect/3").url.hasSuffix("/get"))
                },
                HttpbinCase("a POST becomes a GET by 303") { bench async throws in
                    let echo: Echo<NoContent> = try await bench.base.send(
                        Song.sample, to: "redirect-to", query: ["url": "/anything", "status_code": 303]
                    ).run()
                    #expect(echo.method == "GET" && echo.data == "" && echo.headers["Content-Type"] == nil)
                },
                HttpbinCase("a POST becomes a GET by 302, as everywhere") { bench async throws in
                    let echo: Echo<NoContent> = try await bench.base.send(
                        Song.sample, to: "redirect-to", query: ["url": "/anything", "status_code": 302]
                    ).run()
                    #expect(echo.method == "GET" && echo.data == "")
                },
                HttpbinCase("a POST stays one by 307, with its body") { bench async throws in
                    let echo: Echo<Song> = try await bench.base.send(
                        Song.sample, to: "redirect-to", query: ["url": "/anything", "status_code": 307]
                    ).run()
                    #expect(echo.method == "POST" && echo.json == .sample)
                },
                HttpbinCase("a file is sent again by 308") { bench async throws in
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
                HttpbinCase("more redirects than are followed") { bench async throws in
                    let error = await failure(of: bench.base.get("redirect/11", as: Data.self))
                    #expect(error?.code == .tooManyRedirects)
                },
                HttpbinCase(
                    "redirects that are not wanted are answers",
                    configure: { $0.redirects = .stop }
                ) { bench async throws in
                    let operation = bench.base.get("redirect/1", as: Data.self)
                    operation.responseRules.statuses = .only(302)
                    operation.responseRules.contentTypes = .any
                    _ = try await operation.run()
                    #expect(operation.response?.value(forHTTPHeaderField: "Location") == "/get")
                },
                HttpbinCase("no secret follows to a stranger") { bench async throws in
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
                HttpbinCase("a redirect that leads out of the web") { bench async throws in
                    let error = await failure(
                        of: bench.base.get("redirect-to", ["url": "file:///etc/passwd"], as: Data.self))
                    #expect(error?.code == .invalidRedirect)
                },
            ]
        }
    }

    extension NetworkBase {
        /// Sends JSON to an address with a query.
        fileprivate func send<Value: Encodable & Sendable, Answer: Decodable & Sendable>(
            _ value: Value, to path: String, query: [String: (any Sendable)?]
        ) -> EndpointOperation<Answer> {
            var endpoint = Endpoint<Answer>.post(path, json: value)
            endpoint.query = query
            return operation(for: endpoint)
        }
    }
#endif
