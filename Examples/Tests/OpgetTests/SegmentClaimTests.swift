// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@testable import opget

@Suite("Claims of partial files", .timeLimit(.minutes(1)))
struct SegmentClaimTests {
    private let bench: OpgetBench

    init() throws { bench = try OpgetBench() }

    private func metadata(_ count: Int64) throws -> SegmentMetadata {
        let validator = try #require(SegmentValidator(["ETag": "\"one\""]))
        return SegmentMetadata(
            source: "s", validator: validator, total: count, spans: [SegmentMetadata.Span(start: 0, end: count)])
    }

    @Test func `a program that waits for a claim does not get a file that was moved meanwhile`() throws {
        let (part, place) = (bench.folder.appending(path: "part"), bench.folder.appending(path: "place"))
        try Data("whole".utf8).write(to: part)
        var opened = 0
        let claim = try SegmentClaim.open(part) {
            opened += 1
            // Another program finishes the file at this moment.
            if opened == 1 { _ = rename(part.path, place.path) }
        }
        #expect(ftruncate(claim.number, 0) == 0)
        #expect(opened == 2)
        #expect(try Data(contentsOf: place) == Data("whole".utf8))
    }

    @Test func `a program that waits for a claim does not get a file that was deleted meanwhile`() throws {
        let part = bench.folder.appending(path: "part")
        var opened = 0
        let claim = try SegmentClaim.open(part) {
            opened += 1
            if opened == 1 { _ = unlink(part.path) }
        }
        #expect(claim.put([1, 2, 3], at: 0))
        #expect(try Data(contentsOf: part).count == 3)
        #expect(throws: FileFailure.self) { try SegmentClaim.open(part) }
    }

    @Test func `without enough space, no file and no open descriptor is left`() throws {
        let place = bench.folder.appending(path: "file")
        for _ in 0..<3 {
            let failure = #expect(throws: FileFailure.self) { try SegmentedFile(for: place, metadata(1 << 60)) }
            #expect(failure?.status == .disk && failure?.code != "destinationBusy")
        }
        #expect(bench.names.isEmpty)
        let links = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        let targets = links.compactMap { link in
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(link)")
        }
        #expect(!targets.contains { $0.hasPrefix(bench.folder.path) })
    }

    @Test func `an incomplete file is never published`() async throws {
        let place = bench.folder.appending(path: "file")
        let file = try SegmentedFile(for: place, metadata(8_192))
        await #expect(throws: FileFailure.self) {
            try await file.publish(at: place, replacing: true, isDurable: false)
        }
        #expect(!bench.names.contains("file"))
    }

    @Test func `a file that another user could have written is not trusted`() throws {
        let (part, link) = (bench.folder.appending(path: "part"), bench.folder.appending(path: "link"))
        try Data("metadata".utf8).write(to: part)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: part)
        for (mode, isTrusted) in [(0o600, true), (0o644, true), (0o622, false), (0o660, false), (0o602, false)] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: part.path)
            #expect(SegmentClaim.content(of: part) == (isTrusted ? Data("metadata".utf8) : nil), "\(mode)")
            if !isTrusted { #expect(throws: FileFailure.self) { try SegmentClaim.open(part) } }
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: part.path)
        _ = try SegmentClaim.open(part)
        #expect(SegmentClaim.content(of: link) == nil)
        #expect(SegmentClaim.content(of: bench.folder) == nil)
        let second = bench.folder.appending(path: "second")
        try FileManager.default.linkItem(at: part, to: second)
        #expect(SegmentClaim.content(of: second) == nil)
    }

    @Test func `a new partial file is used even if its volume lets every user write to it`() throws {
        let part = bench.folder.appending(path: "part")
        // Some volumes report such permissions for every file.
        let claim = try SegmentClaim.open(part) { _ = chmod(part.path, 0o777) }
        #expect(claim.size == 0)
    }

    /// Returns a closure that refuses to lock a file.
    private func refusal(_ error: Int32) -> (Int32) -> Int32 {
        { _ in
            errno = error
            return -1
        }
    }

    @Test(arguments: [ENOLCK, ENOSYS, EOPNOTSUPP])
    func `a partial file on a volume without locks is used`(error: Int32) throws {
        let part = bench.folder.appending(path: "part")
        let claim = try SegmentClaim.open(part, lock: refusal(error))
        #expect(claim.put([1, 2, 3], at: 0))
        #expect(try Data(contentsOf: part).count == 3)
    }

    @Test(arguments: [true, false])
    func `a partial file that cannot be locked is removed if it is new`(isNew: Bool) throws {
        let part = bench.folder.appending(path: "part")
        if !isNew { try Data("bytes".utf8).write(to: part) }
        let failure = #expect(throws: FileFailure.self) { try SegmentClaim.open(part, lock: refusal(EIO)) }
        #expect(failure?.code == "fileUnwritable")
        #expect(bench.names == (isNew ? [] : ["part"]))
    }

    @Test func `a new partial file that another program has locked is not removed`() throws {
        let part = bench.folder.appending(path: "part")
        let failure = #expect(throws: FileFailure.self) { try SegmentClaim.open(part, lock: refusal(EWOULDBLOCK)) }
        #expect(failure?.code == "destinationBusy")
        #expect(bench.names == ["part"])
    }

    @Test func `metadata of a program that begins at the same time is not removed`() throws {
        let place = bench.folder.appending(path: "file")
        let names = SegmentNames(for: place)
        let metadata = try metadata(8_192)
        try Data("left behind".utf8).write(to: names.metadata)
        var other: SegmentedFile?
        #expect(throws: FileFailure.self) {
            // Another program begins to download the file at this moment.
            try names.remove { other = try? SegmentedFile(for: place, metadata) }
        }
        #expect(other != nil && names.exist)
        other = nil
        try names.remove()
        #expect(bench.names.isEmpty)
    }

    @Test func `a partial file in use is not removed`() throws {
        let place = bench.folder.appending(path: "file")
        let file = try SegmentedFile(for: place, metadata(8_192))
        #expect(throws: FileFailure.self) { try SegmentNames(for: place).remove() }
        #expect(SegmentNames(for: place).exist)
        withExtendedLifetime(file) {}
    }

    @Test func `with --fresh, earlier bytes that cannot be removed are a failure of the file`() async throws {
        bench.serve("/file", count: 1_000)
        // A directory cannot be removed like a file, even by the administrator.
        let metadata = SegmentNames(for: bench.folder.appending(path: "file")).metadata
        try FileManager.default.createDirectory(at: metadata, withIntermediateDirectories: false)
        let end = try await bench.run(["--fresh", "--json", bench.url("/file")])
        #expect(end.status == 6)
        #expect(try LogLine.all(end.output).contains { $0.code == "fileUnwritable" })
        #expect(bench.names == [metadata.lastPathComponent] && bench.server.requests.isEmpty)
    }
}
