// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

extension ConformanceCase {
    /// The exact bytes of a valid response, and the result that the session must deliver.
    private static func right(
        _ name: String, _ bytes: String, _ status: Int = 200, _ body: String = "hello", method: String = "GET",
        also check: @escaping @Sendable (RecordingReceiver.Record) -> Void = { _ in }
    ) -> ConformanceCase {
        ConformanceCase(name) { bench async throws in
            bench.server.route("/") { _ in .raw(bytes) }
            let record = await bench.run(try bench.request(method))
            #expect(record.error == nil)
            #expect(record.status == status)
            #expect(record.text == body)
            check(record)
            try await bench.checkHealth()
        }
    }

    static var rightResponses: [ConformanceCase] {
        [
            right("a body with Content-Length arrives completely", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            {
                #expect($0.head?.expectedLength == 5)
            },
            right(
                "a chunked body arrives completely",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
            ) { #expect($0.head?.expectedLength == nil) },
            right(
                "trailers after a chunked body are delivered separately from the headers",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: abc\r\nX-Two: 2\r\nX-Empty:\r\n\r\n"
            ) { record in
                #expect(record.trailers?.values("X-Sum") == ["abc"])
                #expect(record.trailers?.values("X-Two") == ["2"])
                #expect(record.trailers?.values("X-Empty") == [""])
                #expect(record.head?.headers.contains("X-Sum") == false)
            },
            right(
                "an empty chunked body with trailers is accepted",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: abc\r\n\r\n", 200, ""),
            right(
                "chunk extensions are ignored",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0;c\r\n\r\n"),
            right(
                "chunk sizes may have leading zeros",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0005\r\nhello\r\n000\r\n\r\n"),
            right("a body may end when the connection closes", "HTTP/1.1 200 OK\r\n\r\nhello"),
            right("a body that ends when the connection closes may be empty", "HTTP/1.1 200 OK\r\n\r\n", 200, ""),
            right("a body may have Content-Length 0", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, ""),
            right(
                "a 205 response has no body", "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", 205, ""),
            right("a 204 response has no body", "HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
            right(
                "a 304 response has no body, even with Content-Length",
                "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
                304,
                ""),
            right(
                "a response to HEAD has no body, even with Content-Length",
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, "", method: "HEAD"
            ) { #expect($0.head?.expectedLength == 5) },
            right(
                "a response to HEAD may have Transfer-Encoding: chunked",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                200,
                "",
                method: "HEAD"),
            right(
                "a header needs no space after the colon", "HTTP/1.1 200 OK\r\nX-A:x\r\nContent-Length:5\r\n\r\nhello"
            ) {
                #expect($0.head?.headers["X-A"] == "x")
            },
            right(
                "whitespace around header values is removed",
                "HTTP/1.1 200 OK\r\nX-A: \t  x y \t \r\nContent-Length:   5\r\n\r\nhello"
            ) {
                #expect($0.head?.headers["X-A"] == "x y")
            },
            right(
                "a header value may be empty", "HTTP/1.1 200 OK\r\nX-A:\r\nX-B:   \r\nContent-Length: 5\r\n\r\nhello"
            ) {
                #expect($0.head?.headers["X-A"] == "")
                #expect($0.head?.headers["X-B"] == "")
            },
            right("a status line needs no reason phrase", "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello") {
                #expect($0.head?.reason == "")
            },
            right("a status line may end in a space", "HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello"),
            right(
                "the reason phrase of a status line is delivered",
                "HTTP/1.1 200 Very Well Done\r\nContent-Length: 5\r\n\r\nhello"
            ) {
                #expect($0.head?.reason == "Very Well Done" && $0.head?.version == .http1_1)
            },
            right("header lines may end in a bare line feed", "HTTP/1.1 200 OK\nX-A: x\nContent-Length: 5\n\nhello") {
                #expect($0.head?.headers["X-A"] == "x")
            },
            right(
                "a folded header line continues the previous line",
                "HTTP/1.1 200 OK\r\nX-A: x\r\n  y\r\nContent-Length: 5\r\n\r\nhello"
            ) {
                #expect($0.head?.headers["X-A"] == "x y")
            },
            right(
                "repeated headers stay separate and in order",
                "HTTP/1.1 200 OK\r\nX-A: 1\r\nX-B: 2\r\nx-a: 3, 4\r\nContent-Length: 5\r\n\r\nhello"
            ) {
                #expect($0.head?.headers.values("x-a") == ["1", "3, 4"])
                #expect($0.head?.headers.map(\.name) == ["X-A", "X-B", "x-a", "Content-Length"])
            },
            right(
                "Set-Cookie headers with unusual characters are delivered",
                "HTTP/1.1 200 OK\r\nSet-Cookie: \u{301}=x; a\r\nSet-Cookie: \u{200D}=\u{200D}\r\nContent-Length: 5\r\n\r\nhello"
            ) {
                #expect($0.head?.headers.values("Set-Cookie").count == 2)
            },
            right("an HTTP/1.0 response is accepted", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello") {
                #expect($0.head?.version == .http1_0)
            },
            right(
                "an informational response is delivered separately",
                "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
            ) {
                #expect($0.informational.map(\.status) == [103])
                #expect($0.informational.first?.headers["Link"] == "<a>")
                #expect($0.head?.headers.contains("Link") == false)
            },
            right(
                "several informational responses are delivered separately",
                String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 20)
                    + "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <b>\r\n\r\n"
                    + "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
            ) {
                #expect($0.informational.map(\.status) == Array(repeating: 102, count: 20) + [100, 103])
                #expect($0.informational.compactMap { $0.headers["Link"] } == ["<b>"])
                #expect($0.informational.last?.headers["Link"] == "<b>" && $0.head?.headers["Link"] == nil)
            },
            right(
                "a repeated Content-Length with the same value is accepted",
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"
            ),
            right(
                "Transfer-Encoding: chunked overrides Content-Length",
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            right(
                "a body of a thousand one-byte chunks arrives completely",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + String(repeating: "1\r\nx\r\n", count: 1_000)
                    + "0\r\n\r\n", 200, String(repeating: "x", count: 1_000)),
            right(
                "a header of 60,000 bytes is accepted",
                "HTTP/1.1 200 OK\r\nX-A: " + String(repeating: "a", count: 60_000)
                    + "\r\nContent-Length: 5\r\n\r\nhello"
            ) {
                #expect($0.head?.headers["X-A"]?.utf8.count == 60_000)
            },
            right(
                "a response with a thousand headers is accepted",
                "HTTP/1.1 200 OK\r\n" + (0..<1_000).map { "X-\($0): \($0)\r\n" }.joined()
                    + "Content-Length: 5\r\n\r\nhello"
            ) {
                #expect($0.head?.headers["X-999"] == "999")
            },
            right(
                "a response with Connection: close arrives completely",
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"),
            right(
                "Content-Encoding: identity leaves the body unchanged",
                "HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello"),
            ConformanceCase("a header value that is not UTF-8 is read as Latin-1") { bench async throws in
                bench.server.route("/") { _ in
                    .raw(
                        Array("HTTP/1.1 200 OK\r\nX-A: ".utf8) + [0xE9, 0xFF]
                            + Array("\r\nContent-Length: 5\r\n\r\nhello".utf8))
                }
                let record = try await bench.get()
                #expect(record.text == "hello")
                #expect(record.head?.headers["X-A"] == "\u{E9}\u{FF}")
            },
            ConformanceCase("a gzip body is decompressed and marked as decoded") { bench async throws in
                let text = String(repeating: "All work and no play. ", count: 5_000)
                bench.server.route("/") { _ in .gzip(Array(text.utf8)) }
                let record = try await bench.get()
                #expect(record.text == text)
                #expect(record.head?.isDecoded == true)
                #expect(record.head?.expectedLength == nil)
                #expect(bench.server.requests.first?["Accept-Encoding"]?.contains("gzip") == true)
            },
            ConformanceCase("a request with its own Accept-Encoding receives the body undecoded") {
                bench async throws in
                let packed = Gzip.stored(Array("hello".utf8))
                bench.server.route("/") { _ in .gzip(Array("hello".utf8)) }
                let record = await bench.run(try bench.request("GET", "/", ["Accept-Encoding": "gzip"]))
                #expect(record.body == packed)
                #expect(record.head?.isDecoded == false)
                #expect(bench.server.requests.first?.values("Accept-Encoding") == ["gzip"])
            },
            ConformanceCase("a request with decodesContent set to false receives the body undecoded") {
                bench in
                bench.server.route("/") { _ in .gzip(Array("hello".utf8)) }
                let record = await bench.run(try bench.request { $0.decodesContent = false })
                #expect(record.body == Gzip.stored(Array("hello".utf8)))
                #expect(bench.server.requests.first?.values("Accept-Encoding").allSatisfy { $0 == "identity" } == true)
            },
            ConformanceCase("a response that arrives byte by byte is delivered completely") { bench async throws in
                let bytes =
                    "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-A: b\r\n\r\n"
                bench.server.route("/") { _ in LoopbackAnswer(.drip(bytes, every: .microseconds(100))) }
                let record = try await bench.get()
                #expect(record.text == "hello")
                #expect(record.informational.count == 1)
                #expect(record.trailers?["X-A"] == "b")
            },
            ConformanceCase("every byte of a large body arrives exactly once") { bench async throws in
                let count = Rounds.count(ci: 32 << 20, soak: 1 << 30)
                bench.server.route("/") { _ in .repeating(TestPattern.block, count: count) }
                let record = try await bench.get()
                #expect(record.isSuccess)
                #expect(record.bodyCount == count)
                #expect(record.isPattern)
            },
            ConformanceCase("a request with Range and If-Range receives the requested part") { bench async throws in
                let resource = LoopbackResource(.pattern(count: 100_000), etag: "\"one\"")
                bench.server.route("/") { resource.answer(to: $0) }
                let record = await bench.run(
                    try bench.request("GET", "/", ["Range": "bytes=70000-", "If-Range": "\"one\""]))
                #expect(record.status == 206)
                #expect(record.body == TestPattern.bytes(from: 70_000, count: 30_000))
                #expect(record.head?.headers["Content-Range"] == "bytes 70000-99999/100000")
            },
            ConformanceCase("metrics report bytes, times, version and connection reuse") { bench async throws in
                bench.server.route("/") { _ in .text("hello") }
                let record = try await bench.get()
                let metrics = try #require(record.metrics)
                #expect(metrics.bodyBytesReceived == 5)
                #expect(metrics.isConnectionReused == false)
                #expect(metrics.version == .http1_1)
                let first = try #require(metrics.firstByte), last = try #require(metrics.ended)
                #expect(first <= last)
                #expect(try await bench.get().metrics?.isConnectionReused == true)
            },
        ]
    }
}
