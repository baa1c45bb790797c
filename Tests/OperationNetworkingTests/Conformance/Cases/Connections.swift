// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

extension ConformanceCase {
    static var connections: [ConformanceCase] {
        [
            ConformanceCase("sequential requests reuse one connection") { bench async throws in
                bench.server.route("/") { _ in .text("hello") }
                for _ in 0..<20 { #expect(try await bench.get().text == "hello") }
                #expect(bench.server.counts.connections == 1)
            },
            ConformanceCase("a connection is reused after every kind of body") { bench async throws in
                bench.server.route("/length") { _ in .text("hello") }
                bench.server.route("/chunks") { _ in .chunks(["hel", "lo"], trailers: ["X-A": "b"]) }
                bench.server.route("/empty") { _ in .status(204) }
                bench.server.route("/gzip") { _ in .gzip(Array("hello".utf8)) }
                for target in ["/length", "/chunks", "/empty", "/gzip", "/length"] {
                    #expect(try await bench.get(target).isSuccess)
                }
                let head = await bench.run(try bench.request("HEAD", "/length"))
                #expect(head.status == 200)
                let post = await bench.run(try bench.request("POST", "/length", body: .data(Data(count: 100_000))))
                #expect(post.text == "hello")
                #expect(bench.server.counts.connections == 1)
                #expect(bench.server.violations == [])
            },
            ConformanceCase("a connection is not reused after a response with Connection: close") {
                bench async throws in
                bench.server.route("/") { _ in .text("hello").with("Connection", "close") }
                for _ in 0..<3 { #expect(try await bench.get().text == "hello") }
                #expect(bench.server.counts.connections == 3)
            },
            ConformanceCase("a session opens no more connections than its limit allows") { bench async throws in
                bench.server.route("/") { _ in .text("hello").after(.milliseconds(2)) }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<60 {
                        group.addTask { () async throws in #expect(try await bench.get().text == "hello") }
                    }
                    try await group.waitForAll()
                }
                #expect(bench.server.counts.connections <= 6)
            },
            ConformanceCase("requests succeed after the server closed or reset an idle connection") {
                bench async throws in
                bench.server.route("/") { .text("\($0.bodyCount)") }
                for round in 0..<20 {
                    let body = round % 3 == 0 ? RequestBody.none : .data(Data(count: 100_000))
                    let record = await bench.run(try bench.request(["GET", "POST", "PUT"][round % 3], body: body))
                    #expect(record.isSuccess, "\(String(describing: record.error))")
                    #expect(record.text == (round % 3 == 0 ? "0" : "100000"))
                    await bench.server.counts { $0.idleConnections == $0.openConnections }
                    bench.server.endIdleConnections(by: round % 2 == 0 ? .close : .reset)
                    await bench.server.counts { $0.openConnections == 0 }
                }
                #expect(bench.server.requests.map(\.bodyCount) == (0..<20).map { $0 % 3 == 0 ? 0 : 100_000 })
            },
            ConformanceCase(
                "no body is sent twice when the server closes connections as they are reused",
                options: {
                    $0.requestsPerConnection = 1
                    $0.announcesClosing = false
                }
            ) { bench async throws in
                bench.server.route("/") { .text($0.text) }
                for number in 0..<Rounds.count(ci: 100, soak: 5_000) {
                    let record = await bench.run(try bench.request("POST", body: .data(Data("body \(number)".utf8))))
                    if record.error == nil {
                        #expect(record.text == "body \(number)")
                    } else {
                        #expect(record.error?.code == .connectionLost, "\(String(describing: record.error))")
                    }
                }
                let seen = bench.server.requests.filter(\.isComplete).map(\.text)
                #expect(Set(seen).count == seen.count)
                #expect(seen.allSatisfy { $0.hasPrefix("body ") })
                #expect(bench.server.violations == [])
            },
            ConformanceCase("a POST that the server may have processed is not sent again") { bench async throws in
                bench.server.route("/first") { _ in .text("hello") }
                bench.server.route("/act") { _ in .hangUp }
                for (number, body) in [RequestBody.data(Data("x".utf8)), .none].enumerated() {
                    _ = try await bench.get("/first")
                    let record = await bench.run(try bench.request("POST", "/act", body: body))
                    #expect(record.error?.code == .connectionLost)
                    #expect(record.error?.isUnsent == false)
                    #expect(bench.server.requests.filter { $0.path == "/act" }.count == number + 1)
                }
                try await bench.checkHealth()
            },
            ConformanceCase("a GET is sent at most twice if the server closes the reused connection") {
                bench async throws in
                bench.server.route("/first") { _ in .text("hello") }
                bench.server.route("/gone") { _ in .hangUp }
                _ = try await bench.get("/first")
                #expect(try await bench.get("/gone").error?.code == .connectionLost)
                #expect(bench.server.requests.filter { $0.path == "/gone" }.count <= 2)
                try await bench.checkHealth()
            },
            ConformanceCase("extra bytes after a response are not delivered as the next response") {
                bench async throws in
                let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
                bench.server.route("/") { _ in
                    LoopbackAnswer(.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" + poison))
                }
                bench.server.route("/next") { _ in .text("right") }
                for _ in 0..<10 {
                    #expect(try await bench.get().text == "hello")
                    let next = try await bench.get("/next")
                    #expect(next.text == "right" || next.error != nil)
                }
            },
            ConformanceCase("extra bytes after a response without a body are not delivered as the next response") {
                bench async throws in
                let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
                bench.server.route("/") { _ in LoopbackAnswer(.send("HTTP/1.1 204 No Content\r\n\r\n" + poison)) }
                bench.server.route("/next") { _ in .text("right") }
                for _ in 0..<10 {
                    #expect(try await bench.get().status == 204)
                    let next = try await bench.get("/next")
                    #expect(next.text == "right" || next.error != nil)
                }
            },
            ConformanceCase("bytes that arrive on an idle connection are not delivered as a response") {
                bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(
                        .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), .pause(.milliseconds(5)),
                        .send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nlate"), .close)
                }
                bench.server.route("/next") { _ in .text("right") }
                for _ in 0..<5 {
                    #expect(try await bench.get().text == "hello")
                    await bench.server.counts { $0.openConnections == 0 }
                    let next = try await bench.get("/next")
                    #expect(next.text == "right", "\(String(describing: next.error))")
                }
            },
            ConformanceCase("a session reconnects to a server that was restarted") { bench async throws in
                bench.server.route("/") { _ in .text("old") }
                #expect(try await bench.get().text == "old")
                let port = bench.server.port, request = try bench.request()
                await bench.server.stopped()
                #expect(await bench.run(request).error?.code == .cannotConnect)
                let options = with(LoopbackServer.Options()) { $0.addresses = [.ipv4(port: port)] }
                let next = try LoopbackServer(options)
                next.route("/") { _ in .text("new") }
                #expect(await bench.run(request).text == "new")
            },
            ConformanceCase("every request ends when a server under load breaks all connections") {
                bench in
                bench.server.route("/") { _ in .repeating(TestPattern.block, count: 200_000) }
                let runs = try (0..<200).map { _ in bench.start(try bench.request()) }
                for step in 1...10 {
                    await bench.server.counts { $0.heads >= step * 12 }
                    bench.server.endConnections(by: step % 2 == 0 ? .reset : .close)
                }
                for run in runs {
                    let record = await run.end()
                    #expect(record.isPattern)
                    if record.error == nil { #expect(record.bodyCount == 200_000) }
                }
                try await bench.checkHealth()
            },
            ConformanceCase("closing a session ends each running task exactly once") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(.head(200, ["Content-Length": "9"]), .send("hello"), .stallForever)
                }
                let runs = try (0..<20).map { _ in bench.start(try bench.request()) }
                _ = await runs[0].receiver.record { $0.bodyCount > 0 }
                bench.closeSession()
                for run in runs { #expect(await run.end().error?.code == .sessionClosed) }
                await bench.server.counts { $0.openConnections == 0 }
                #expect(try await bench.run(bench.request()).error?.code == .sessionClosed)
            },
            ConformanceCase("a released session completes its running task first") { bench async throws in
                bench.server.route("/") { _ in .text("hello").after(.milliseconds(20)) }
                var session: (any NetworkSession)? = bench.kind.makeSession().0
                let receiver = RecordingReceiver()
                session?.makeTask(with: try bench.request(), receiver: receiver).resume()
                session = nil
                #expect(await receiver.end().text == "hello")
                await bench.server.counts { $0.openConnections == 0 }
            },
        ]
    }
}
