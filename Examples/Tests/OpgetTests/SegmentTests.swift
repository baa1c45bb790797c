// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

@testable import opget

@Suite("Segments and rate limits")
struct SegmentTests {
    @Test func `segments cover the whole file without gaps`() {
        for total in [1, 4_095, 4_096, 1 << 20, (1 << 20) + 1, 5_000_001, 1 << 30] as [Int64] {
            for count in 1...20 {
                let ranges = SegmentPlan.ranges(total: total, count: count, smallest: 4_096)
                #expect(ranges.count <= count)
                #expect(ranges.first?.lowerBound == 0 && ranges.last?.upperBound == total)
                #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound && !$0.isEmpty })
            }
        }
        for total in [0, -1, Int64.min] { #expect(SegmentPlan.ranges(total: total, count: 4).isEmpty) }
    }

    @Test(
        arguments: [.max, .max - 1, .max - 5_000, .max - 4_096, .max / 2 + 1, 1 << 62, 9_000_000_000_000_000] as [Int64]
    )
    func `an extremely large file is divided like any other`(total: Int64) {
        for count in [1, 2, 3, 4, 16, 20, Int.max] {
            for smallest in [1 << 50, .max, 1 << 60, 1 << 55] as [Int64] {
                let ranges = SegmentPlan.ranges(total: total, count: count, smallest: smallest)
                #expect(ranges.count <= count && ranges.first?.lowerBound == 0 && ranges.last?.upperBound == total)
                #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound && !$0.isEmpty })
            }
        }
    }

    private func metadata() throws -> SegmentMetadata {
        let validator = try #require(SegmentValidator(["ETag": "\"one\""]))
        let spans = [SegmentMetadata.Span(start: 0, end: 4_096), SegmentMetadata.Span(start: 4_096, end: 5_000)]
        return SegmentMetadata(source: "s", validator: validator, total: 5_000, spans: spans, boot: "now")
    }

    @Test func `metadata is read as it was written`() throws {
        let metadata = try metadata()
        let marks = [
            SegmentMetadata.Mark(written: 4_096, synchronized: 10), SegmentMetadata.Mark(written: 7, synchronized: 0),
        ]
        let bytes = try #require(metadata.bytes(marks))
        let read = try #require(SegmentMetadata.read(bytes, boot: "now"))
        #expect(read.metadata == metadata && read.marks == marks)
        // After a power failure, only synchronized bytes count.
        #expect(SegmentMetadata.read(bytes, boot: "later")?.marks.map(\.written) == [10, 0])
        #expect(SegmentMetadata.read(bytes, boot: nil)?.marks.map(\.written) == [10, 0])
    }

    @Test func `damaged metadata is rejected`() throws {
        let metadata = try metadata()
        let bytes = try #require(metadata.bytes([SegmentMetadata.Mark(), SegmentMetadata.Mark()]))
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<300 {
            var damaged = bytes
            damaged[Int.random(in: 0..<200, using: &generator)] ^= UInt8.random(in: 1...255, using: &generator)
            let read = SegmentMetadata.read(damaged, boot: "now")
            #expect(read == nil || read?.metadata == metadata)
        }
        #expect(SegmentMetadata.read(Array(bytes.dropLast()), boot: "now") == nil)
        var wild = bytes
        wild.replaceSubrange(
            SegmentMetadata.headSize..<SegmentMetadata.headSize + 8, with: [UInt8](repeating: 0xFF, count: 8))
        #expect(SegmentMetadata.read(wild, boot: "now")?.marks[0].written == 0)
    }

    @Test func `only a strong validator is accepted`() throws {
        #expect(SegmentValidator(["ETag": "W/\"one\""]) == nil)
        #expect(SegmentValidator([:]) == nil)
        let old: HeaderFields = [
            "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:51:37 GMT",
        ]
        #expect(SegmentValidator(old)?.field == "Sun, 06 Nov 1994 08:49:37 GMT")
        let new: HeaderFields = [
            "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:49:47 GMT",
        ]
        #expect(SegmentValidator(new) == nil)
        let one = try #require(SegmentValidator(["ETag": "\"one\""]))
        #expect(one.isProven(by: ["ETag": "\"one\""]) && !one.contradicts(["ETag": "\"one\""]))
        #expect(!one.isProven(by: ["ETag": "\"two\""]) && one.contradicts(["ETag": "\"two\""]))
        // A response without a validator may have any version.
        #expect(!one.isProven(by: [:]) && !one.contradicts([:]))
        #expect(!one.isProven(by: ["ETag": "\"one\"", "etag": "\"one\""]))
    }

    @Test(
        arguments: [
            ("bytes 0-4/5", 0..<5), ("bytes 2-2/10", 2..<3), ("bytes 0-5/5", nil), ("bytes 4-2/9", nil),
            ("bytes */5", nil),
            ("bytes 0-4/*", nil), ("0-4/5", nil), ("bytes -4-5/9", nil), ("", nil),
            ("bytes 0-9223372036854775806/9223372036854775807", 0..<Int64.max),
            ("bytes 0-9223372036854775807/9223372036854775807", nil),
            ("bytes 0-9223372036854775808/9223372036854775809", nil),
        ] as [(String, Range<Int64>?)])
    func `only valid content ranges are parsed`(text: String, range: Range<Int64>?) {
        #expect(SegmentRange(["Content-Range": text])?.bytes == range)
    }

    @Test func `the limit keeps its rate`() {
        var line = RateLine(bytesPerSecond: 1_000_000)
        var now = OperationInstant(offset: .seconds(100))
        let start = now
        var count = 0
        var generator = SeededGenerator(seed: 3)
        while count < 10_000_000 {
            let portion = Int.random(in: 1...100_000, using: &generator)
            count += portion
            if let pause = line.take(portion, at: now) { now = now.advanced(by: pause) }
        }
        let seconds = start.duration(to: now) / .seconds(1)
        #expect((Double(count) / 1e6 - 0.11...Double(count) / 1e6).contains(seconds))
    }

    @Test func `a pause does not allow a burst afterwards`() {
        var line = RateLine(bytesPerSecond: 1_000_000)
        let later = OperationInstant(offset: .seconds(1_000))
        _ = line.take(1_000, at: OperationInstant(offset: .seconds(1)))
        #expect(line.take(100_000, at: later) == nil)
        #expect(line.take(100_000, at: later) == .milliseconds(100))
    }
}
