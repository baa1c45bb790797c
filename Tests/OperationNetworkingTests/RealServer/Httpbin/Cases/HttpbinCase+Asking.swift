// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
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
                HttpbinCase("the headers of an endpoint override those of its base") { bench async throws in
                    var base = bench.base
                    base.headers["X-Client"] = "base"
                    base.headers["X-Both"] = "base"
                    let endpoint = Endpoint<HeadersAnswer>.get("headers").header("X-Both", "endpoint")
                    let headers = try await base.operation(for: endpoint).run().headers
                    #expect(headers["X-Client"] == "base" && headers["X-Both"] == "endpoint")
                    #expect(headers["Accept"] == "application/json")
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
#endif
