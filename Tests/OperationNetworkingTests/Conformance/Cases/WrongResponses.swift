// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

extension ConformanceCase {
    /// An invalid response, and the error codes that the session may report for it.
    ///
    /// `nil` permits success.
    private static func wrong(
        _ name: String, _ answer: LoopbackAnswer, _ codes: NetworkError.Code?...
    ) -> ConformanceCase {
        ConformanceCase(name) { bench async throws in
            bench.server.route("/") { _ in answer }
            let record = try await bench.get()
            #expect(codes.contains(record.error?.code), "\(String(describing: record.error))")
            if let error = record.error {
                #expect(!error.message.isEmpty)
                #expect(!error.isUnsent)
            }
            try await bench.checkHealth()
        }
    }

    private static func wrong(_ name: String, _ bytes: String, _ codes: NetworkError.Code?...) -> ConformanceCase {
        ConformanceCase(name) { bench async throws in
            bench.server.route("/") { _ in .raw(bytes) }
            let record = try await bench.get()
            #expect(codes.contains(record.error?.code), "\(String(describing: record.error)) \(record.text)")
            try await bench.checkHealth()
        }
    }

    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    private static func coded(_ coding: String, _ bytes: [UInt8]) -> LoopbackAnswer {
        .bytes(bytes, fields: [LoopbackField("Content-Encoding", coding)])
    }

