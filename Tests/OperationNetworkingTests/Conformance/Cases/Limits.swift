// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking
import OperationTestKit
import Testing

extension ConformanceCase {
    static var limits: [ConformanceCase] {
        [
            ConformanceCase("endless headers fail with headerTooLarge, and the session stops reading") {
                bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(
                        .send("HTTP/1.1 200 OK\r\n"),
                        .send(repeating: Array("X-A: \(String(repeating: "a", count: 900))\r\n".utf8), count: nil))
                }
                #expect(try await bench.get().error?.code == .headerTooLarge)
                await bench.server.counts { $0.openConnections == 0 }
                #expect(bench.server.counts.sentBytes < 64 << 20)
                try await bench.checkHealth()
            },
            ConformanceCase("an endless header line fails the request") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(.send("HTTP/1.1 200 OK\r\nX-A: "), .send(repeating: [97], count: nil))
                }
                try await bench.checkHeadIsRefused()
            },
            ConformanceCase("an endless status line fails the request") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(.send("HTTP/1.1 200 "), .send(repeating: [97], count: nil))
                }
                try await bench.checkHeadIsRefused()
            },
            ConformanceCase("an endless line of garbage fails the request") { bench async throws in
                bench.server.route("/") { _ in LoopbackAnswer(.send(repeating: [97], count: nil)) }
                try await bench.checkHeadIsRefused()
            },
            ConformanceCase("endless informational responses fail the request") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(
                        .send(repeating: Array("HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n".utf8), count: nil))
                }
                try await bench.checkHeadIsRefused()
            },
            ConformanceCase("endless trailers fail the request") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(
                        .head(200, ["Transfer-Encoding": "chunked"]), .chunk("hello"), .send("0\r\n"),
                        .send(repeating: Array("X-A: aaaaaaaaaaaaaaaaaaaaaaaaa\r\n".utf8), count: nil))
                }
                #expect(try await bench.get().error?.code == .headerTooLarge)
                try await bench.checkHealth()
            },
            ConformanceCase("an endless chunk extension fails the request") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(
                        .head(200, ["Transfer-Encoding": "chunked"]), .send("5;"), .send(repeating: [97], count: nil))
                }
                let request = try bench.request { $0.timeouts.total = .seconds(2) }
                #expect(await bench.run(request).error != nil)
                try await bench.checkHealth()
            },
            ConformanceCase("maximumHeaderSize limits the size of the headers") { bench async throws in
                let head =
                    "HTTP/1.1 200 OK\r\nX-A: \(String(repeating: "a", count: 2_000))\r\nContent-Length: 0\r\n\r\n"
                bench.server.route("/") { _ in .raw(head) }
                let small = await bench.run(try bench.request { $0.maximumHeaderSize = head.utf8.count - 1 })
                #expect(small.error?.code == .headerTooLarge)
                let large = await bench.run(try bench.request { $0.maximumHeaderSize = head.utf8.count })
                #expect(large.isSuccess)
            },
            ConformanceCase("a decompression bomb fails with expansionTooLarge before it fills memory") {
                bench async throws in
                bench.server.route("/") { _ in .bomb(count: 1 << 30) }
                let record = try await bench.get()
                #expect(record.error?.code == .expansionTooLarge)
                #expect(record.bodyCount < 32 << 20)
                try await bench.checkHealth()
            },
            ConformanceCase("a small body may expand a thousandfold") { bench async throws in
                bench.server.route("/") { _ in .bomb(count: 500_000) }
                let record = try await bench.get()
                #expect(record.isSuccess)
                #expect(abs(record.bodyCount - 500_000) <= 1_032)
            },
            ConformanceCase("a request can raise maximumExpansion") { bench async throws in
                bench.server.route("/") { _ in .bomb(count: 20 << 20) }
                let record = await bench.run(try bench.request { $0.maximumExpansion = 2_000 })
                #expect(record.isSuccess)
                #expect(abs(record.bodyCount - 20 << 20) <= 1_032)
            },
            ConformanceCase("a receiver can cancel an endless body") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(.head(200), .send(repeating: TestPattern.block, count: nil))
                }
                let received = Locked(0)
                let record = await bench.run(try bench.request()) { event, task in
                    guard case .bytes(let count) = event else { return }
                    if received.withLock({
                        $0 += count; return $0 > 1 << 20
                    }) {
                        task.cancel()
                    }
                }
                #expect(record.error?.code == .cancelled)
                #expect(record.isPattern)
                await bench.server.counts { $0.openConnections == 0 }
                try await bench.checkHealth()
            },
        ]
    }
}
