// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import FoundationNetworking
    import OperationNetworking
    import OperationTestKit
    import Testing

    extension HttpbinCase {
        static var asking: [HttpbinCase] {
            [
                HttpbinCase("GET with a query") { bench async throws in
                    let echo = try await bench.get("get", ["name": "Anna", "page": 2])
                    #expect(echo.args == ["name": "Anna", "page": "2"])
                    #expect(echo.url.hasSuffix("/get?name=Anna&page=2"))
                },
                HttpbinCase("GET with a list in the query") { bench async throws in
                    let echo = try await bench.get("get", ["tags": ["a", "b"]])
                    #expect(echo.args == ["tags[]": ["a", "b"]])
                },
                HttpbinCase("GET with signs in the query that mean something") { bench async throws in
                    let text = "a&b=c+d e/f?ü€😀"
                    #expect(try await bench.get("get", ["q": text]).args["q"]?.all == [text])
                },
                HttpbinCase("what is nil is not in the query") { bench async throws in
                    #expect(try await bench.get("get", ["a": nil as String?, "b": 1]).args == ["b": "1"])
                },
                HttpbinCase("a path is sent as it was written") { bench async throws in
                    let echo: Echo<NoContent> = try await bench.base.get("anything/a b/ü?x#y").run()
                    // What it repeats it has decoded in part.
                    #expect(echo.url.hasSuffix("/anything/a%20b/ü%3Fx%23y"))
                    #expect(echo.args.isEmpty)
                },
                HttpbinCase("POST without a body") { bench async throws in
                    let echo: Echo<NoContent> = try await bench.base.operation(for: .post("anything")).run()
                    #expect(echo.method == "POST" && echo.data == "" && echo.headers["Content-Length"] == "0")
                },
                HttpbinCase("PUT of a model") { bench async throws in
                    let echo: Echo<Song> = try await bench.base.send(Song.sample, to: "put", by: "PUT").run()
                    #expect(echo.json == .sample && echo.headers["Content-Type"] == "application/json")
                },
                HttpbinCase("PATCH of a model") { bench async throws in
                    let echo: Echo<Song> = try await bench.base.operation(for: .patch("patch", json: Song.sample)).run()
                    #expect(echo.json == .sample)
                },
                HttpbinCase("DELETE") { bench async throws in
                    let echo: Echo<NoContent> = try await bench.base.delete("anything/7").run()
                    #expect(echo.method == "DELETE" && echo.url.hasSuffix("/anything/7"))
                },
                HttpbinCase("HEAD has a head and no body") { bench async throws in
                    var request = URLRequest(url: try bench.url("get"))
                    request.httpMethod = "HEAD"
                    let operation = NetworkDataOperation(request: request, urlSession: bench.session) {
                        data, response in
                        (data.count, response.statusCode)
                    }
                    #expect(try await operation.run() == (0, 200))
                    #expect(operation.responseHead?.headers["Content-Type"] == "application/json")
                },
                HttpbinCase("OPTIONS tells what is allowed") { bench async throws in
                    let request = try NetworkRequest("OPTIONS", url: bench.url("get"))
                    let operation = NetworkDataOperation(request: request, urlSession: bench.session) { _, response in
                        response.value(forHTTPHeaderField: "Allow") ?? ""
                    }
                    #expect(try await operation.run().contains("GET"))
                },
                HttpbinCase("fields of the base and of the endpoint arrive, each once") { bench async throws in
                    var base = bench.base
                    base.headers["X-Client"] = "base"
                    base.headers["X-Both"] = "base"
                    let endpoint = Endpoint<HeadersAnswer>.get("headers").header("X-Both", "endpoint")
                    let headers = try await base.operation(for: endpoint).run().headers
                    #expect(headers["X-Client"] == "base" && headers["X-Both"] == "endpoint")
                    #expect(headers["Accept"] == "application/json")
                },
                HttpbinCase("a hook changes the request") { bench async throws in
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
                HttpbinCase("who asks, and a new name each time") { bench async throws in
                    #expect(try await bench.base.get("ip", as: [String: String].self).run() == ["origin": "127.0.0.1"])
                    let first = try await bench.base.get("uuid", as: [String: UUID].self).run()
                    let second = try await bench.base.get("uuid", as: [String: UUID].self).run()
                    #expect(first["uuid"] != nil && first != second)
                },
                HttpbinCase("fields of a response are read on the operation") { bench async throws in
                    let query = ["X-Answer": "42", "X-Twice": "a"]
                    let operation = bench.base.get("response-headers", query, as: Data.self)
                    _ = try await operation.run()
                    #expect(operation.response?.value(forHTTPHeaderField: "x-answer") == "42")
                    #expect(operation.responseHead?.headers["X-Twice"] == "a")
                },
            ]
        }
    }

    /// What `/headers` says.
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
