// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

extension ConformanceCase {
    /// What a server sends that is wrong, and as which errors it may be told; nil among them allows success.
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
            wrong("a connection that is closed without an answer is an error", .hangUp, .connectionLost),
            wrong("a connection that is reset without an answer is an error", .reset, .connectionLost),
            wrong("garbage is an error", "Welcome to the mail server\r\n\r\n", .invalidResponse),
            wrong("bytes of no text are an error", .raw((0...255).map { UInt8($0) }), .invalidResponse),
            wrong("a body without a head is an error", "<html>hello</html>", .invalidResponse),
            wrong("a status that is no number is an error", "HTTP/1.1 abc OK\r\n\r\n", .invalidResponse),
            wrong("a status of two digits is an error", "HTTP/1.1 99 OK\r\n\r\n", .invalidResponse),
            wrong("a status of four digits is an error", "HTTP/1.1 2000 OK\r\n\r\n", .invalidResponse, nil),
            wrong("a negative status is an error", "HTTP/1.1 -20 OK\r\n\r\n", .invalidResponse),
            wrong("a version that nobody knows is an error", "HTTP/9.9 200 OK\r\n\r\n", .invalidResponse, nil),
            wrong(
                "a head that is cut in its status line is an error", "HTTP/1.1 200 O", .connectionLost,
                .invalidResponse,
                .truncatedBody),
            wrong(
                "a head that is cut behind its status line is an error", "HTTP/1.1 200 OK\r\n", .connectionLost,
                .invalidResponse, .truncatedBody),
            wrong(
                "a head that is cut in its middle is an error", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX",
                .connectionLost, .invalidResponse, .truncatedBody),
            wrong(
                "a head that is cut before its empty line is an error", "HTTP/1.1 200 OK\r\nX-A: b\r\n",
                .connectionLost,
                .invalidResponse, .truncatedBody),
            wrong(
                "an informational head without a head is an error", "HTTP/1.1 103 Early\r\n\r\n", .connectionLost,
                .invalidResponse, .truncatedBody),
            wrong(
                "a body that is shorter than its length is an error",
                "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
                .truncatedBody),
            wrong(
                "a body of which nothing comes is an error", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n",
                .truncatedBody),
            wrong(
                "a body that is reset in its middle is an error",
                LoopbackAnswer(.head(200, ["Content-Length": "6"]), .send("hel"), .reset), .connectionLost,
                .truncatedBody),
            wrong(
                "a body in chunks that is reset in its middle is an error",
                LoopbackAnswer(.head(200, ["Transfer-Encoding": "chunked"]), .chunk("hel"), .reset), .connectionLost,
                .truncatedBody),
            wrong("chunks without their end are an error", chunked + "5\r\nhello\r\n", .truncatedBody, .connectionLost),
            wrong("a chunk that is cut is an error", chunked + "5\r\nhel", .truncatedBody, .connectionLost),
            wrong("a size of a chunk that is cut is an error", chunked + "5", .truncatedBody, .connectionLost),
            wrong(
                "a last chunk without its empty line is an error", chunked + "5\r\nhello\r\n0\r\n", .truncatedBody,
                .connectionLost),
            wrong(
                "a trailer that is cut is an error", chunked + "5\r\nhello\r\n0\r\nX-A: b", .truncatedBody,
                .connectionLost),
            wrong("no chunks where chunks were announced are an error", chunked, .truncatedBody, .connectionLost),
            wrong(
                "a size of a chunk that is no number is an error", chunked + "zz\r\nhello\r\n0\r\n\r\n",
                .invalidResponse),
            wrong("a negative size of a chunk is an error", chunked + "-5\r\nhello\r\n0\r\n\r\n", .invalidResponse),
            wrong(
                "a size of a chunk beyond all numbers is an error",
                chunked + "FFFFFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
                .invalidResponse),
            wrong(
                "the largest size of a chunk is an error and no trap",
                chunked + "7FFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
                .truncatedBody, .connectionLost, .invalidResponse),
            wrong(
                "a chunk that is longer than it says is an error", chunked + "3\r\nhello\r\n0\r\n\r\n", .invalidResponse
            ),
            wrong(
                "two lengths are an error", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
                .invalidResponse),
            wrong(
                "two lengths in one field are an error", "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello!",
                .invalidResponse),
            wrong(
                "a negative length is an error", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", .invalidResponse),
            wrong(
                "a length with a sign is an error", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
                .invalidResponse),
            wrong(
                "a length that is no number is an error", "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
                .invalidResponse),
            wrong("an empty length is an error", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello", .invalidResponse),
            wrong(
                "a length in another system is an error", "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello",
                .invalidResponse),
            wrong(
                "a length beyond all numbers is an error",
                "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello", .invalidResponse, .bodyTooLarge),
            wrong(
                "the largest length is an error and no trap",
                "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nhello", .truncatedBody),
            wrong(
                "a length just below the largest is an error and no trap",
                "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775200\r\n\r\nhello", .truncatedBody),
            wrong(
                "a zero byte in a head is an error or read, and no trap",
                "HTTP/1.1 200 OK\r\nX-A: a\u{0}b\r\nContent-Length: 5\r\n\r\nhello", .invalidResponse, nil),
            wrong(
                "a line without a colon is an error", "HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 5\r\n\r\nhello",
                .invalidResponse),
            wrong(
                "a field without a name is an error", "HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 5\r\n\r\nhello",
                .invalidResponse),
            wrong(
                "a folded line without one before it is an error",
                "HTTP/1.1 200 OK\r\n x\r\nContent-Length: 5\r\n\r\nhello", .invalidResponse, nil),
            wrong(
                "a switch of protocols that nobody asked for is an error",
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nhello", .invalidResponse),
            wrong("a coding that nobody knows is an error", coded("rot13", Array("uryyb".utf8)), .undecodableBody),
            wrong(
                "six codings are an error", coded("gzip, gzip, gzip, gzip, gzip, gzip", Array("x".utf8)),
                .undecodableBody),
            wrong(
                "a gzip body that is none is an error", coded("gzip", Array("hello hello hello".utf8)), .undecodableBody
            ),
            wrong(
                "a gzip body that is cut, though its length is right, is an error",
                coded("gzip", Array(Gzip.stored(Array(repeating: 65, count: 5_000)).dropLast(100))), .undecodableBody,
                .truncatedBody),
            wrong(
                "a gzip body with a wrong checksum is an error",
                coded(
                    "gzip",
                    Array(Gzip.stored(Array(repeating: 65, count: 5_000)).dropLast(8)) + [1, 2, 3, 4, 0x88, 0x13, 0, 0]),
                .undecodableBody),
            wrong("an empty gzip body is empty, or an error", coded("gzip", []), .undecodableBody, .truncatedBody, nil),
            wrong(
                "a brotli body that is none is an error", coded("br", Array("hello hello hello".utf8)), .undecodableBody
            ),
            wrong(
                "a deflate body that is none is an error", coded("deflate", Array("hello hello hello".utf8)),
                .undecodableBody),
        ]
    }
}
