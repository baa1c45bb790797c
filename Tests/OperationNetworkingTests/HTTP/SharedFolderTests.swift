// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if os(Linux) || os(macOS)
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Tests several processes that share the folder of a cache or a cookie file.
    @Suite(.timeLimit(.minutes(Rounds.minutes)), .serialized)
    struct SharedFolderTests {
        private static let limit: Int64 = 1 << 20
        private static let programs = 4

        private func start(_ folder: URL, as kind: String = "cache", seed: UInt64, rounds: Int) throws -> ProbeProgram {
            try ProbeProgram("SharingProbe", [kind, folder.path, "\(seed)", "\(rounds)", "\(Self.limit)"])
        }

        /// The bodies in the folder, and the bodies that metadata files refer to.
        private func bodies(in fixture: CacheFolderFixture) -> (there: Set<String>, onMetadata: Set<String>) {
            let disk = fixture.disk(CacheLimits(totalBytes: Self.limit))
            let metadata = (0..<12).compactMap { disk.metadata("https://h.com/\($0)", now: Date()) }
            let names = metadata.flatMap(\.variants).map(\.body.name)
            return (Set(fixture.files(".body").map(\.lastPathComponent)), Set(names))
        }

        @Test
        func `processes that share a cache read only complete responses and leave no temporary files`() async throws {
            let fixture = CacheFolderFixture()
            let rounds = Rounds.count(ci: 250, soak: 20_000)
            let programs = try (0..<Self.programs).map {
                try start(fixture.url, seed: Rounds.firstSeed + UInt64($0), rounds: rounds)
            }
            for program in programs {
                let output = await program.ended()
                #expect(output.hasPrefix("OK "), "\(output)")
                print("soak: a program that shares a cache: \(output)", terminator: "")
            }
            #expect(fixture.files(".part").isEmpty)
            let (there, onMetadata) = bodies(in: fixture)
            // A process that frees space may remove a body for which another process is about to write the metadata.
            #expect(
                there.subtracting(onMetadata).count <= 2, "\(there.subtracting(onMetadata).count) of \(there.count)")
            // Each process counts the files of the others only after it added an eighth of the limit.
            let size = fixture.disk().size()
            #expect(size <= Self.limit + Int64(Self.programs) * Self.limit / 8, "\(size)")
        }

        @Test func `processes that are killed while they share a cache do not affect the others`() async throws {
            let fixture = CacheFolderFixture()
            var generator = SeededGenerator(seed: Rounds.firstSeed)
            let survivor = try start(
                fixture.url, seed: 1_000, rounds: Rounds.count(ci: 500, soak: 40_000))
            for seed in 0..<UInt64(Rounds.count(ci: 6, soak: 300)) {
                // The process prints a character after each round.
                let victim = try start(fixture.url, as: "cache-by-rounds", seed: seed, rounds: 1_000_000)
                await victim.printed(Int.random(in: 0..<40, using: &generator))
                victim.kill()
                let output = await victim.ended()
                #expect(!output.contains { $0 != "." }, "\(output)")
            }
            let output = await survivor.ended()
            #expect(output.hasPrefix("OK "), "\(output)")
            // A process that starts afterward works normally.
            let last = await (try start(fixture.url, seed: 7, rounds: 50)).ended()
            #expect(last.hasPrefix("OK "), "\(last)")
        }

        @Test func `caches of one process that share a folder lose no stored response`() async throws {
            let fixture = CacheFolderFixture()
            let home = "https://h.com/a"
            let kept = Locked(0)
            let count = 8
            let bodies = (0..<count).map { number -> @Sendable () -> Void in
                {
                    let disk = fixture.disk()
                    let headers = ["Cache-Control": "max-age=60", "Vary": "X-A"] as HeaderFields
                    let isKept = try? disk.keep(
                        Data("\(number)".utf8), at: home, to: ["X-A": "\(number)"], headers: headers)
                    kept.withLock { $0 += isKept == true ? 1 : 0 }
                }
            }
            try await TestThread.run { ThreadTeam(count: count).run(bodies) }
            #expect(kept.withLock { $0 } == count)
            for number in 0..<count {
                #expect(fixture.disk().body(home, for: ["X-A": "\(number)"]) == Data("\(number)".utf8), "\(number)")
            }
        }

        @Test func `processes that save to one cookie file leave a complete set of cookies`() async throws {
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("operationkit-jar-\(UUID())")
            defer { try? FileManager.default.removeItem(at: folder) }
            let file = folder.appendingPathComponent("cookies.json")
            let rounds = Rounds.count(ci: 60, soak: 5_000)
            let programs = try (0..<Self.programs).map {
                try ProbeProgram("SharingProbe", ["cookies", file.path, "\($0)", "\(rounds)", "0"])
            }
            for program in programs { #expect(await program.ended() == "OK \(rounds) rounds\n") }
            let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(left == ["cookies.json"])
            let values = Set(try FileCookieStorage(url: file).load().map(\.value))
            #expect(values.count == 1)
        }
    }
#endif