    static var wrongResponses: [ConformanceCase] {
        [
            wrong("a connection closed without a response fails the request", .hangUp, .connectionLost),
            wrong("a connection reset without a response fails the request", .reset, .connectionLost),
            wrong("a response that is not HTTP is rejected", "Welcome to the mail server\r\n\r\n", .invalidResponse),
            wrong(
                "a header line that begins with a carriage return is rejected",
                "HTTP/1.1 200 OK\r\nA: b\r\n\rContent-Length: 5\r\n\r\nhello", .invalidResponse),
            wrong(
                "an informational status line with a malformed HTTP version is rejected",
                "HTTP/x1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", .invalidResponse),
            ConformanceCase("a first header that begins with a space is rejected on a reused connection") {
                bench async throws in
                // libcurl 7.88 appends this line to the last header of the previous response, which is freed memory.
                bench.server.route("/before") { _ in .bytes(Array("well".utf8), fields: [LoopbackField("X-Last", "a")])
                }
                bench.server.route("/") { _ in .raw("HTTP/1.1 200 OK\r\n folded\r\nContent-Length: 0\r\n\r\n") }
                for _ in 0..<50 {
                    #expect(try await bench.get("/before").isSuccess)
                    #expect(try await bench.get().error?.code == .invalidResponse)
                }
                try await bench.checkHealth()
            },
            wrong("a response of binary data is rejected", .raw((0...255).map { UInt8($0) }), .invalidResponse),
            wrong("a body without headers is rejected", "<html>hello</html>", .invalidResponse),
            wrong("a status that is not a number is rejected", "HTTP/1.1 abc OK\r\n\r\n", .invalidResponse),
            wrong("a status of two digits is rejected", "HTTP/1.1 99 OK\r\n\r\n", .invalidResponse),
            wrong(
                "a status of four digits is rejected or accepted without a crash",
                "HTTP/1.1 2000 OK\r\n\r\n", .invalidResponse, nil),
            wrong("a negative status is rejected", "HTTP/1.1 -20 OK\r\n\r\n", .invalidResponse),
            wrong(
                "an unknown HTTP version is rejected or accepted without a crash",
                "HTTP/9.9 200 OK\r\n\r\n", .invalidResponse, nil),
            wrong(
                "a response truncated in the status line fails the request", "HTTP/1.1 200 O", .connectionLost,
                .invalidResponse,
                .truncatedBody),
            wrong(
                "a response truncated after the status line fails the request", "HTTP/1.1 200 OK\r\n", .connectionLost,
                .invalidResponse, .truncatedBody),
            wrong(
                "a response truncated within a header fails the request", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX",
                .connectionLost, .invalidResponse, .truncatedBody),
            wrong(
                "headers truncated before the empty line fail the request", "HTTP/1.1 200 OK\r\nX-A: b\r\n",
                .connectionLost,
                .invalidResponse, .truncatedBody),
            wrong(
                "an informational response without a final response fails the request",
                "HTTP/1.1 103 Early\r\n\r\n", .connectionLost,
                .invalidResponse, .truncatedBody),
            wrong(
                "a body shorter than its Content-Length fails with truncatedBody",
                "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
                .truncatedBody),
            wrong(
                "a body of which no byte arrives fails with truncatedBody",
                "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n",
                .truncatedBody),
            wrong(
                "a connection reset during the body fails the request",
                LoopbackAnswer(.head(200, ["Content-Length": "6"]), .send("hel"), .reset), .connectionLost,
                .truncatedBody),
            wrong(
                "a connection reset during a chunked body fails the request",
                LoopbackAnswer(.head(200, ["Transfer-Encoding": "chunked"]), .chunk("hel"), .reset), .connectionLost,
                .truncatedBody),
            wrong(
                "a chunked body without a last chunk fails the request",
                chunked + "5\r\nhello\r\n", .truncatedBody, .connectionLost),
            wrong("a truncated chunk fails the request", chunked + "5\r\nhel", .truncatedBody, .connectionLost),
            wrong("a truncated chunk size fails the request", chunked + "5", .truncatedBody, .connectionLost),
            wrong(
                "a last chunk without the empty line fails the request",
                chunked + "5\r\nhello\r\n0\r\n", .truncatedBody,
                .connectionLost),
            wrong(
                "a truncated trailer fails the request", chunked + "5\r\nhello\r\n0\r\nX-A: b", .truncatedBody,
                .connectionLost),
            wrong("a chunked response without any chunk fails the request", chunked, .truncatedBody, .connectionLost),
            wrong(
                "a chunk size that is not a number is rejected", chunked + "zz\r\nhello\r\n0\r\n\r\n",
                .invalidResponse),
            wrong("a negative chunk size is rejected", chunked + "-5\r\nhello\r\n0\r\n\r\n", .invalidResponse),
            wrong(
                "a chunk size that overflows is rejected",
                chunked + "FFFFFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
                .invalidResponse),
            wrong(
                "the largest possible chunk size fails without a crash",
                chunked + "7FFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
                .truncatedBody, .connectionLost, .invalidResponse),
            wrong(
                "a chunk longer than its stated size is rejected", chunked + "3\r\nhello\r\n0\r\n\r\n", .invalidResponse
            ),
            wrong(
                "two different Content-Length headers are rejected",
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
                .invalidResponse),
            wrong(
                "two lengths in one Content-Length header are rejected",
                "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello!",
                .invalidResponse),
            wrong(
                "a negative Content-Length is rejected",
                "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", .invalidResponse),
            wrong(
                "a Content-Length with a sign is rejected", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
                .invalidResponse),
            wrong(
                "a Content-Length that is not a number is rejected",
                "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
                .invalidResponse),
            wrong(
                "an empty Content-Length is rejected",
                "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello", .invalidResponse),
            wrong(
                "a hexadecimal Content-Length is rejected", "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello",
                .invalidResponse),
            wrong(
                "a Content-Length that overflows is rejected",
                "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello", .invalidResponse, .bodyTooLarge),
            wrong(
                "the largest possible Content-Length fails without a crash",
                "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nhello", .truncatedBody),
            wrong(
                "a Content-Length just below the maximum fails without a crash",
                "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775200\r\n\r\nhello", .truncatedBody),
            wrong(
                "a NUL byte in a header is rejected or accepted without a crash",
                "HTTP/1.1 200 OK\r\nX-A: a\u{0}b\r\nContent-Length: 5\r\n\r\nhello", .invalidResponse, nil),
            wrong(
                "a header line without a colon is rejected",
                "HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 5\r\n\r\nhello",
                .invalidResponse),
            wrong(
                "a header without a name is rejected", "HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 5\r\n\r\nhello",
                .invalidResponse),
            wrong(
                "a folded line before any header is rejected or accepted without a crash",
                "HTTP/1.1 200 OK\r\n x\r\nContent-Length: 5\r\n\r\nhello", .invalidResponse, nil),
            wrong(
                "an unrequested 101 Switching Protocols response is rejected",
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nhello", .invalidResponse),
            wrong("an unknown Content-Encoding is rejected", coded("rot13", Array("uryyb".utf8)), .undecodableBody),
            wrong(
                "six nested content codings are rejected", coded("gzip, gzip, gzip, gzip, gzip, gzip", Array("x".utf8)),
                .undecodableBody),
            wrong(
                "a body that is not gzip despite its Content-Encoding is rejected",
                coded("gzip", Array("hello hello hello".utf8)), .undecodableBody
            ),
            wrong(
                "a truncated gzip body with a correct Content-Length is rejected",
                coded("gzip", Array(Gzip.stored(Array(repeating: 65, count: 5_000)).dropLast(100))), .undecodableBody,
                .truncatedBody),
            wrong(
                "a gzip body with a wrong checksum is rejected",
                coded(
                    "gzip",
                    Array(Gzip.stored(Array(repeating: 65, count: 5_000)).dropLast(8)) + [1, 2, 3, 4, 0x88, 0x13, 0, 0]),
                .undecodableBody),
            wrong(
                "an empty gzip body is either rejected or delivered as empty",
                coded("gzip", []), .undecodableBody, .truncatedBody, nil),
            wrong(
                "a body that is not Brotli despite its Content-Encoding is rejected",
                coded("br", Array("hello hello hello".utf8)), .undecodableBody
            ),
            wrong(
                "a body that is not deflate despite its Content-Encoding is rejected",
                coded("deflate", Array("hello hello hello".utf8)),
                .undecodableBody),
        ]
    }
}
