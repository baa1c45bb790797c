// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A resource, such as a file, for which a ``LoopbackServer`` supports range requests and conditional requests.
///
/// ```swift
/// import OperationTestKit
///
/// let server = try LoopbackServer()
/// let resource = LoopbackResource(.pattern(count: 1 << 20), etag: "\"one\"")
/// server.route("GET", "/file") { resource.answer(to: $0) }
/// ```
public struct LoopbackResource: Sendable {
    /// A source for the bytes of a resource.
    public struct Content: Sendable {
        let count: Int
        /// A closure that creates a step, which sends a range of the bytes.
        let step: @Sendable (Range<Int>) -> LoopbackStep

        /// Returns a source that provides the given bytes.
        public static func bytes(_ bytes: [UInt8]) -> Self {
            Self(count: bytes.count) { LoopbackStep(kind: .content(Array(bytes[$0]))) }
        }

        /// Returns a source that provides the first `count` bytes of ``TestPattern``.
        ///
        /// The source does not keep these bytes in memory.
        public static func pattern(count: Int) -> Self {
            Self(count: max(count, 0)) { range in
                let start = range.lowerBound % TestPattern.period
                return LoopbackStep(kind: .repeating(TestPattern.block, start: start, count: range.count))
            }
        }

        /// Returns a source that provides the first `count` bytes of a file.
        ///
        /// - Parameters:
        ///   - path: The path of the file.
        ///   - count: The number of bytes. If the file contains fewer bytes, the server resets the connection.
        public static func file(_ path: String, count: Int) -> Self {
            Self(count: max(count, 0)) { .sendFile(path, offset: $0.lowerBound, count: $0.count) }
        }
    }

    /// The source of the resource's bytes.
    public var content: Content
    /// The value of the `ETag` header, including its quotation marks, or `nil` to omit the header.
    public var etag: String?
    /// The value of the `Last-Modified` header, or `nil` to omit the header.
    public var lastModified: String?
    /// A Boolean value that indicates whether clients can request parts of the resource.
    ///
    /// If the value is `false`, the server ignores the `Range` header.
    public var acceptsRanges: Bool
    /// Additional headers that each response contains.
    ///
    /// The default is an empty array.
    public var fields: [LoopbackField] = []

    /// Creates a resource from a source of bytes.
    ///
    /// - Parameters:
    ///   - content: The source of the resource's bytes.
    ///   - etag: The value of the `ETag` header, including its quotation marks. The default is `nil`, which omits the
    ///     header.
    ///   - lastModified: The value of the `Last-Modified` header. The default is `nil`, which omits the header.
    ///   - acceptsRanges: A Boolean value that indicates whether clients can request parts of the resource. The default
    ///     is `true`.
    public init(_ content: Content, etag: String? = nil, lastModified: String? = nil, acceptsRanges: Bool = true) {
        self.content = content
        self.etag = etag
        self.lastModified = lastModified
        self.acceptsRanges = acceptsRanges
    }

    /// Returns the response to a request, with the status code 200, 206, 304 or 416.
    ///
    /// The method evaluates the `Range`, `If-Range` and `If-None-Match` headers of the request.
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

    /// Returns the requested part, nil if the header is not valid or not supported, or an inner nil if the part does not
    /// exist.
    private func parts(_ field: String) -> Range<Int>?? {
        let ends = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard field.hasPrefix("bytes="), ends.count == 2, !field.contains(",") else { return nil }
        if ends[0].isEmpty {
            guard let suffix = Int(ends[1]) else { return nil }
            return .some(suffix > 0 && content.count > 0 ? max(content.count - suffix, 0)..<content.count : nil)
        }
        // A range whose end precedes its start is not valid (RFC 9110, section 14.1.1).
        guard let first = Int(ends[0]), let last = ends[1].isEmpty ? Int.max : Int(ends[1]), first <= last else {
            return nil
        }
        return .some(first < content.count ? first..<min(last, content.count - 1) + 1 : nil)
    }
}

/// A pseudorandom sequence of bytes that a test can use to check transferred data.
///
/// If a transfer loses, repeats or reorders bytes, the received data does not match the pattern.
public enum TestPattern {
    /// The number of bytes after which the pattern repeats.
    ///
    /// The number is prime. Therefore, the pattern does not repeat at the boundaries of buffers.
    public static let period = 65_521

    /// The bytes of one period of the pattern.
    package static let block: [UInt8] = {
        var generator = SeededGenerator(seed: 1)
        return (0..<period).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }()

    /// Returns `count` bytes of the pattern, beginning at an offset.
    ///
    /// - Parameters:
    ///   - offset: The offset of the first byte. The default is 0.
    ///   - count: The number of bytes, which must not be negative.
    public static func bytes(from offset: Int = 0, count: Int) -> [UInt8] {
        let first = indexInBlock(offset)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count {
            let start = (first + bytes.count) % period
            bytes += block[start..<min(period, start + count - bytes.count)]
        }
        return bytes
    }

    /// Returns a Boolean value that indicates whether the bytes in a buffer match the pattern, beginning at an offset.
    ///
    /// - Parameters:
    ///   - bytes: The bytes to compare with the pattern.
    ///   - offset: The offset of the first byte in the pattern. The default is 0.
    public static func matches(_ bytes: UnsafeRawBufferPointer, from offset: Int = 0) -> Bool {
        let first = indexInBlock(offset)
        return block.withUnsafeBytes { block in
            var done = 0
            while done < bytes.count, let left = bytes.baseAddress, let right = block.baseAddress {
                let start = (first + done) % period
                let size = min(period - start, bytes.count - done)
                if memcmp(left + done, right + start, size) != 0 { return false }
                done += size
            }
            return true
        }
    }

    /// Returns the index of a byte in ``block``, because the pattern also repeats before the offset 0.
    private static func indexInBlock(_ offset: Int) -> Int {
        let rest = offset % period
        return rest < 0 ? rest + period : rest
    }

    /// Returns a Boolean value that indicates whether the bytes in an array match the pattern, beginning at an offset.
    ///
    /// - Parameters:
    ///   - bytes: The bytes to compare with the pattern.
    ///   - offset: The offset of the first byte in the pattern. The default is 0.
    package static func matches(_ bytes: [UInt8], from offset: Int = 0) -> Bool {
        bytes.withUnsafeBytes { matches($0, from: offset) }
    }
}
