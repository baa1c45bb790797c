// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(Rounds.minutes)), .serialized)
    struct DownloadCrashTests {
        private static let size = Rounds.count(ci: 48 << 20, soak: 1 << 30)
        private static let kills = Rounds.count(ci: 12, soak: 200)

        @Test func `after repeated kills, a download resumes from its bytes and is correct at the end`() async throws {
            let seed = Rounds.firstSeed
            var generator = SeededGenerator(seed: seed)
            // The system's buffers are small, because a killed program has not received their content.
            let serverOptions = with(LoopbackServer.Options()) { $0.sendBufferSize = 64 << 10 }
            let bench = try DownloadBench(.curl, serverOptions)
            bench.serve(LoopbackResource(.pattern(count: Self.size), etag: "\"one\""))
            let counter = bench.url("counter")
            try Data(count: 8).write(to: counter)
            var killed = 0
            for _ in 0..<Self.kills {
                let child = try startProbe(bench, counter)
                let target =
                    bench.server.counts.sentBytes
                    + Int.random(in: 0...(2 * Self.size / (Self.kills + 2)), using: &generator)
                // The program is also killed immediately, before its request or during its preparation.
                _ = await bench.server.counts { $0.sentBytes >= target || $0.openConnections == 0 && $0.answers > 0 }
                child.kill()
                killed += await child.ended() == "" ? 1 : 0
                if bench.names("in").contains("file") { break }
            }
            var rounds = 0
            while !bench.names("in").contains("file"), rounds < 3 {
                rounds += 1
                let child = try startProbe(bench, counter)
                #expect(await child.ended() == "OK \(Self.size)\n", "seed \(seed)")
            }
            #expect(bench.names("in") == ["file"], "seed \(seed)")
            #expect(try isPattern(bench.url("in/file")), "seed \(seed)")
            #expect(bench.server.requests.allSatisfy { $0["Range"] == nil || $0["If-Range"] == "\"one\"" })
            let received = try Data(contentsOf: counter).withUnsafeBytes { Int($0.loadUnaligned(as: UInt64.self)) }
            let twice = received - Self.size
            print(
                "soak: \(killed) kills of a download of \(Self.size >> 20) MiB, "
                    + "\((twice / max(killed, 1)) >> 10) KiB received twice for each")
            // A kill loses a full inbox (256 KiB), the bytes of the batch that is being written (as many), and at most
            // one portion of libcurl.
            #expect(twice <= killed * (768 << 10), "seed \(seed)")
            #expect(bench.server.requests.contains { $0["Range"] != nil })
        }

        @Test func `a file that changes between kills is never mixed from several versions`() async throws {
            let seed = Rounds.firstSeed
            var generator = SeededGenerator(seed: seed)
            let size = 4 << 20
            let bench = try DownloadBench(.curl)
            let counter = bench.url("counter")
            try Data(count: 8).write(to: counter)
            var (version, present) = (0, 0)
            var (continuations, restarts) = (0, 0)
            for round in 0..<max(Rounds.count(ci: 6, soak: 60), 3) {
                // The first rounds include a resumed and a restarted download. The others are random.
                let changes = round == 2 || round > 2 && (generator.chance(1, in: 2) || present > size * 3 / 4)
                if changes { version += 1 }
                // The server stops within the missing bytes, so that no download ends before it is killed.
                let start = changes ? 0 : present
                let target = Int.random(in: start + 1...start + (size - start) / 2, using: &generator)
                serve(version, size, upTo: target, bench)
                let asked = bench.server.requests.count
                let child = try startProbe(bench, counter)
                await written(target, of: "\"\(version)\"", bench)
                child.kill()
                #expect(await child.ended() == "", "seed \(seed), round \(round)")
                let requests = bench.server.requests[asked...]
                #expect(requests.count == 1, "seed \(seed), round \(round)")
                if present > 0, requests.first?["Range"] == "bytes=\(present)-" {
                    if changes { restarts += 1 } else { continuations += 1 }
                }
                present = target
            }
            serve(version, size, upTo: size, bench)
            let child = try startProbe(bench, counter)
            #expect(await child.ended() == "OK \(size)\n", "seed \(seed)")
            #expect(bench.names("in") == ["file"], "seed \(seed)")
            #expect(bench.holds("in/file", size: size, from: version), "seed \(seed)")
            #expect(continuations > 0, "No download resumed, seed \(seed)")
            #expect(restarts > 0, "No file changed after it was partially downloaded, seed \(seed)")
        }

        /// Makes the server send a version of the file up to an offset, where the server stops and waits.
        private func serve(_ version: Int, _ size: Int, upTo end: Int, _ bench: DownloadBench) {
            let bytes = TestPattern.bytes(from: version, count: size)
            let tag = "\"\(version)\""
            bench.server.route("GET", "/file") { request in
                let isSame = request["If-Range"] == tag
                let start = isSame ? Int(request["Range"]?.dropFirst(6).dropLast() ?? "") ?? 0 : 0
                let place = "bytes \(start)-\(size - 1)/\(size)"
                var head = LoopbackHead(start > 0 ? 206 : 200, [LoopbackField("ETag", tag)])
                head.fields.append(LoopbackField("Content-Length", "\(size - start)"))
                if start > 0 { head.fields.append(LoopbackField("Content-Range", place)) }
                let answer = LoopbackAnswer(.head(head), .send(Array(bytes[start..<max(start, end)])))
                return end < size ? answer.followed(by: .stallForever) : answer
            }
        }

        /// Waits until the partial file has this many bytes, and until its metadata exists.
        ///
        /// A small file has no metadata.
        private func written(_ count: Int, of tag: String, _ bench: DownloadBench) async {
            let isWritten = try? await TestThread.run {
                for _ in 0..<30_000 {
                    let names = bench.names("in")
                    let metadata = names.first { $0.hasSuffix(".metadata") }.flatMap { bench.bytes("in/\($0)") }
                    let part = names.first { $0.hasSuffix(".part") }.map { bench.url("in/\($0)").path }
                    let status = part.flatMap { try? FileManager.default.attributesOfItem(atPath: $0) }
                    let isMetadataRight = metadata.flatMap { DownloadMetadata(text: $0) }?.validator == .entityTag(tag)
                    let isEnough = isMetadataRight || metadata == nil && count < 64 << 10
                    if (status?[.size] as? NSNumber)?.intValue == count, isEnough { return true }
                    usleep(1000)
                }
                return false
            }
            #expect(isWritten == true, "\(count) bytes of \(tag) were not written to the disk.")
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

        private func startProbe(_ bench: DownloadBench, _ counter: URL) throws -> ProbeProgram {
            try ProbeProgram(
                "DownloadProbe",
                [bench.server.url("/file").absoluteString, bench.url("in/file").path, counter.path])
        }
    }
#endif
