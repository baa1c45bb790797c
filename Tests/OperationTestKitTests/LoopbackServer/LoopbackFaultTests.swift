// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct LoopbackFaultTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer()
    }

    @Test(arguments: [LoopbackEnding.close, .closeSending, .reset])
    func `a response can be cut at any byte and ends in the specified way`(_ ending: LoopbackEnding) async throws {
        let whole = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n\r\nHello"
        server.route("/*") { request in
            .text("Hello").cut(at: Int(request.path.dropFirst()) ?? 0, by: ending)
        }
        let address = server.addresses[0]
        try await TestThread.run {
            for offset in 0...whole.utf8.count {
                let client = try RawClient(address)
                try client.send(get("/\(offset)"))
                let (text, end) = try client.readToEnd()
                #expect(Array(text.utf8) == Array(whole.utf8.prefix(offset)))
                #expect(end == (ending == .reset ? .reset : .end))
            }
        }
        #expect(server.violations == [])
    }

    @Test func `a gate pauses a response in its middle`() async throws {
        let gate = Gate()
        server.route("/") { _ in
            LoopbackAnswer(.head(200, ["Content-Length": "4"]), .send("ab"), .stall(until: gate), .send("cd"))
        }
        let rest = try await withClient(server) { client in
            try client.send(get("/"))
            _ = try client.readText(38)
            let first = try client.readText(2)
            #expect(first == "ab")
            gate.open()
            return try client.readText(2)
        }
        #expect(rest == "cd")
        await server.counts { $0.answers == 1 }
    }

    @Test func `a connection that has ended no longer waits at a gate`() async throws {
        let gate = Gate()
        server.route("/") { _ in .text("late").after(gate) }
        try await withClient(server) { client in
            try client.send(get("/"))
            try waitUntil { gate.waitingCount == 1 }
            server.endConnections(by: .reset)
            #expect(try client.readToEnd().ending == .reset)
        }
        #expect(gate.waitingCount == 0)
    }

    @Test func `drips and pauses use the clock of the server`() async throws {
        let clock = ManualClock()
        var options = LoopbackServer.Options()
        options.clock = clock
        let server = try LoopbackServer(options)
        server.route("/") { _ in
            LoopbackAnswer(.drip("abc", every: .seconds(1)), .pause(.seconds(60)), .send("d"), closes: true)
        }
        let text = try await withClient(server) { client in
            try client.send(get("/"))
            var text = ""
            for _ in 0..<3 {
                text += try client.readText(1)
                try waitUntil { clock.pendingCount > 0 }
                clock.advanceToNext()
            }
            return text + (try client.readToEnd().text)
        }
        #expect(text == "abcd")
        #expect(clock.now == OperationInstant(offset: .seconds(62)))
        #expect(clock.pendingCount == 0)
    }

    @Test func `an early response is sent while the body is still being received`() async throws {
        server.routeEarly("POST", "/") { _ in .status(413) }
        let answers = try await withClient(server) { client in
            try client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc")
            let early = try client.readAnswer()
            try client.send("def")
            try client.send(get("/none"))
            return [early, try client.readAnswer()]
        }
        #expect(answers.map { String($0.dropFirst(9).prefix(3)) } == ["413", "404"])
        #expect(server.requests.map(\.text) == ["abcdef", ""])
        #expect(server.violations == [])
    }

    @Test func `a response script can wait for bytes of the body`() async throws {
        server.routeEarly("POST", "/") { _ in
            LoopbackAnswer(.awaitBody(atLeast: 3), .head(103), .awaitBody, .head(204))
        }
        try await withClient(server) { client in
            try client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nab")
            try client.send("c")
            #expect(try client.readAnswer().hasPrefix("HTTP/1.1 103"))
            try client.send("def")
            #expect(try client.readAnswer().hasPrefix("HTTP/1.1 204"))
        }
    }

    @Test func `a client that expects 100 Continue receives it`() async throws {
        server.route("/") { request in .text(request.text) }
        try await withClient(server) { client in
            try client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            #expect(try client.readAnswer() == "HTTP/1.1 100 Continue\r\n\r\n")
            try client.send("ab")
            #expect(try client.readAnswer().hasSuffix("ab"))
        }
    }

    @Test func `a server that stops reading blocks the client until it resumes`() async throws {
        var options = LoopbackServer.Options()
        options.receiveBufferSize = 4_096
        let server = try LoopbackServer(options)
        let gate = Gate()
        server.routeEarly("/") { _ in LoopbackAnswer(.stopReading, .stall(until: gate), .readOn, .awaitBody, .head(204))
        }
        let count = 32 << 20
        try await withClient(server) { client in
            try client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: \(count)\r\n\r\n")
            let block = TestPattern.bytes(count: 1 << 20)
            var sent = 0
            // Until the system accepts no more bytes, although the server is alive.
            while sent < count {
                let more = client.sendWithoutWaiting(block)
                sent += more
                if more < block.count { break }
            }
            #expect(sent < count)
            gate.open()
            try client.send([UInt8](repeating: 0, count: count - sent))
            #expect(try client.readAnswer().hasPrefix("HTTP/1.1 204"))
        }
        #expect(server.requests.first?.bodyCount == count)
    }

    @Test func `slow reading reads a fixed number of bytes per interval of the clock`() async throws {
        let clock = ManualClock()
        var options = LoopbackServer.Options()
        options.clock = clock
        let server = try LoopbackServer(options)
        server.routeEarly("/") { _ in LoopbackAnswer(.readSlowly(size: 3, every: .seconds(1)), .awaitBody, .head(204)) }
        let answer = try await withClient(server) { client in
            try client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n")
            try waitUntil { server.counts.heads == 1 }
            try client.send("0123456789")
            for _ in 0..<4 {
                try waitUntil { clock.pendingCount > 0 }
                clock.advanceToNext()
            }
            return try client.readAnswer()
        }
        #expect(answer.hasPrefix("HTTP/1.1 204"))
        #expect(server.requests.first?.text == "0123456789")
    }

    @Test func `closing idle connections keeps busy connections open`() async throws {
        let gate = Gate()
        server.route("/busy") { _ in .text("done").after(gate) }
        let address = server.addresses[0]
        try await TestThread.run {
            let idle = try RawClient(address), busy = try RawClient(address)
            try idle.send(get("/"))
            _ = try idle.readAnswer()
            try busy.send(get("/busy"))
            try waitUntil { server.counts.heads == 2 && server.counts.idleConnections == 1 }
            server.endIdleConnections()
            #expect(try idle.readToEnd() == ("", .end))
            gate.open()
            #expect(try busy.readAnswer().hasSuffix("done"))
            server.endConnections(by: .reset)
            #expect(try busy.readToEnd() == ("", .reset))
        }
        await server.counts { $0.openConnections == 0 }
        #expect(server.counts.idleConnections == 0)
    }

    @Test func `stalled connections receive nothing more, and all others receive responses`() async throws {
        let count = 32 << 20
        server.route("/large") { _ in .bytes(TestPattern.bytes(count: count)) }
        let address = server.addresses[0]
        try await TestThread.run {
            let idle = try RawClient(address), busy = try RawClient(address)
            try idle.send(get("/"))
            let answer = try idle.readAnswer()
            try busy.send(get("/large"))
            let head = try busy.readHead()
            server.endConnections(by: .stall)
            // The server handles messages before later connections, so it has stalled the others before it responds.
            let later = try RawClient(address)
            try later.send(get("/"))
            #expect(try later.readAnswer() == answer)
            try idle.send(get("/"))
            try waitUntil { server.counts.answers == 2 && server.counts.requests == 4 }
            let sent = server.counts.sentBytes - 2 * answer.utf8.count
            #expect(sent < count)
            // The system now has room for the rest of the response.
            _ = try busy.read(sent - head.utf8.count)
            try later.send(get("/"))
            #expect(try later.readAnswer() == answer)
            #expect(server.counts.openConnections == 3)
            server.stop()
            #expect(try busy.readToEnd() == ("", .end))
            #expect(try idle.readToEnd() == ("", .end))
        }
    }

    @Test func `a server that closes its sending side during a response continues to read`() async throws {
        server.routeEarly("PUT", "/") { _ in .repeating([1], count: 32 << 20) }
        try await withClient(server) { client in
            try client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc")
            _ = try client.readHead()
            server.endConnections(by: .closeSending)
            #expect(try client.readToEnd().ending == .end)
            try client.send("def")
            try waitUntil { server.counts.requests == 1 }
            #expect(server.counts.openConnections == 1 && server.counts.abandoned == 0)
        }
        #expect(server.requests.first?.text == "abcdef")
    }

    @Test(arguments: [true, false])
    func `a connection is closed after a number of requests, with or without an announcement`(
        _ says: Bool
    ) async throws {
        var options = LoopbackServer.Options()
        options.requestsPerConnection = 2
        options.announcesClosing = says
        let server = try LoopbackServer(options)
        try await withClient(server) { client in
            try client.send(get("/"))
            #expect(!(try client.readAnswer().contains("Connection: close")))
            try client.send(get("/"))
            #expect(try client.readToEnd().text.contains("Connection: close") == says)
        }
    }

    @Test func `connections are not accepted while accepting is disabled`() async throws {
        var options = LoopbackServer.Options()
        options.accepts = false
        let server = try LoopbackServer(options)
        try await withClient(server) { client in
            try client.send(get("/"))
            #expect(server.counts.connections == 0)
            server.setAccepting(true)
            #expect(try client.readAnswer().contains("404"))
        }
    }

    #if os(Linux)
        // Runs in a separate process, because all code of a process shares its descriptors.
        @Test func `a server accepts a waiting connection when the system has a free descriptor again`() async throws {
            await #expect(processExitsWith: .success) {
                let server = try LoopbackServer()
                let address = server.addresses[0]
                try await TestThread.run {
                    let first = try RawClient(address)
                    func ask(_ client: RawClient) throws {
                        try client.send(get("/"))
                        #expect(try client.readAnswer().contains("404"))
                    }
                    // The server accepts the first connection while the process has free descriptors.
                    try ask(first)
                    var limit = rlimit(rlim_cur: 96, rlim_max: 96)
                    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                    var taken: [Int32] = []
                    while case let file = open("/dev/null", O_RDONLY), file >= 0 { taken.append(file) }
                    // The second client takes the only free descriptor, so the server has none to accept it.
                    if let file = taken.popLast() { close(file) }
                    let second = try RawClient(address)
                    // The second of these responses is sent after the server tried to accept the second connection.
                    for _ in 0..<2 { try ask(first) }
                    #expect(server.counts.connections == 1)
                    for file in taken { close(file) }
                    try ask(second)
                }
            }
        }
    #endif

    @Test func `a greeting is sent before any request`() async throws {
        server.greet { number in number == 0 ? .raw("HTTP/1.1 408 Too Late\r\n\r\n") : nil }
        server.route("/") { _ in .text("ok") }
        let address = server.addresses[0]
        try await TestThread.run {
            #expect(try RawClient(address).readToEnd() == ("HTTP/1.1 408 Too Late\r\n\r\n", .end))
            let second = try RawClient(address)
            try second.send(get("/"))
            #expect(try second.readAnswer().hasSuffix("ok"))
        }
    }

    @Test func `every protocol violation of a client is detected`() async throws {
        let cases: [(String, LoopbackViolation.Code)] = [
            ("GET / HTTP/1.1\nHost: h\r\n\r\n", .lineEnd),
            ("GET / HTTP/1.1\r\nHost: h\n\r\n", .lineEnd),
            ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", .requestLine),
            ("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", .requestLine),
            ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", .requestLine),
            ("G<T / HTTP/1.1\r\nHost: h\r\n\r\n", .requestLine),
            ("GET / HTTP/1.1\r\n\r\n", .host),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", .host),
            ("GET / HTTP/1.1\r\nHost:\r\n\r\n", .host),
            ("GET / HTTP/1.1\r\nHost: h\r\nA : b\r\n\r\n", .field),
            ("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", .field),
            ("GET / HTTP/1.1\r\nHost: h\r\nA: b\u{0}c\r\n\r\n", .field),
            ("GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", .field),
            ("GET / HTTP/1.1\r\nHost: h\r\nnonsense\r\n\r\n", .field),
            ("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", .length),
            ("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na", .length),
            ("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", .length),
            ("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", .length),
            ("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n\r\n", .chunk),
            ("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", .chunk),
            ("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nab", .surplus),
            ("GET / HTTP/1.1\r\nHost: h\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n", .surplus),
        ]
        for (bytes, code) in cases {
            let server = try LoopbackServer()
            server.route("/*") { _ in .status(204).after(.milliseconds(1)).closing() }
            try await withClient(server) { client in
                try client.send(bytes)
                _ = try client.readToEnd()
            }
            #expect(server.violations.first?.code == code, "\(bytes.debugDescription): \(server.violations)")
        }
    }

    @Test func `a client that disconnects before its response is counted as abandoned`() async throws {
        server.route("/") { _ in .silence }
        try await withClient(server) { client in
            try client.send(get("/"))
            try waitUntil { server.counts.requests == 1 }
        }
        await server.counts { $0.openConnections == 0 }
        #expect(server.counts.abandoned == 1)
    }

    @Test func `an endless response continues until the client disconnects`() async throws {
        server.route("/head") { _ in
            LoopbackAnswer(.send("HTTP/1.1 200 OK\r\n"), .send(repeating: Array("A: b\r\n".utf8), count: nil))
        }
        try await withClient(server) { client in
            try client.send(get("/head"))
            #expect(try client.read(1 << 20).count == 1 << 20)
        }
        await server.counts { $0.openConnections == 0 }
    }

    @Test func `canceling a task that waits for counts ends the wait`() async throws {
        let task = Task { await server.counts { $0.requests > 0 } }
        task.cancel()
        #expect(await task.value.requests == 0)
    }
}
