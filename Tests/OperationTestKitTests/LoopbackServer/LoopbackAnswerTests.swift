// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct LoopbackAnswerTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer()
    }

    private func exchange(_ server: LoopbackServer, _ request: String) async throws -> String {
        try await withClient(server) { client in
            try client.send(request)
            return try client.readAnswer()
        }
    }

    @Test func `the response to HEAD has the headers of GET and no body`() async throws {
        server.route("GET", "/") { _ in .text("Hello") }
        try await withClient(server) { client in
            try client.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try client.readHead().hasSuffix("Content-Length: 5\r\n\r\n"))
            try client.send(get("/"))
            #expect(try client.readAnswer().hasSuffix("Hello"))
        }
    }

    @Test func `the response to HEAD has no chunks`() async throws {
        server.route("GET", "/chunks") { _ in .chunks(["a"], trailers: ["X-A": "b"]) }
        server.route("GET", "/echo") { _ in .echo }
        server.route("GET", "/next") { _ in .text("next") }
        try await withClient(server) { client in
            for target in ["/chunks", "/echo"] {
                try client.send("HEAD \(target) HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try client.readHead().hasSuffix("Transfer-Encoding: chunked\r\n\r\n"))
                try client.send(get("/next"))
                #expect(try client.readAnswer().hasSuffix("\r\n\r\nnext"))
            }
        }
    }

    @Test func `a resource is served whole and in ranges`() async throws {
        let resource = LoopbackResource(
            .pattern(count: 100_000), etag: "\"one\"", lastModified: "Sat, 01 Jan 2000 00:00:00 GMT")
        server.route("/") { resource.answer(to: $0) }
        let whole = TestPattern.bytes(count: 100_000)
        let cases: [(String, Int, ClosedRange<Int>?)] = [
            ("", 200, 0...99_999),
            ("Range: bytes=0-0\r\n", 206, 0...0),
            ("Range: bytes=65520-65530\r\n", 206, 65_520...65_530),
            ("Range: bytes=99990-\r\n", 206, 99_990...99_999),
            ("Range: bytes=99990-200000\r\n", 206, 99_990...99_999),
            ("Range: bytes=-5\r\n", 206, 99_995...99_999),
            ("Range: bytes=100000-\r\n", 416, nil),
            ("Range: bytes=6-5\r\n", 200, 0...99_999), ("Range: bytes=5-x\r\n", 200, 0...99_999),
            ("Range: lines=1-2\r\n", 200, 0...99_999),
            ("Range: bytes=5-6\r\nIf-Range: \"one\"\r\n", 206, 5...6),
            ("Range: bytes=5-6\r\nIf-Range: \"two\"\r\n", 200, 0...99_999),
            ("Range: bytes=5-6\r\nIf-Range: Sat, 01 Jan 2000 00:00:00 GMT\r\n", 206, 5...6),
            ("If-None-Match: \"one\"\r\n", 304, nil),
        ]
        for (fields, status, range) in cases {
            let bytes = try await withClient(server) { client in
                try client.send(get("/", fields + "Connection: close\r\n"))
                return try client.read(1 << 20)
            }
            let blank = try #require(bytes.indices.first { bytes[$0...].starts(with: [13, 10, 13, 10]) })
            let head = String(decoding: bytes[..<blank], as: UTF8.self)
            #expect(head.hasPrefix("HTTP/1.1 \(status)"), "\(fields)")
            #expect(bytes[(blank + 4)...] == (range.map { whole[$0] } ?? []), "\(fields)")
            if status == 206, let range {
                #expect(head.contains("Content-Range: bytes \(range.lowerBound)-\(range.upperBound)/100000"))
            }
            if status == 416 { #expect(head.contains("Content-Range: bytes */100000")) }
        }
    }

    @Test func `the test pattern has bytes at negative offsets and at the largest one`() {
        let bytes = TestPattern.bytes(from: TestPattern.period - 5, count: 10)
        #expect(TestPattern.bytes(from: -5, count: 10) == bytes)
        #expect(TestPattern.matches(bytes, from: -5) && !TestPattern.matches(bytes, from: -6))
        #expect(TestPattern.matches(TestPattern.bytes(from: .max, count: 70_000), from: .max))
    }

    @Test func `a file is served in a range, and an empty file is served`() async throws {
        let path = "/tmp/loopback-\(UInt64.random(in: 0 ... .max)).bin"
        try Data(TestPattern.bytes(count: 300_000)).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        server.route("/") { LoopbackResource(.file(path, count: 300_000)).answer(to: $0) }
        server.route("/empty") { LoopbackResource(.file(path, count: 0)).answer(to: $0) }
        server.route("/more") { _ in
            LoopbackAnswer(.head(200, ["Content-Length": "9"]), .sendFile(path, offset: 299_998, count: 9))
        }
        try await withClient(server) { client in
            try client.send(get("/", "Range: bytes=7-\r\n"))
            #expect(try client.readHead().contains("Content-Range: bytes 7-299999/300000"))
            #expect(TestPattern.matches(try client.read(299_993), from: 7))
            // The connection stays open.
            for _ in 0..<2 {
                try client.send(get("/empty"))
                #expect(try client.readAnswer().contains("Content-Length: 0\r\n"))
            }
            try client.send(get("/more"))
            #expect(try client.readToEnd().ending == .reset)
        }
    }

    @Test func `an echo response is sent while the body is still arriving`() async throws {
        server.routeEarly("/") { _ in .echo }
        try await withClient(server) { client in
            try client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc")
            _ = try client.readAnswer()
            #expect(try client.readText(8) == "3\r\nabc\r\n")
            try client.send("def")
            #expect(try client.readText(13) == "3\r\ndef\r\n0\r\n\r\n")
        }
        server.route("/late") { _ in .echo }
        try await withClient(server) { client in
            try client.send("PUT /late HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabcdef")
            _ = try client.readAnswer()
            #expect(try client.readText(16) == "6\r\nabcdef\r\n0\r\n\r\n")
        }
    }

    #if os(Linux) || os(macOS)
        @Test func `gzip bodies can be decompressed by gunzip`() async throws {
            let server = try LoopbackServer()
            let text = String(repeating: "All work and no play. ", count: 10_000)
            server.route("/stored") { _ in .gzip(Array(text.utf8)) }
            let bytes = try await withClient(server) { client in
                try client.send(get("/stored", "Connection: close\r\n"))
                return try client.read(1 << 20)
            }
            let blank = try #require(bytes.indices.first { bytes[$0...].starts(with: [13, 10, 13, 10]) })
            #expect(try await TestThread.run { try gunzip(Array(bytes[(blank + 4)...])) } == Data(text.utf8))
        }
    #endif

    @Test func `basic and bearer challenges accept only the right credentials`() async throws {
        let basic = LoopbackChallenge.basic(user: "Aladdin", password: "open sesame")
        let bearer = LoopbackChallenge.bearer { $0 == "t1" }
        server.route("/basic") { basic.answer(to: $0, granting: .text("in")) }
        server.route("/bearer") { bearer.answer(to: $0, granting: .text("in")) }
        #expect(try await exchange(server, get("/basic")).contains("WWW-Authenticate: Basic realm=\"test\""))
        let right = "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"
        #expect(try await exchange(server, get("/basic", right)).hasSuffix("in"))
        #expect(try await exchange(server, get("/bearer", right)).contains("401"))
        #expect(try await exchange(server, get("/bearer", "Authorization: Bearer t1\r\n")).hasSuffix("in"))
        #expect(try await exchange(server, get("/bearer", "Authorization: Bearer t2\r\n")).contains("401"))
    }
}

#if os(Linux) || os(macOS)
    private func gunzip(_ bytes: [UInt8]) throws -> Data {
        let path = "/tmp/loopback-\(UInt64.random(in: 0 ... .max)).gz"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let process = Process(), output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["gzip", "-dc", path]
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return data
    }
#endif
