// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CacheTrimTests {
    private let now = CacheSamples.now

    private func file(_ name: String, _ size: Int64, age: Double = 0) -> CacheFile {
        CacheFile(name: name, size: size, used: now - age)
    }

    private func removed(_ files: [CacheFile], limit: Int64, recency: [String: UInt64] = [:]) -> [String] {
        DiskCache.filesToRemove(files, limit: limit, recency: recency, now: now).map(\.name).sorted()
    }

    @Test func `the least recently used entries are removed first, each with its bodies`() {
        let files = [
            file("a.metadata", 10, age: 30), file("a-1.body", 100), file("b.metadata", 10, age: 20),
            file("b-1.body", 100),
            file("c.metadata", 10, age: 10),
        ]
        #expect(removed(files, limit: 230).isEmpty)
        #expect(removed(files, limit: 229) == ["a-1.body", "a.metadata"])
        #expect(removed(files, limit: 100) == ["a-1.body", "a.metadata", "b-1.body", "b.metadata"])
        #expect(removed(files, limit: 229, recency: ["a": 5, "b": 3]) == ["c.metadata"].sorted())
        #expect(removed(files, limit: 219, recency: ["a": 5, "b": 3]) == ["b-1.body", "b.metadata", "c.metadata"])
        #expect(removed(files, limit: 0).count == 5)
    }

    @Test func `old orphaned files are removed, and recent ones stay while space permits`() {
        let files = [
            file("-1.part", 10, age: 4000), file("-2.part", 10, age: 10), file("a-1.body", 10, age: 4000),
            file("b-1.body", 10, age: 10),
        ]
        #expect(removed(files, limit: 1000) == ["-1.part", "a-1.body"])
        #expect(removed(files, limit: 15) == ["-1.part", "a-1.body", "b-1.body"])
    }

    @Test func `in random folders, the remaining files fit and only the oldest entries are removed`() {
        for seed in UInt64(0)..<500 {
            var generator = SeededGenerator(seed: seed)
            let files = (0..<20).flatMap { key in
                [
                    file(
                        "\(key).metadata", Int64.random(in: 1...50, using: &generator),
                        age: Double.random(in: 0...99, using: &generator))
                ]
                    + (0..<Int.random(in: 0...2, using: &generator)).map {
                        file("\(key)-\($0).body", Int64.random(in: 0...500, using: &generator))
                    }
            }
            let limit = Int64.random(in: 0...5000, using: &generator)
            let gone = Set(removed(files, limit: limit))
            let rest = files.filter { !gone.contains($0.name) }
            #expect(rest.reduce(0) { $0 + $1.size } <= limit, "seed \(seed)")
            let oldest = rest.filter(\.isMetadata).map(\.used).min() ?? .distantFuture
            let newest = files.filter { $0.isMetadata && gone.contains($0.name) }.map(\.used).max() ?? .distantPast
            #expect(newest <= oldest, "seed \(seed)")
            #expect(
                Set(rest.map(\.key)).isDisjoint(with: gone.map { String($0.prefix { $0 != "." && $0 != "-" }) }),
                "seed \(seed)")
        }
    }
}
