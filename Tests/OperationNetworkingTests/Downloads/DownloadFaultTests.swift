// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct DownloadFaultTests {
    private let bench: DownloadBench

    init() throws {
        bench = try DownloadBench()
    }

    @Test func `a disk that is slower than the server pauses the transfer`() async throws {
        bench.serve(LoopbackResource(.pattern(count: 64 << 20), etag: "\"one\""))
        let (reached, gate) = (Gate(), Gate())
        let isFirst = Locked(true)
        let files = FileSystem { call in
            if call.kind == .write, isFirst.withLock({ exchange(&$0, with: false) }) {
                // The first write is that of the metadata. From then on, the disk is stuck.
                return .proceed
            }
            if call.kind == .write, !gate.isOpen {
                reached.open()
                gate.wait()
            }
            return .proceed
        }
        async let conclusion = bench.download(to: .file(bench.url("file")), files: files)
        await reached.passage()
        let stuck = await bench.server.counts { _ in true }.sentBytes
        #expect(stuck < 32 << 20)
        gate.open()
        #expect(try await conclusion.file?.length == 64 << 20)
    }

    @Test func `whichever system call fails, the result is a typed error or a complete file`() async throws {
        let numbers = [EIO, ENOSPC, EACCES]
        for number in numbers {
            for failing in 0..<60 {
                let bench = try DownloadBench()
                try Data("old".utf8).write(to: bench.url("file"))
                bench.serve(DownloadBench.resource(300_000))
                let count = Locked(0)
                let files = FileSystem { call in
                    let index = count.withLock { count -> Int in
                        defer { count += 1 }
                        return count
                    }
                    return index == failing ? .fail(number) : .proceed
                }
                let options = with(DownloadOptions()) { $0.existingItem = .replace }
                let conclusion = try await bench.download(to: .file(bench.url("file")), options: options, files: files)
                let bytes = bench.bytes("file")
                if conclusion.file == nil {
                    #expect(conclusion.error != nil, "call \(failing), error \(number)")
                    #expect(bytes == Array("old".utf8) || bytes?.count == 300_000, "call \(failing), error \(number)")
                } else {
                    #expect(bytes.map { TestPattern.matches($0) && $0.count == 300_000 } == true)
                }
                let after = try await bench.download(to: .file(bench.url("file")), options: options)
                #expect(after.file != nil, "after call \(failing), error \(number): \(after)")
                #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == 300_000 } == true)
                if count.withLock({ $0 }) <= failing { break }
            }
        }
    }

    @Test func `a download of one gibibyte to disk needs little memory`() async throws {
        guard Rounds.isSoak else { return }
        bench.serve(LoopbackResource(.pattern(count: 1 << 30), etag: "\"one\""))
        let before = ResidentMemory.bytes
        let peak = Locked(0)
        let file = try await bench.download(to: .file(bench.url("file"))) { _, _ in
            let now = ResidentMemory.bytes
            peak.withLock { $0 = max($0, now) }
        }.file
        let growth = peak.withLock { $0 } - before
        #expect(file?.length == 1 << 30)
        print("soak: a download of 1 GiB to disk grew the process by \(growth >> 10) KiB")
        // A sanitizer keeps memory that was freed.
        #if !TSAN && !ASAN
            #expect(growth < 16 << 20)
        #endif
    }

    @Test func `if the destination is taken meanwhile, no received byte is lost`() async throws {
        let gate = Gate()
        bench.server.route("GET", "/file") { _ in
            .pattern(DownloadBench.size, stallingAfter: 1_000, until: gate).with("ETag", "\"one\"")
        }
        let begun = Gate()
        let download = try bench.start(to: .file(bench.url("file"))) { _ in begun.open() }
        await begun.passage()
        try Data("theirs".utf8).write(to: bench.url("file"))
        gate.open()
        #expect(await download.conclusion().error?.code == .destinationExists)
        #expect(bench.bytes("file") == Array("theirs".utf8))
        #expect(bench.partURL != nil)
        try FileManager.default.removeItem(at: bench.url("file"))
        bench.serve(DownloadBench.resource())
        let next = try await bench.download(to: .file(bench.url("file")))
        #expect(next.file?.resumedBytes == Int64(DownloadBench.size - 1))
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
    }

    @Test func `if the file name is taken, a resumed download fails early and loses no bytes`() async throws {
        try FileManager.default.createDirectory(at: bench.url("in"), withIntermediateDirectories: true)
        try await bench.leavePart(to: .folder(bench.url("in")))
        let part = try #require(bench.names("in").first { $0.hasSuffix(".part") })
        let left = try #require(bench.bytes("in/\(part)")?.count)
        try Data("theirs".utf8).write(to: bench.url("in/file"))
        let written = Locked(0)
        let files = FileSystem { call in
            if call.kind == .write { written.withLock { $0 += 1 } }
            return .proceed
        }
        let refused = try await bench.download(to: .folder(bench.url("in")), files: files)
        #expect(refused.error?.code == .destinationExists)
        #expect(bench.bytes("in/\(part)")?.count == left)
        // Only the metadata may be written.
        #expect(written.withLock { $0 } <= 1)
        try FileManager.default.removeItem(at: bench.url("in/file"))
        let next = try await bench.download(to: .folder(bench.url("in")))
        #expect(next.file?.resumedBytes == Int64(left))
        #expect(bench.holds("in/file"))
        #expect(bench.names("in") == ["file"])
    }

    /// Returns how a download ends if the system refuses its last step.
    private func failing(
        _ number: Int32, at kind: FileSystemCall.Kind, _ bench: DownloadBench
    ) async throws -> DownloadConclusion {
        bench.serve(DownloadBench.resource())
        try Data("old".utf8).write(to: bench.url("file"))
        let isArmed = Locked(false)
        let files = FileSystem { call in
            call.kind == kind && isArmed.withLock({ exchange(&$0, with: false) }) ? .fail(number) : .proceed
        }
        var options = DownloadOptions()
        options.existingItem = .replace
        options.checkpointInterval = .seconds(3600)
        return try await bench.download(to: .file(bench.url("file")), options: options, files: files) { progress, _ in
            if progress.received == progress.total { isArmed.withLock { $0 = true } }
        }
    }

    @Test(arguments: [EACCES, EROFS, EIO])
    func `a file that cannot be moved to its destination stays as a partial file`(number: Int32) async throws {
        let conclusion = try await failing(number, at: .rename, bench)
        #expect(conclusion.error?.code == .fileUnwritable, "\(conclusion)")
        #expect(bench.bytes("file") == Array("old".utf8))
        let options = with(DownloadOptions()) { $0.existingItem = .replace }
        let next = try await bench.download(to: .file(bench.url("file")), options: options)
        #expect(next.file?.resumedBytes == Int64(DownloadBench.size - 1))
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
    }

    /// Returns a file system that lets a download write its metadata only the given number of times.
    private func refusingMetadata(_ number: Int32, after count: Int) -> FileSystem {
        let renames = Locked(0)
        return FileSystem { call in
            guard call.kind == .rename, call.name?.description.hasSuffix(".metadata.new") == true else {
                return .proceed
            }
            let isRefused = renames.withLock { renames -> Bool in
                renames += 1
                return renames > count
            }
            return isRefused ? .fail(number) : .proceed
        }
    }

    @Test(arguments: [EMFILE, ENOSPC], [Duration.zero, .seconds(3600)])
    func `an interrupted download keeps its bytes and its error if new metadata cannot be written`(
        number: Int32, interval: Duration
    ) async throws {
        let whole = DownloadBench.resource()
        bench.server.route("GET", "/file") { whole.answer(to: $0).cut(at: 400_000) }
        let options = with(DownloadOptions()) { $0.checkpointInterval = interval }
        let cut = try await bench.download(
            to: .file(bench.url("file")), options: options, files: refusingMetadata(number, after: 1))
        #expect(cut.error?.code == .truncatedBody || cut.error?.code == .connectionLost, "\(cut)")
        bench.serve(whole)
        let next = try await bench.download(
            to: .file(bench.url("file")), options: options, files: refusingMetadata(number, after: 0))
        #expect(next.file?.resumedBytes ?? 0 > 300_000, "\(next)")
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
    }

    @Test func `without any metadata, a download succeeds, but an interrupted download leaves no files`() async throws {
        let whole = DownloadBench.resource()
        bench.server.route("GET", "/file") { whole.answer(to: $0).cut(at: 400_000) }
        let files = refusingMetadata(EMFILE, after: 0)
        let cut = try await bench.download(to: .file(bench.url("file")), files: files)
        #expect(cut.error?.code == .truncatedBody || cut.error?.code == .connectionLost, "\(cut)")
        #expect(bench.names() == [])
        bench.serve(whole)
        let next = try await bench.download(to: .file(bench.url("file")), files: files)
        #expect(next.file?.resumedBytes == 0, "\(next)")
        #expect(bench.holds("file"))
    }

    @Test func `a complete partial file stays if its metadata cannot be written or read`() async throws {
        #expect(try await failing(EIO, at: .rename, bench).error?.code == .fileUnwritable)
        let options = with(DownloadOptions()) { $0.existingItem = .replace }
        let refusals = [
            // All bytes are flushed, and the last byte is requested again.
            refusingMetadata(EMFILE, after: 0),
            FileSystem { call in
                let isMetadata = call.name?.description.hasSuffix(".metadata") == true
                return call.kind == .open && isMetadata ? .fail(EMFILE) : .proceed
            },
        ]
        for files in refusals {
            let refused = try await bench.download(to: .file(bench.url("file")), options: options, files: files)
            #expect(refused.error?.code == .resourcesExhausted, "\(refused)")
            #expect(bench.names().count == 3)
        }
        let next = try await bench.download(to: .file(bench.url("file")), options: options)
        #expect(next.file?.resumedBytes == Int64(DownloadBench.size - 1), "\(next)")
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
    }

    @Test func `if the new file name cannot be synchronized, the error says that the file is complete`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        let isRenamed = Locked(false)
        let files = FileSystem { call in
            if call.kind == .renameExclusively { isRenamed.withLock { $0 = true } }
            return call.kind == .synchronize && isRenamed.withLock({ $0 }) ? .fail(EIO) : .proceed
        }
        let conclusion = try await bench.download(to: .file(bench.url("file")), files: files)
        #expect(conclusion.error?.code == .fileUnwritable, "\(conclusion)")
        #expect(
            conclusion.error?.message.contains("The complete file is at its destination") == true, "\(conclusion)")
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
    }

    @Test func `a download is synchronized only if it must be durable`() async throws {
        for isDurable in [true, false] {
            let bench = try DownloadBench(serving: DownloadBench.resource())
            let count = Locked(0)
            let files = FileSystem { call in
                if call.kind == .synchronize { count.withLock { $0 += 1 } }
                return .proceed
            }
            var options = DownloadOptions()
            options.isDurable = isDurable
            options.checkpointInterval = .seconds(3600)
            #expect(try await bench.download(to: .file(bench.url("file")), options: options, files: files).file != nil)
            #expect((count.withLock { $0 } > 0) == isDurable)
            #expect(bench.holds("file"))
        }
    }

    @Test func `a download to a file system without locks succeeds`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        // An NFS volume without a lock service reports this error.
        let files = FileSystem { $0.kind == .claim ? .fail(ENOLCK) : .proceed }
        let conclusion = try await bench.download(to: .file(bench.url("file")), files: files)
        #expect(conclusion.file != nil, "\(conclusion)")
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
    }

    @Test(arguments: [FileSystemCall.Kind.claim, .status])
    func `a partial file that cannot be claimed is removed if it is new`(kind: FileSystemCall.Kind) async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        let files = FileSystem { $0.kind == kind && $0.name == nil ? .fail(EIO) : .proceed }
        for isNew in [true, false] {
            if !isNew { try await bench.leavePart(to: .folder(bench.url("new"))) }
            let conclusion = try await bench.download(to: .folder(bench.url("new")), files: files)
            #expect(conclusion.error?.code == .fileUnwritable, "\(conclusion)")
            #expect(bench.names("new").count == (isNew ? 0 : 2))
            #expect(bench.names() == (isNew ? [] : ["new"]))
        }
    }

    @Test(arguments: [FileSystemCall.Kind.claim, .status])
    func `a complete download leaves no file if its last claim fails`(kind: FileSystemCall.Kind) async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        let isRenamed = Locked(false)
        let files = FileSystem { call in
            if call.kind == .renameExclusively { isRenamed.withLock { $0 = true } }
            return call.kind == kind && call.name == nil && isRenamed.withLock({ $0 }) ? .fail(EIO) : .proceed
        }
        let conclusion = try await bench.download(to: .file(bench.url("file")), files: files)
        #expect(conclusion.file != nil, "\(conclusion)")
        #expect(bench.holds("file"))
        #expect(bench.names().allSatisfy { !$0.hasSuffix(".part") }, "\(bench.names())")
    }

    @Test func `missing directories are not created if createsDirectories is false`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        var options = DownloadOptions()
        options.createsDirectories = false
        let conclusion = try await bench.download(to: .file(bench.url("new/file")), options: options)
        #expect(conclusion.error?.code == .fileUnwritable, "\(conclusion)")
        #expect(bench.names() == [] && bench.server.counts.heads == 0)
        options.createsDirectories = true
        #expect(try await bench.download(to: .file(bench.url("new/file")), options: options).file != nil)
    }

    @Test func `a file name that is too long is an error before the request`() async throws {
        bench.serve(DownloadBench.resource())
        let long = bench.url("new").appendingPathComponent(String(repeating: "x", count: 300))
        let conclusion = try await bench.download(to: .file(long))
        #expect(conclusion.error?.code == .fileUnwritable, "\(conclusion)")
        #expect(bench.server.counts.heads == 0 && bench.names() == [])
    }

    @Test func `a file name from the server that is too long is an error before the body is written`() async throws {
        bench.serve(DownloadBench.resource())
        // Some volumes allow only short names.
        let files = FileSystem { call in
            call.kind == .status && call.name?.description == "file" ? .fail(ENAMETOOLONG) : .proceed
        }
        let conclusion = try await bench.download(to: .folder(bench.folder), files: files)
        #expect(conclusion.error?.code == .fileUnwritable, "\(conclusion)")
        #expect(bench.names() == [])
    }

    @Test func `a directory that another download removes in the meantime is created again`() async throws {
        bench.serve(DownloadBench.resource())
        let folder = bench.url("new")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let isFirst = Locked(true)
        let files = FileSystem { call in
            let isPart = call.kind == .open && call.name?.description.hasSuffix(".part") == true
            if isPart, isFirst.withLock({ exchange(&$0, with: false) }) { rmdir(folder.path) }
            return .proceed
        }
        let conclusion = try await bench.download(to: .file(bench.url("new/file")), files: files)
        #expect(conclusion.file != nil, "\(conclusion)")
        #expect(bench.holds("new/file"))
    }

    /// Row 77 of the fault catalogue.
    @Test func `a full disk at the last step leaves only the old file`() async throws {
        let conclusion = try await failing(ENOSPC, at: .rename, bench)
        #expect(conclusion.error?.code == .diskFull, "\(conclusion)")
        #expect(bench.bytes("file") == Array("old".utf8))
        #expect(bench.names() == ["file"])
    }

    @Test func `a volume with too little space for the missing bytes keeps the partial file`() async throws {
        let whole = DownloadBench.resource(400_000)
        // The length of the body is unknown, so the next download requests the last byte again.
        bench.server.route("GET", "/file") { _ in
            LoopbackAnswer(
                .head(200, ["Transfer-Encoding": "chunked", "ETag": "\"one\""]),
                .chunk(TestPattern.bytes(count: 400_000)), .close)
        }
        #expect(try await bench.download(to: .file(bench.url("file"))).error != nil)
        // No volume has space for a file of one exbibyte.
        let total = 1 << 60
        bench.server.route("GET", "/file") { request in
            guard request["Range"] == "bytes=399999-" else { return whole.answer(to: request) }
            return LoopbackAnswer(
                .head(
                    206,
                    [
                        "Content-Range": "bytes 399999-\(total - 1)/\(total)", "Content-Length": "\(total - 399_999)",
                        "ETag": "\"one\"",
                    ]), .stallForever)
        }
        for _ in 0..<2 {
            let conclusion = try await bench.download(to: .file(bench.url("file")))
            #expect(conclusion.error?.code == .diskFull, "\(conclusion)")
            let part = try #require(bench.partURL).lastPathComponent
            #expect(bench.bytes(part)?.count == 399_999 && bench.metadataURL != nil)
        }
    }

    @Test func `an outdated partial file that cannot be removed fails the download after two requests`() async throws {
        let files = FileSystem { $0.kind == .remove ? .fail(EACCES) : .proceed }
        try await bench.leavePart()
        let before = bench.server.counts.heads
        bench.server.route("GET", "/file") { request in
            guard request["Range"] == nil else { return .status(416, ["Content-Range": "bytes */100"]) }
            return DownloadBench.resource(100, etag: "\"two\"").answer(to: request)
        }
        let conclusion = try await bench.download(to: .file(bench.url("file")), files: files)
        #expect(conclusion.error?.code == .fileUnwritable, "\(conclusion)")
        #expect(bench.server.counts.heads == before + 2)
    }

    /// Row 78 of the fault catalogue.
    @Test func `bytes that could not be synchronized are an error, and no download resumes from them`() async throws {
        let conclusion = try await failing(EIO, at: .synchronize, bench)
        #expect(conclusion.error?.code == .fileUnwritable, "\(conclusion)")
        #expect(bench.bytes("file") == Array("old".utf8))
        #expect(bench.names() == ["file"])
    }

    /// Row 76 of the fault catalogue.
    @Test(arguments: [true, false])
    func `a wrong checksum is an error, is not tried again, and deletes the partial file`(continues: Bool) async throws
    {
        if continues { try await bench.leavePart() } else { bench.serve(DownloadBench.resource()) }
        let before = bench.server.counts.heads
        var options = DownloadOptions()
        options.checksum = FileChecksum(algorithm: .crc32, bytes: [1, 2, 3, 4])
        let conclusion = try await bench.download(to: .file(bench.url("file")), options: options)
        #expect(conclusion.error?.code == .checksumMismatch)
        #expect(bench.server.counts.heads == before + 1)
        #expect((bench.server.requests.last?["Range"] != nil) == continues)
        #expect(bench.names() == [])
        options.checksum = nil
        #expect(try await bench.download(to: .file(bench.url("file")), options: options).file?.resumedBytes == 0)
        #expect(bench.server.requests.last?["Range"] == nil)
        #expect(bench.holds("file"))
    }
}
