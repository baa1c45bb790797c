// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import FoundationNetworking
    import OperationNetworking
    import Testing

    extension HttpbinCase {
        static var asking: [HttpbinCase] {
            [
                HttpbinCase("a GET request sends its query") { bench async throws in
                    let echo = try await bench.get("get", ["name": "Anna", "page": 2])
                    #expect(echo.args == ["name": "Anna", "page": "2"])
                    #expect(echo.url.hasSuffix("/get?name=Anna&page=2"))
                },
                HttpbinCase("a GET request sends a list in its query") { bench async throws in
                    let echo = try await bench.get("get", ["tags": ["a", "b"]])
                    #expect(echo.args == ["tags[]": ["a", "b"]])
                },
                HttpbinCase("a GET request encodes special characters in its query") { bench async throws in
                    let text = "a&b=c+d e/f?ü€😀"
                    #expect(try await bench.get("get", ["q": text]).args["q"]?.all == [text])
                },
                HttpbinCase("nil values are left out of the query") { bench async throws in
                    #expect(try await bench.get("get", ["a": nil as String?, "b": 1]).args == ["b": "1"])
                },
                HttpbinCase("special characters in a path are percent-encoded") { bench async throws in
                    let echo: Echo<NoContent> = try await bench.base.get("anything/a b/ü?x#y").run()
                    // httpbin partly decodes the URL that it echoes.
                    #expect(echo.url.hasSuffix("/anything/a%20b/ü%3Fx%23y"))
                    #expect(echo.args.isEmpty)
                },
                HttpbinCase("a POST without a body has Content-Length 0") { bench async throws in
                    let echo: Echo<NoContent> = try await bench.base.operation(for: .post("anything")).run()
                    #expect(echo.method == "POST" && echo.data == "" && echo.headers["Content-Length"] == "0")
                },
                HttpbinCase("a PUT request sends a model as JSON") { bench async throws in
                    let echo: Echo<Song> = try await bench.base.send(Song.sample, to: "put", by: "PUT").run()
                    #expect(echo.json == .sample && echo.headers["Content-Type"] == "application/json")
                },
                HttpbinCase("a PATCH request sends a model as JSON") { bench async throws in
                    let echo: Echo<Song> = try await bench.base.operation(for: .patch("patch", json: Song.sample)).run()
                    #expect(echo.json == .sample)
                },
                HttpbinCase("a DELETE request is sent with its method and path") { bench async throws in
                    let echo: Echo<NoContent> = try await bench.base.delete("anything/7").run()
                    #expect(echo.method == "DELETE" && echo.url.hasSuffix("/anything/7"))
                },
                HttpbinCase("a response to HEAD has headers and no body") { bench async throws in
                    let request = with(URLRequest(url: try bench.url("get"))) { $0.httpMethod = "HEAD" }
                    let operation = NetworkDataOperation(request: request, urlSession: bench.session) {
                        data, response in
                        (data.count, response.statusCode)
                    }
                    #expect(try await operation.run() == (0, 200))
                    #expect(operation.responseHead?.headers["Content-Type"] == "application/json")
                },
                HttpbinCase("an OPTIONS request receives the Allow header") { bench async throws in
                    let request = try NetworkRequest("OPTIONS", url: bench.url("get"))
                    let operation = NetworkDataOperation(request: request, urlSession: bench.session) { _, response in
                        response.value(forHTTPHeaderField: "Allow") ?? ""
                    }
                    #expect(try await operation.run().contains("GET"))
                },
                HttpbinCase("the headers of an endpoint override those of its base") { bench async throws in
                    var base = bench.base
                    base.headers["X-Client"] = "base"
                    base.headers["X-Both"] = "base"
                    let endpoint = Endpoint<HeadersAnswer>.get("headers").header("X-Both", "endpoint")
                    let headers = try await base.operation(for: endpoint).run().headers
                    #expect(headers["X-Client"] == "base" && headers["X-Both"] == "endpoint")
                    #expect(headers["Accept"] == "application/json")
                },
                HttpbinCase("prepareRequest can change the request") { bench async throws in
                    final class Named: NetworkDataOperation<[String: String]>, @unchecked Sendable {
                        override func prepareRequest(_ request: URLRequest) -> URLRequest {
                            var request = request
                            request.setValue("sample/1", forHTTPHeaderField: "User-Agent")
                            return request
                        }
                    }
                    let operation = Named(url: try bench.url("user-agent"), urlSession: bench.session) { data, _ in
                        try JSONDecoder().decode([String: String].self, from: data)
                    }
                    #expect(try await operation.run() == ["user-agent": "sample/1"])
                },
                HttpbinCase("GET requests receive the client address and a new UUID each time") { bench async throws in
                    #expect(try await bench.base.get("ip", as: [String: String].self).run() == ["origin": "127.0.0.1"])
                    let first = try await bench.base.get("uuid", as: [String: UUID].self).run()
                    let second = try await bench.base.get("uuid", as: [String: UUID].self).run()
                    #expect(first["uuid"] != nil && first != second)
                },
                HttpbinCase("response headers are available on the operation") { bench async throws in
                    let query = ["X-Answer": "42", "X-Twice": "a"]
                    let operation = bench.base.get("response-headers", query, as: Data.self)
                    _ = try await operation.run()
                    #expect(operation.response?.value(forHTTPHeaderField: "x-answer") == "42")
                    #expect(operation.responseHead?.headers["X-Twice"] == "a")
                },
            ]
        }
    }

    /// The response of `/headers`.
    private struct HeadersAnswer: Decodable, Sendable {
        let headers: [String: String]
    }

    struct Song: Codable, Sendable, Equatable {
        let title: String
        let year: Int
        let tags: [String]

        static let sample = Song(title: "Ænima “live” 日本", year: 1996, tags: ["a", "b"])
    }

    extension Endpoint {
        /// The same request, with another result.
        fileprivate func decoding<Other: Decodable & Sendable>(_ type: Other.Type) -> Endpoint<Other> {
            Endpoint<Other>(method, path, query: query, headers: headers, makeBody: makeBody) { data, _, base in
                try base.makeDecoder().decode(type, from: data)
            }
        }
    }
#endif
