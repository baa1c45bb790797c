// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

struct BodyCountTests {
    /// The method, the head, and from how many bytes on nothing is missing; nil for never.
    @Test(
        arguments: [
            ("GET", 200, .http1_1, ["Content-Length": "10"], 10), ("GET", 200, .http2, ["Content-Length": "10"], 10),
            ("GET", 417, .http1_1, ["Content-Length": "10"], 10), ("GET", 200, .http2, [:], nil),
            ("GET", 200, .http1_1, ["Content-Length": "10, 10"], 10),
            ("GET", 417, .http1_1, ["Content-Length": "0"], 0),
            ("HEAD", 200, .http2, ["Content-Length": "10"], 0), ("GET", 204, .http2, [:], 0),
            ("GET", 304, .http2, ["Content-Length": "10"], 0),
            // Thrown away as a whole, or read to the end, which libcurl makes sure of.
            ("GET", 417, .http1_1, ["Transfer-Encoding": "chunked", "Content-Length": "10"], 1),
            ("GET", 417, .http1_1, [:], 1),
        ] as [(String, Int, HTTPVersion, HeaderFields, Int?)])
    func `a body is complete when nothing of what was promised is missing`(
        method: String, status: Int, version: HTTPVersion, fields: HeaderFields, needed: Int?
    ) {
        var count = BodyCount(.init(status: status, version: version, reason: "", fields: fields), method: method)
        for received in 0..<12 {
            #expect(count.isComplete == (needed.map { received >= $0 } ?? false), "\(received) bytes")
            count.add(1)
        }
    }
}
