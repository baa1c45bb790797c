// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct LoopbackServerTests {
    @Test func `a route sends a response, and the server records the request`() async throws {
        let server = try LoopbackServer()
        server.route("GET", "/greeting") { _ in .text("Hello") }
        let answer = try await withClient(server) { client in
            try client.send(get("/greeting?a=1", "X-One: a\r\nx-one:  b \r\n"))
            return try client.readAnswer()
        }
        #expect(
            answer
                == "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n\r\nHello")
        let request = try #require(await server.requests(atLeast: 1).first)
        #expect(request.method == "GET")
        #expect(request.target == "/greeting?a=1")
        #expect(request.path == "/greeting")
        #expect(request.query == "a=1")
        #expect(request.values("X-One") == ["a", "b"])
        #expect(request.fields.map(\.name) == ["Host", "X-One", "x-one"])
        #expect(
            String(decoding: request.headBytes, as: UTF8.self) == get("/greeting?a=1", "X-One: a\r\nx-one:  b \r\n"))
        #expect(request.isComplete)
        #expect(server.violations == [])
    }

    @Test func `a request without a route gets a 404, and later routes override earlier ones`() async throws {
        let server = try LoopbackServer()
        server.route("/a/*") { _ in .status(500) }
        server.route("PUT", "/a/b") { _ in .status(201) }
        let statuses = try await withClient(server) { client in
            try ["GET /x", "GET /a/b", "PUT /a/b", "GET /a/"].map { line in
                try client.send("\(line) HTTP/1.1\r\nHost: h\r\n\r\n")
                return String(try client.readAnswer().dropFirst(9).prefix(3))
            }
        }
        #expect(statuses == ["404", "500", "201", "500"])
        // The response may be counted after the client has read it.
        await server.counts { $0.answers >= 4 }
        #expect(server.counts.connections == 1)
        #expect(server.counts.answers == 4)
    }

    @Test func `bodies with a length and chunked bodies are received and echoed`() async throws {
        let server = try LoopbackServer()
        server.route("POST", "/echo") { request in .text(request.text) }
        let answers = try await withClient(server) { client in
            try client.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n")
            try client.send("hello")
            let first = try client.readAnswer()
            try client.send("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
            for piece in ["3\r", "\nabc\r\n", "A\r\n01234", "56789\r\n", "0\r\nX-Sum: 1\r\n", "\r\n"] {
                try client.send(piece)
            }
            return [first, try client.readAnswer()]
        }
        #expect(answers.map { $0.components(separatedBy: "\r\n\r\n").last } == ["hello", "abc0123456789"])
        let requests = await server.requests(atLeast: 2)
        #expect(requests.map(\.bodyCount) == [5, 13])
        #expect(requests.map(\.numberOnConnection) == [0, 1])
        #expect(requests.last?.trailers == [LoopbackField("X-Sum", "1")])
        #expect(server.violations == [])
    }

    @Test func `a server also listens on IPv6 and on a Unix socket`() async throws {
        let path = "/tmp/loopback-\(UInt64.random(in: 0 ... .max)).sock"
        var options = LoopbackServer.Options()
        options.addresses = [.ipv4, .ipv6, .unixSocket(path: path)]
        let server = try LoopbackServer(options)
        server.route("/") { request in .text("connection \(request.connection)") }
        #expect(
            server.addresses[0].description.split(separator: ":").last
                == server.addresses[1].description.split(separator: ":").last)
        for address in server.addresses {
            let answer = try await TestThread.run {
                let client = try RawClient(address)
                try client.send(get("/"))
                return try client.readAnswer()
            }
            #expect(answer.contains("connection"))
        }
        #expect(server.url("/x").absoluteString == "http://127.0.0.1:\(server.port)/x")
        #expect(server.url("/x", at: server.addresses[1]).absoluteString == "http://[::1]:\(server.port)/x")
        await server.stopped()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `a server on an address in use or with an invalid path throws a helpful error`() async throws {
        let server = try LoopbackServer()
        var options = LoopbackServer.Options()
        options.addresses = [.ipv4(port: server.port)]
        let error = #expect(throws: LoopbackServerError.self) { try LoopbackServer(options) }
        #expect(error?.code == .addressInUse)
        #expect(error?.description.contains("Use port 0") == true)
        options.addresses = [.ipv4, .unixSocket(path: String(repeating: "x", count: 200))]
        #expect(throws: LoopbackServerError.self) { try LoopbackServer(options) }
        options.addresses = [.unixSocket(path: "/no/such/folder/s")]
        #expect(#expect(throws: LoopbackServerError.self) { try LoopbackServer(options) }?.code == .invalidPath)
    }

    @Test func `a port can be reused after its server is stopped`() async throws {
        let first = try LoopbackServer()
        let port = first.port
        try await withClient(first) { client in
            try client.send(get("/"))
            _ = try client.readAnswer()
            first.stop()
            #expect(try client.readToEnd() == ("", .end))
        }
        await first.stopped()
        var options = LoopbackServer.Options()
        options.addresses = [.ipv4(port: port)]
        let second = try LoopbackServer(options)
        second.route("/") { _ in .text("again") }
        let answer = try await withClient(second) { client in
            try client.send(get("/"))
            return try client.readAnswer()
        }
        #expect(answer.hasSuffix("again"))
    }
}
