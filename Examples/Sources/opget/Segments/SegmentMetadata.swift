// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The metadata of a file that is downloaded in segments, stored next to its bytes, so that a later run can resume.
///
/// The metadata file begins with a header of a fixed size, whose first part is a checksum. Two numbers follow for each
/// segment: the number of written bytes, and the number of bytes that were synchronized to the disk. opget overwrites
/// these numbers in place, but never overwrites the header.
struct SegmentMetadata: Codable, Sendable, Equatable {
    struct Span: Codable, Sendable, Equatable {
        let start: Int64
        let end: Int64

        var count: Int64 { end - start }
    }

    /// The progress of a segment.
    struct Mark: Sendable, Equatable {
        var written: Int64 = 0
        var synchronized: Int64 = 0
    }

    /// A hash of the URL, because URLs can contain secrets.
    var source: String
    var validator: SegmentValidator
    var total: Int64
    var spans: [Span]
    /// The identity of the system start, because bytes that were written since then exist even if they are not
    /// synchronized.
    var boot: String?

    static let headSize = 16_384
    static let markSize = 16

    /// Returns whether the metadata describes the same file, regardless of the segments.
    func isOfSameFile(as other: SegmentMetadata) -> Bool {
        source == other.source && validator == other.validator && total == other.total
    }

    /// Returns the initial content of the metadata file.
    func bytes(_ marks: [Mark]) -> [UInt8]? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        guard let json = try? encoder.encode(self) else { return nil }
        var bytes = Array((Self.title + Self.hash(json) + "\n").utf8) + json + [10]
        guard bytes.count <= Self.headSize else { return nil }
        bytes += [UInt8](repeating: 32, count: Self.headSize - bytes.count)
        for mark in marks { bytes += Self.bytes(mark) }
        return bytes
    }

    static func bytes(_ mark: Mark) -> [UInt8] {
        [mark.written, mark.synchronized].flatMap { number in
            withUnsafeBytes(of: number.littleEndian) { Array($0) }
        }
    }

    /// Reads the metadata and progress from a file, or returns nil if the content is damaged or invalid.
    static func read(_ bytes: [UInt8], boot: String?) -> (metadata: SegmentMetadata, marks: [Mark])? {
        guard bytes.count >= headSize else { return nil }
        let lines = bytes[..<headSize].split(separator: 10, maxSplits: 2, omittingEmptySubsequences: false)
        guard lines.count == 3, let metadata = try? JSONDecoder().decode(SegmentMetadata.self, from: Data(lines[1])),
            lines[0].elementsEqual((title + hash(lines[1])).utf8), metadata.isSound,
            bytes.count >= headSize + metadata.spans.count * markSize
        else { return nil }
        let isSameBoot = boot != nil && boot == metadata.boot
        let marks = metadata.spans.indices.map { index -> Mark in
            let numbers = (0..<2).map { half in
                (0..<8).reduce(UInt64(0)) { number, byte in
                    number | UInt64(bytes[headSize + index * markSize + half * 8 + byte]) << (8 * UInt64(byte))
                }
            }
            let span = metadata.spans[index]
            func sound(_ number: UInt64) -> Int64 { number <= UInt64(span.count) ? Int64(number) : 0 }
            let synchronized = sound(numbers[1])
            return Mark(written: isSameBoot ? sound(numbers[0]) : synchronized, synchronized: synchronized)
        }
        return (metadata, marks)
    }

    private var isSound: Bool {
        var end: Int64 = 0
        for span in spans {
            guard span.start == end, span.end > span.start else { return false }
            end = span.end
        }
        return end == total && total > 0
    }

    private static let title = "opget segments 1 "

    /// Returns the FNV-1a hash, which detects only accidental changes.
    ///
    /// A user who can write to the metadata file can also write to the downloaded file.
    static func hash(_ bytes: some Sequence<UInt8>) -> String {
        let hash = bytes.reduce(UInt64(0xCBF2_9CE4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

/// A namespace for the identity of the current system start.
enum SystemStart {
    static let identity: String? = {
        #if canImport(Darwin)
            var bytes = [CChar](repeating: 0, count: 128)
            var count = bytes.count
            guard sysctlbyname("kern.bootsessionuuid", &bytes, &count, nil, 0) == 0 else { return nil }
            return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        #else
            let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
            return text?.trimmingCharacters(in: .whitespacesAndNewlines)
        #endif
    }()
}
