// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct ResponseHeadParserTests {
    private func parse(_ text: String) -> (events: [ResponseHeadParser.Event], trailers: HeaderFields) {
        var parser = ResponseHeadParser()
        var events: [ResponseHeadParser.Event] = []
        for line in text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast() {
            (Array(line) + [0x0A]).withUnsafeBytes { bytes in
                let event = parser.receive(bytes)
                if event != .none { events.append(event) }
            }
        }
        return (events, parser.trailers)
    }

    @Test func `informational responses, headers and trailers are parsed separately`() {
        let (events, trailers) = parse(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/2 200 \r\nA: b\r\nA:  c \r\n d\r\nE:\r\n\r\nF: g\r\n")
        #expect(
            events == [
                .head(.init(status: 100, version: .http1_1, reason: "Continue")),
                .head(.init(status: 200, version: .http2, reason: "", fields: ["A": "b", "A": "c d", "E": ""])),
            ])
        #expect(trailers == ["F": "g"])
    }

    @Test func `a status line between headers is rejected`() {
        let (events, _) = parse("HTTP/1.1 200 OK\r\nHTTP/1.1 103 EarTransfer-Encoding: chunked\r\n\r\n")
        #expect(events.first == .refused("a status line arrived before the headers were complete"))
    }

    @Test func `control characters in header values become spaces, and are rejected in sensitive places`() {
        func fields(_ lines: String) -> HeaderFields? {
            guard case .head(let head) = parse("HTTP/1.1 200 O\u{1B}K\r\n\(lines)\r\n\r\n").events.first else {
                return nil
            }
            #expect(head.reason == "O K")
            return head.fields
        }
        #expect(fields("X: a\rSet-Cookie: evil=1") == ["X": "a Set-Cookie: evil=1"])
        #expect(fields("X: \u{1B}[2J\u{0}\u{7F}b\tc\r") == ["X": "[2J  b\tc"])
        #expect(fields("X: a\r\n b\rc") == ["X": "a b c"])
        #expect(fields("Location: /a\rb") == ["Location": "/a b"])
        #expect(fields("Set-Cookie: a=\u{1}b") == ["Set-Cookie": ""])
        for line in ["X\u{1B}: a", "Content-Length: 1\r0", "Transfer-Encoding: \u{B}chunked", " X: a"] {
            #expect(fields(line) == nil, "\(line.debugDescription)")
        }
    }

    @Test func `random lines never crash the parser`() {
        var generator = SeededGenerator(seed: 7)
        let parts: [[UInt8]] = ["HTTP/1.1 ", "200", " ", "\r\n", ":", "\r", "Content-Length", ",", "\t", "9"].map {
            Array($0.utf8)
        }
        for _ in 0..<20_000 {
            var parser = ResponseHeadParser()
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                var line: [UInt8] = []
                for _ in 0..<Int.random(in: 0...8, using: &generator) {
                    line +=
                        Bool.random(using: &generator)
                        ? parts[Int.random(in: 0..<parts.count, using: &generator)]
                        : [UInt8.random(in: 0...255, using: &generator)]
                }
                _ = line.withUnsafeBytes { parser.receive($0) }
            }
        }
    }

    @Test(arguments: [
        ("chunked", false), ("Chunked", false), ("identity", false), ("identity, chunked", false), ("", false),
        ("gzip, chunked", true), ("chunked, gzip", true), ("gzip", true), ("chunked, chunked", true), ("xyz", true),
    ])
    func `a Transfer-Encoding other than chunked is rejected`(_ codings: String, _ isRefused: Bool) {
        for line in [codings, codings.split(separator: ", ").joined(separator: "\r\nTransfer-Encoding: ")] {
            let event = parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(line)\r\n\r\n").events.last
            if case .refused = event { #expect(isRefused, "\(line)") } else { #expect(!isRefused, "\(line)") }
        }
    }

    @Test func `non-UTF-8 bytes are percent-encoded in a Location and invalidate a cookie`() {
        func parse(_ lines: [String]) -> ResponseHeadParser.Event {
            var parser = ResponseHeadParser()
            var last = ResponseHeadParser.Event.none
            // Each scalar represents one byte here.
            for line in lines {
                let bytes = line.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
                last = bytes.withUnsafeBytes { parser.receive($0) }
            }
            return last
        }
        let event = parse([
            "HTTP/1.1 302 Found\r\n", "Location: /caf\u{E9}?x=\u{C3}\u{28}\r\n", "Set-Cookie: a=\u{E9}\r\n",
            "Set-Cookie: b=\u{C3}\u{A9}\r\n", "X: \u{E9}\r\n", "Content-Location: /\u{C3}\u{A9}\r\n", "\r\n",
        ])
        let fields: HeaderFields = [
            "Location": "/caf%E9?x=%C3(", "Set-Cookie": "", "Set-Cookie": "b=é", "X": "é", "Content-Location": "/é",
        ]
        #expect(event == .head(.init(status: 302, version: .http1_1, reason: "Found", fields: fields)))
    }

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
        let head = ResponseHeadParser.Head(status: status, version: version, reason: "", fields: fields)
        for received in 0..<12 {
            let isComplete = head.isBody(of: Int64(received), completeFor: method)
            #expect(isComplete == (needed.map { received >= $0 } ?? false), "\(received) bytes")
        }
    }
}
