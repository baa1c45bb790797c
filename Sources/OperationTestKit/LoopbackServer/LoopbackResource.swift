// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A resource that can be asked for in parts: what a server of files does, right or wrong.
///
/// ```swift
/// import OperationTestKit
///
/// let server = try LoopbackServer()
/// let resource = LoopbackResource(.pattern(count: 1 << 20), etag: "\"one\"")
/// server.route("GET", "/file") { resource.answer(to: $0) }
/// ```
public struct LoopbackResource: Sendable {
    /// Where the bytes come from.
    public struct Content: Sendable {
        enum Kind: Sendable {
            case bytes([UInt8])
            case pattern
            case file(String)
        }

        let kind: Kind
        let count: Int

        /// These bytes.
        public static func bytes(_ bytes: [UInt8]) -> Self { Self(kind: .bytes(bytes), count: bytes.count) }

        /// So many bytes of ``TestPattern``, without memory for them.
        public static func pattern(count: Int) -> Self { Self(kind: .pattern, count: max(count, 0)) }

        /// So many bytes of the file at a path.
        public static func file(_ path: String, count: Int) -> Self { Self(kind: .file(path), count: max(count, 0)) }

        func step(_ range: Range<Int>) -> LoopbackStep {
            switch kind {
            case .bytes(let bytes): LoopbackStep(kind: .content(Array(bytes[range])))
            case .pattern:
                LoopbackStep(
                    kind: .repeating(
                        TestPattern.block, start: range.lowerBound % TestPattern.period, count: range.count))
            case .file(let path): .sendFile(path, offset: range.lowerBound, count: range.count)
            }
        }
    }

    /// The bytes.
    public var content: Content
    /// The entity tag, quotes included; none is sent if nil.
    public var etag: String?
    /// The date of the last change as it stands in the field; none is sent if nil.
    public var lastModified: String?
    /// Whether parts can be had; if not, the whole is sent whatever is asked for.
    public var acceptsRanges: Bool
    /// Fields that are sent with every answer.
    public var fields: [LoopbackField] = []

    /// Makes a resource.
    public init(_ content: Content, etag: String? = nil, lastModified: String? = nil, acceptsRanges: Bool = true) {
        self.content = content
        self.etag = etag
        self.lastModified = lastModified
        self.acceptsRanges = acceptsRanges
    }

    /// The answer to a request: 200, 206, 304 or 416, as `Range`, `If-Range` and `If-None-Match` ask for.
    public func answer(to request: LoopbackRequest) -> LoopbackAnswer {
        if let wanted = request["If-None-Match"], let etag, wanted == "*" || wanted.contains(etag) {
            return answer(304)
        }
        let condition = request["If-Range"]
        let isUnchanged = condition == nil || condition == lastModified || (condition == etag && isStrong)
        guard acceptsRanges, isUnchanged, let range = request["Range"].flatMap(parts) else {
            return answer(200, 0..<content.count)
        }
        guard let range else {
            return .bytes([], status: 416, fields: heads + [LoopbackField("Content-Range", "bytes */\(content.count)")])
        }
        return answer(206, range)
    }

    private var isStrong: Bool { etag?.hasPrefix("W/") == false }

    private var heads: [LoopbackField] {
        var heads = fields
        if acceptsRanges { heads.append(LoopbackField("Accept-Ranges", "bytes")) }
        if let etag { heads.append(LoopbackField("ETag", etag)) }
        if let lastModified { heads.append(LoopbackField("Last-Modified", lastModified)) }
        return heads
    }

    private func answer(_ status: Int) -> LoopbackAnswer { .bytes([], status: status, fields: heads) }

    private func answer(_ status: Int, _ range: Range<Int>) -> LoopbackAnswer {
        var heads = heads
        if status == 206 {
            let place = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(content.count)"
            heads.append(LoopbackField("Content-Range", place))
        }
        heads.append(LoopbackField("Content-Length", "\(range.count)"))
        return LoopbackAnswer(.head(LoopbackHead(status, heads)), content.step(range))
    }

    /// The part that is asked for: nil if the field is not understood, and none within if it cannot be had.
    private func parts(_ field: String) -> Range<Int>?? {
        let ends = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard field.hasPrefix("bytes="), ends.count == 2, !field.contains(",") else { return nil }
        if ends[0].isEmpty {
            guard let suffix = Int(ends[1]) else { return nil }
            return .some(suffix > 0 && content.count > 0 ? max(content.count - suffix, 0)..<content.count : nil)
        }
        guard let first = Int(ends[0]) else { return nil }
        let last = Int(ends[1]) ?? content.count - 1
        guard first < content.count, first <= last else { return .some(nil) }
        return first..<min(last, content.count - 1) + 1
    }
}

/// Bytes of any number that look random, and of which each can be told by its place: to see that a transfer neither
/// loses, doubles nor swaps any.
public enum TestPattern {
    /// After so many bytes the pattern begins anew; a prime, so that no block size of anybody hides an error.
    public static let period = 65_521

    /// The bytes of one period.
    public static let block: [UInt8] = {
        var generator = SeededGenerator(seed: 1)
        return (0..<period).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }()

    /// The bytes from a place on.
    public static func bytes(from offset: Int = 0, count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count {
            let start = (offset + bytes.count) % period
            bytes += block[start..<min(period, start + count - bytes.count)]
        }
        return bytes
    }

    /// Whether these are the bytes of the pattern from a place on.
    public static func matches(_ bytes: UnsafeRawBufferPointer, from offset: Int = 0) -> Bool {
        block.withUnsafeBytes { block in
            var done = 0
            while done < bytes.count, let left = bytes.baseAddress, let right = block.baseAddress {
                let start = (offset + done) % period
                let size = min(period - start, bytes.count - done)
                if memcmp(left + done, right + start, size) != 0 { return false }
                done += size
            }
            return true
        }
    }

    /// Whether these are the bytes of the pattern from a place on.
    public static func matches(_ bytes: [UInt8], from offset: Int = 0) -> Bool {
        bytes.withUnsafeBytes { matches($0, from: offset) }
    }
}
