// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Synchronization
import Testing

@testable import opget

@Suite("The bytes of a segment come to the disk", .timeLimit(.minutes(1)))
struct SegmentWriterTests {
    /// A transfer that can be held, and nothing else.
    private final class Flow: NetworkTask {
        private let gate = Mutex<Gate?>(nil)
        let holds = Mutex(0)

        func resume() {}
        func suspend() {}
        func cancel() {}
        func hold() {
            holds.withLock { $0 += 1 }
            gate.withLock { $0 = Gate() }
        }
        func proceed() {
            let gate = gate.withLock { gate in
                defer { gate = nil }
                return gate
            }
            gate?.open()
        }

        /// Waits as long as it is held.
        func passage() async { await gate.withLock { $0 }?.passage() }
    }

    private func file(_ folder: URL, _ count: Int64) throws -> SegmentedFile {
        let validator = try #require(SegmentValidator(["ETag": "\"one\""]))
        let card = SegmentCard(
            source: "s", validator: validator, total: count, spans: [SegmentCard.Span(start: 0, end: count)])
        return try SegmentedFile(for: folder.appending(path: "file"), card)
    }

    @Test func `a transfer that is held always goes on`() async throws {
        let bench = try OpgetBench()
        let count = 64 << 20
        let file = try file(bench.folder, Int64(count))
        let writer = SegmentWriter(file, 0) {}
        let flow = Flow()
        let portion = TestPattern.bytes(count: TestPattern.period)
        var sent = 0
        var generator = SeededGenerator(seed: 11)
        while sent < count {
            let size = min(Int.random(in: 1...30_000, using: &generator), count - sent)
            let start = sent % TestPattern.period
            let piece = Array(portion[start..<min(start + size, TestPattern.period)])
            try piece.withUnsafeBytes { bytes in try writer.take(bytes, flow) }
            sent += piece.count
            await flow.passage()
        }
        await writer.settled()
        #expect(file.writtenBytes == Int64(count))
        #expect(flow.holds.withLock { $0 } > 10)
        try await file.publish(at: bench.folder.appending(path: "file"), replacing: false, isDurable: false)
        #expect(bench.holds("file", count: count))
    }

    @Test func `a part is one program's at a time`() throws {
        let bench = try OpgetBench()
        let first = try file(bench.folder, 8_192)
        let failure = #expect(throws: FileFailure.self) { try file(bench.folder, 8_192) }
        #expect(failure?.code == "destinationBusy")
        withExtendedLifetime(first) {}
    }

    @Test func `whoever brings bytes learns that they cannot be written, and the end that some miss`() async throws {
        let bench = try OpgetBench()
        let file = try file(bench.folder, 8_192)
        let (writer, flow) = (SegmentWriter(file, 0) {}, Flow())
        try [UInt8](repeating: 1, count: 100).withUnsafeBytes { try writer.take($0, flow) }
        let missing = #expect(throws: NetworkError.self) { try writer.finish() }
        #expect(missing?.code == .truncatedBody)
        try [UInt8](repeating: 1, count: 300_000).withUnsafeBytes { try writer.take($0, flow) }
        // It was held, and is let go on all the same.
        await flow.passage()
        await writer.settled()
        let failure = #expect(throws: FileFailure.self) {
            try [1 as UInt8].withUnsafeBytes { try writer.take($0, flow) }
        }
        #expect(failure?.code == "bodyTooLarge")
        #expect(throws: FileFailure.self) { try writer.finish() }
        #expect(file.written(0) == 100)
    }
}
