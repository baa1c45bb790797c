// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Synchronization
import Testing

@testable import opget

@Suite("Writing segments to disk", .timeLimit(.minutes(1)))
struct SegmentWriterTests {
    /// A transfer that can only be held.
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

        /// Waits while the transfer is held.
        func passage() async { await gate.withLock { $0 }?.passage() }
    }

    private func file(
        _ folder: URL, _ count: Int64,
        synchronize: @escaping @Sendable (OpenDescriptor) -> Bool = { $0.synchronize() },
        setMode: @escaping @Sendable (Int32, mode_t) -> Int32 = { fchmod($0, $1) }
    ) throws -> SegmentedFile {
        let validator = try #require(SegmentValidator(["ETag": "\"one\""]))
        let metadata = SegmentMetadata(
            source: "s", validator: validator, total: count, spans: [SegmentMetadata.Span(start: 0, end: count)])
        return try SegmentedFile(
            for: folder.appending(path: "file"), metadata, synchronize: synchronize, setMode: setMode)
    }

    @Test func `a held transfer always resumes`() async throws {
        let bench = try OpgetBench()
        let count = 64 << 20
        let file = try file(bench.folder, Int64(count))
        let writer = SegmentWriter(file, 0) {}
        let turn = writer.begin()
        let flow = Flow()
        let portion = TestPattern.bytes(count: TestPattern.period)
        var sent = 0
        var generator = SeededGenerator(seed: 11)
        while sent < count {
            let size = min(Int.random(in: 1...30_000, using: &generator), count - sent)
            let start = sent % TestPattern.period
            let piece = Array(portion[start..<min(start + size, TestPattern.period)])
            try piece.withUnsafeBytes { bytes in try writer.take(bytes, flow, of: turn) }
            sent += piece.count
            await flow.passage()
        }
        await writer.settled()
        #expect(file.writtenBytes == Int64(count))
        // The number of holds depends on the speed of the disk.
        #expect(flow.holds.withLock { $0 } > 0)
        try await file.publish(at: bench.folder.appending(path: "file"), replacing: false, isDurable: false)
        #expect(bench.holds("file", count: count))
    }

    @Test func `late bytes of an abandoned attempt are ignored`() async throws {
        let bench = try OpgetBench()
        let file = try file(bench.folder, 1 << 20)
        let (writer, flow) = (SegmentWriter(file, 0) {}, Flow())
        func send(_ count: Int, of turn: Int) throws {
            try [UInt8](repeating: 1, count: count).withUnsafeBytes { try writer.take($0, flow, of: turn) }
        }
        let first = writer.begin()
        try send(100, of: first)
        await writer.settled()
        // These bytes arrive between two attempts, and during the next one.
        try send(300_000, of: first)
        let second = writer.begin()
        try send(300_000, of: first)
        try send(50, of: second)
        await writer.settled()
        #expect(file.written(0) == 150)
        #expect(flow.holds.withLock { $0 } == 0)
    }

    @Test func `a released claim prevents writes and is free again, even while the file is open`() throws {
        let bench = try OpgetBench()
        let first = try file(bench.folder, 8_192)
        first.letGo()
        let second = try file(bench.folder, 8_192)
        #expect(throws: FileFailure.self) {
            try [1 as UInt8].withUnsafeBytes { bytes in try first.write(bytes, to: 0) }
        }
        try [1 as UInt8].withUnsafeBytes { bytes in try second.write(bytes, to: 0) }
        withExtendedLifetime(first) {}
    }

    @Test func `only one program at a time can claim a partial file`() throws {
        let bench = try OpgetBench()
        let first = try file(bench.folder, 8_192)
        let failure = #expect(throws: FileFailure.self) { try file(bench.folder, 8_192) }
        #expect(failure?.code == "destinationBusy")
        withExtendedLifetime(first) {}
    }

    @Test(arguments: [true, false])
    func `a file whose bytes the disk lost is neither published nor resumed`(isDurable: Bool) async throws {
        let bench = try OpgetBench()
        let place = bench.folder.appending(path: "file")
        let isReported = Mutex(false)
        let file = try file(bench.folder, 8_192) { descriptor in
            // The system reports lost bytes only once.
            let isFirst = isReported.withLock { isReported in
                defer { isReported = true }
                return !isReported
            }
            if isFirst { errno = EIO }
            return isFirst ? false : descriptor.synchronize()
        }
        try [UInt8](repeating: 1, count: 8_192).withUnsafeBytes { bytes in try file.write(bytes, to: 0) }
        if !isDurable { #expect(throws: FileFailure.self) { try file.checkpoint() } }
        for _ in 0..<2 {
            let failure = await #expect(throws: FileFailure.self) {
                try await file.publish(at: place, replacing: true, isDurable: isDurable)
            }
            #expect(failure?.status == .disk && failure?.code == "fileUnwritable", "\(String(describing: failure))")
        }
        let failure = #expect(throws: FileFailure.self) {
            try [1 as UInt8].withUnsafeBytes { bytes in try file.write(bytes, to: 0) }
        }
        #expect(failure?.code == "fileUnwritable")
        file.letGo()
        #expect(bench.names.isEmpty)
        #expect(try self.file(bench.folder, 8_192).resumedBytes == 0)
    }

    @Test(arguments: [EPERM, ENOSYS])
    func `a file is published on a volume that has no permissions`(number: Int32) async throws {
        let bench = try OpgetBench()
        let setMode = { @Sendable (_: Int32, _: mode_t) -> Int32 in
            errno = number
            return -1
        }
        let file = try file(bench.folder, 8_192, setMode: setMode)
        try TestPattern.bytes(count: 8_192).withUnsafeBytes { bytes in try file.write(bytes, to: 0) }
        try await file.publish(at: bench.folder.appending(path: "file"), replacing: false, isDurable: false)
        #expect(bench.holds("file", count: 8_192))
    }

    @Test func `a file is discarded only once, because another program can use its names afterwards`() throws {
        let bench = try OpgetBench()
        let first = try file(bench.folder, 8_192) { _ in
            errno = EIO
            return false
        }
        #expect(throws: FileFailure.self) { try first.checkpoint() }
        first.discard()
        #expect(bench.names.isEmpty)
        let second = try file(bench.folder, 8_192)
        first.letGo()
        #expect(bench.names.count == 2)
        withExtendedLifetime(second) {}
    }

    @Test func `a resumed download replaces its metadata only by metadata that is on the disk`() throws {
        let bench = try OpgetBench()
        let first = try file(bench.folder, 8_192)
        try [UInt8](repeating: 1, count: 100).withUnsafeBytes { bytes in try first.write(bytes, to: 0) }
        try first.checkpoint()
        first.letGo()
        #expect(throws: FileFailure.self) { try file(bench.folder, 8_192) { _ in false } }
        let names = Mutex<[String]>([])
        let second = try file(bench.folder, 8_192) { descriptor in
            let present = bench.names
            names.withLock { $0 += present }
            return descriptor.synchronize()
        }
        #expect(second.resumedBytes == 100)
        // The new file is synchronized before it gets its name, and the failed attempt left none.
        let present = names.withLock { $0 }
        #expect(present.filter { $0.hasSuffix(".metadata.new") }.count == 1)
    }

    @Test func `a write error is reported to the transfer, and missing bytes at its end`() async throws {
        let bench = try OpgetBench()
        let file = try file(bench.folder, 8_192)
        let (writer, flow) = (SegmentWriter(file, 0) {}, Flow())
        let turn = writer.begin()
        try [UInt8](repeating: 1, count: 100).withUnsafeBytes { try writer.take($0, flow, of: turn) }
        let missing = #expect(throws: NetworkError.self) { try writer.finish() }
        #expect(missing?.code == .truncatedBody)
        try [UInt8](repeating: 1, count: 300_000).withUnsafeBytes { try writer.take($0, flow, of: turn) }
        // The transfer was held, and is released nevertheless.
        await flow.passage()
        await writer.settled()
        let failure = #expect(throws: FileFailure.self) {
            try [1 as UInt8].withUnsafeBytes { try writer.take($0, flow, of: turn) }
        }
        #expect(failure?.code == "bodyTooLarge")
        #expect(throws: FileFailure.self) { try writer.finish() }
        #expect(file.written(0) == 100)
    }
}
