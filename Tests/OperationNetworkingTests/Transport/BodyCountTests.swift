// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

struct BodyCountTests {
    /// The method, the response, and the number of bytes at which the body is complete, or `nil` for never.
    @Test(
        arguments: [
            ("GET", 200, .http1_1, ["Content-Length": "10"], 10), ("GET", 200, .http2, ["Content-Length": "10"], 10),
            ("GET", 417, .http1_1, ["Content-Length": "10"], 10), ("GET", 200, .http2, [:], nil),
            ("GET", 200, .http1_1, ["Content-Length": "10, 10"], 10),
            ("GET", 417, .http1_1, ["Content-Length": "0"], 0),
            ("HEAD", 200, .http2, ["Content-Length": "10"], 0), ("GET", 204, .http2, [:], 0),
            ("GET", 304, .http2, ["Content-Length": "10"], 0),
            // libcurl ensures that this body is either discarded completely or read to its end.
            ("GET", 417, .http1_1, ["Transfer-Encoding": "chunked", "Content-Length": "10"], 1),
            ("GET", 417, .http1_1, [:], 1),
        ] as [(String, Int, HTTPVersion, HeaderFields, Int?)])
    func `a body is complete when all promised bytes have arrived`(
        method: String, status: Int, version: HTTPVersion, fields: HeaderFields, needed: Int?
    ) {
        var count = BodyCount(.init(status: status, version: version, reason: "", fields: fields), method: method)
        for received in 0..<12 {
            #expect(count.isComplete == (needed.map { received >= $0 } ?? false), "\(received) bytes")
            count.add(1)
        }
    }
}
