// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationCore
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(Rounds.timeLimit), .serialized)
    struct DownloadCrashTests {
        private static let size = Rounds.count(ci: 48 << 20, soak: 1 << 30)
        private static let kills = Rounds.count(ci: 12, soak: 200)

        @Test func `killed again and again, a download goes on from its bytes and is right at the end`() async throws {
            let seed = Rounds.firstSeed
            var generator = SeededGenerator(seed: seed)
            // Small buffers in the system: what is in them when the program is killed was not received by it.
            var serverOptions = LoopbackServer.Options()
            serverOptions.sendBufferSize = 64 << 10
            let bench = try DownloadBench(.curl, serverOptions)
            bench.serve(LoopbackResource(.pattern(count: Self.size), etag: "\"one\""))
            let counter = bench.url("counter")
            try Data(count: 8).write(to: counter)
            var killed = 0
            for _ in 0..<Self.kills {
                let child = try start(bench, counter)
                let target =
                    bench.server.counts.sentBytes
                    + Int.random(in: 0...(2 * Self.size / (Self.kills + 2)), using: &generator)
                // At once, too: before it asked, while it prepares.
                _ = await bench.server.counts { $0.sentBytes >= target || $0.openConnections == 0 && $0.answers > 0 }
                child.kill()
                killed += await child.ended() == "" ? 1 : 0
                if bench.names("in").contains("file") { break }
            }
            var rounds = 0
            while !bench.names("in").contains("file"), rounds < 3 {
                rounds += 1
                let child = try start(bench, counter)
                #expect(await child.ended() == "OK \(Self.size)\n", "seed \(seed)")
            }
            #expect(bench.names("in") == ["file"], "seed \(seed)")
            #expect(try isPattern(bench.url("in/file")), "seed \(seed)")
            #expect(bench.server.requests.allSatisfy { $0["Range"] == nil || $0["If-Range"] == "\"one\"" })
            let received = try Data(contentsOf: counter).withUnsafeBytes { Int($0.loadUnaligned(as: UInt64.self)) }
            let twice = Double(received - Self.size) / Double(Self.size) * 100
            print(
                "soak: \(killed) kills of a download of \(Self.size >> 20) MiB, \(twice) % of the bytes received twice")
            #expect(twice <= 5 * (Rounds.isSoak ? 1 : 4), "seed \(seed)")
            #expect(bench.server.requests.contains { $0["Range"] != nil })
        }

        @Test func `a file that changes between kills is never mixed`() async throws {
            let seed = Rounds.firstSeed
            var generator = SeededGenerator(seed: seed)
            let size = 4 << 20
            let bench = try DownloadBench(.curl)
            let version = Locked(0)
            bench.server.route("GET", "/file") { request in
                let now = version.withLock { $0 }
                return LoopbackResource(.bytes(TestPattern.bytes(from: now, count: size)), etag: "\"\(now)\"")
                    .answer(to: request)
            }
            let counter = bench.url("counter")
            try Data(count: 8).write(to: counter)
            for _ in 0..<Rounds.count(ci: 6, soak: 60) {
                let child = try start(bench, counter)
                let target = bench.server.counts.sentBytes + Int.random(in: 0...size, using: &generator)
                _ = await bench.server.counts { $0.sentBytes >= target }
                child.kill()
                _ = await child.ended()
                if bench.names("in").contains("file") { break }
                if generator.chance(1, in: 2) { version.withLock { $0 += 1 } }
            }
            if !bench.names("in").contains("file") {
                let child = try start(bench, counter)
                #expect(await child.ended() == "OK \(size)\n", "seed \(seed)")
            }
            let bytes = try #require(bench.bytes("in/file"))
            let last = version.withLock { $0 }
            #expect(bytes.count == size)
            #expect((0...last).contains { TestPattern.matches(bytes, from: $0) }, "seed \(seed)")
        }

        private func isPattern(_ url: URL) throws -> Bool {
            let file = try FileHandle(forReadingFrom: url)
            defer { try? file.close() }
            var offset = 0
            while let data = try file.read(upToCount: 1 << 20), !data.isEmpty {
                guard data.withUnsafeBytes({ TestPattern.matches($0, from: offset) }) else { return false }
                offset += data.count
            }
            return offset == Self.size
        }

        private func start(_ bench: DownloadBench, _ counter: URL) throws -> ProbeProgram {
            try ProbeProgram(
                "DownloadProbe",
                [bench.server.url("/file").absoluteString, bench.url("in/file").path, counter.path])
        }
    }
#endif
