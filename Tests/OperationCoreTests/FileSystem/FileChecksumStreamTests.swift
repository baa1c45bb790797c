// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileChecksumStreamTests {
    static let all: [ChecksumAlgorithm] = [.sha256, .sha1, .md5, .crc32]

    static func pattern(_ count: Int) -> [UInt8] { (0..<count).map { UInt8($0 % 251) } }

    /// Returns the checksum of the parts, in their order.
    static func sum(_ algorithm: ChecksumAlgorithm, _ parts: [some Collection<UInt8>]) -> String {
        var stream = algorithm.makeStream()
        for part in parts { Array(part).withUnsafeBytes { stream.update($0) } }
        return FileChecksum(algorithm: algorithm, bytes: stream.finish()).hexadecimal
    }

    @Test(arguments: ChecksumVectors.known + ChecksumVectors.boundaries)
    func `the checksums of known messages are correct, also at the boundaries of blocks`(known: ChecksumVectors.Known) {
        for (algorithm, sum) in known.sums {
            #expect(Self.sum(algorithm, [known.message]) == sum, "\(algorithm)")
        }
        #expect(Set(known.sums.keys) == Set(Self.all))
    }

    @Test(arguments: all) func `a checksum does not depend on how the bytes are split`(algorithm: ChecksumAlgorithm) {
        let message = Self.pattern(200)
        let whole = Self.sum(algorithm, [message])
        for split in 0...200 {
            #expect(Self.sum(algorithm, [message[..<split], message[split...]]) == whole)
        }
        #expect(Self.sum(algorithm, message.map { [$0] }) == whole)
        var generator = SeededGenerator(seed: 14)
        for _ in 0..<200 {
            var parts: [ArraySlice<UInt8>] = [], rest = message[...]
            while !rest.isEmpty {
                let part = rest.prefix(Int.random(in: 0...150, using: &generator))
                parts.append(part)
                rest = rest.dropFirst(part.count)
            }
            #expect(Self.sum(algorithm, parts) == whole)
        }
    }

    @Test(arguments: all) func `a checksum does not depend on the alignment of the bytes`(
        algorithm: ChecksumAlgorithm
    ) {
        let message = Self.pattern(300)
        let whole = Self.sum(algorithm, [message])
        for offset in 0..<16 {
            let moved = Array(repeating: UInt8(0xEE), count: offset) + message
            var stream = algorithm.makeStream()
            moved.withUnsafeBytes { stream.update(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
            #expect(FileChecksum(algorithm: algorithm, bytes: stream.finish()).hexadecimal == whole)
        }
    }

    @Test func `a copied checksum stream continues independently`() {
        var one = ChecksumAlgorithm.sha256.makeStream()
        Array("ab".utf8).withUnsafeBytes { one.update($0) }
        var two = one
        Array("c".utf8).withUnsafeBytes { one.update($0) }
        Array("c".utf8).withUnsafeBytes { two.update($0) }
        #expect(one.finish() == two.finish())
    }
}
