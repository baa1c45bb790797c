// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct ConformanceFuzzTests {
    private static let responses =
        [
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nX-Sum: abc\r\n\r\n",
            "HTTP/1.1 302 Found\r\nLocation: //[::1]/\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"a\", nonce=\"b\"\r\nContent-Length: 0\r\n\r\n",
        ].map { Array($0.utf8) } + [
            Array("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 28\r\n\r\n".utf8)
                + Gzip.stored(Array("hello".utf8))
        ]

    private static let spice = [
        "\r\n", "\n", "\r", "\0", ":", " ", "HTTP/1.1 ", "Content-Length: 9223372036854775807\r\n",
        "Transfer-Encoding: chunked\r\n",
        "FFFFFFFFFFFFFFFF\r\n", "-1", "\u{301}", "Content-Encoding: gzip, br, zstd\r\n", "Location: //a%20b/\r\n",
        "0\r\n\r\n",
    ].map { Array($0.utf8) }

    private static func mutated(_ seed: UInt64) -> [UInt8] {
        var generator = SeededGenerator(seed: seed)
        func random(_ limit: Int) -> Int { Int.random(in: 0..<max(limit, 1), using: &generator) }
        var bytes = responses[random(responses.count)]
        for _ in 0...random(4) where !bytes.isEmpty {
            let place = random(bytes.count)
            switch random(6) {
            case 0: bytes[place] = UInt8(random(256))
            case 1: bytes.remove(at: place)
            case 2: bytes.insert(UInt8(random(256)), at: place)
            case 3: bytes.insert(contentsOf: spice[random(spice.count)], at: place)
            case 4: bytes.removeSubrange(place...)
            default:
                bytes.insert(contentsOf: bytes[place..<min(place + random(30), bytes.count)], at: random(bytes.count))
            }
        }
        return bytes
    }

    @Test(arguments: SessionKind.allCases)
    func `a response truncated at any byte fails, and only the complete response succeeds`(_ kind: SessionKind)
        async throws
    {
        let bench = try Bench(kind)
        for (number, response) in Self.responses.enumerated() {
            for ending in [LoopbackEnding.close, .reset] {
                for offset in 0..<response.count {
                    bench.server.route("/") { _ in LoopbackAnswer(.send(response)).cut(at: offset, by: ending) }
                    let record = try await bench.get()
                    // Without only the very last line feed, the response is already complete for the client.
                    if ending == .close, offset == response.count - 1, record.isSuccess { continue }
                    let code = try #require(record.error?.code, "response \(number), \(offset) bytes, \(ending)")
                    #expect([.connectionLost, .truncatedBody, .invalidResponse, .undecodableBody].contains(code))
                }
                bench.server.route("/") { _ in .raw(response) }
                #expect(try await bench.get().isSuccess, "response \(number)")
            }
        }
        try await bench.checkHealth()
        bench.closeSession()
        await bench.server.stopped()
    }

    @Test(arguments: SessionKind.allCases)
    func `every mutated response ends its request exactly once, without a timeout`(_ kind: SessionKind) async throws {
        let rounds = Rounds.count(ci: 2_000, soak: 200_000)
        let bench = try Bench(kind)
        bench.server.route("/*") { request in .raw(Self.mutated(UInt64(request.path.dropFirst()) ?? 0)) }
        var memory: Int?
        for first in stride(from: 0, to: rounds, by: 50) {
            var runs: [(UInt64, Bench.Running)] = []
            for round in first..<min(first + 50, rounds) {
                let seed = Rounds.firstSeed + UInt64(round)
                runs.append(
                    (seed, bench.start(try bench.request("GET", "/\(seed)") { $0.timeouts.total = .seconds(10) })))
            }
            for (seed, run) in runs {
                let record = await run.receiver.end()
                #expect(record.ends == 1 && record.faults.isEmpty, "seed \(seed): \(record.faults)")
                #expect(record.error?.code != .timedOut, "seed \(seed)")
            }
            if first >= rounds / 2, memory == nil { memory = ProcessFigures.residentBytes }
        }
        if let memory { #expect(ProcessFigures.residentBytes - memory < 32 << 20) }
        // A response may be complete for the client before the server has sent everything, so requests may seem early.
        try await bench.checkSession()
        bench.closeSession()
        await bench.server.stopped()
    }
}
