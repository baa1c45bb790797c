// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Metadata of a download", .timeLimit(.minutes(3)))
struct DownloadMetadataTests {
    /// The calls are the whole cost of a small file, so each new one has to be justified here.
    @Test(arguments: [false, true])
    func `a small download makes only the calls that its promises need`(isDurable: Bool) async throws {
        let bench = try DownloadBench(), made = EventRecorder<FileSystemCall.Kind>()
        let files = FileSystem { call in
            // The bytes may arrive in several parts.
            if call.kind != .write || made.events.last != .write { made.record(call.kind) }
            return .proceed
        }
        bench.serve(DownloadBench.resource(10_000))
        let options = with(DownloadOptions()) { $0.isDurable = isDurable }
        let conclusion = try await bench.download(to: .folder(bench.folder), options: options, files: files)
        #expect(conclusion.file != nil && bench.holds("file", size: 10_000))
        #expect(bench.names() == ["file"])
        // The directory and the partial file, which is claimed and checked.
        let begun: [FileSystemCall.Kind] = [.open, .open, .claim, .status, .status]
        // The destination is free, no metadata is left, and the bytes are written.
        let written: [FileSystemCall.Kind] = [.status, .remove, .write]
        let moved: [FileSystemCall.Kind] = [.status, .setPermissions, .renameExclusively, .status]
        let flushed: [FileSystemCall.Kind] = isDurable ? [.synchronize] : []
        #expect(made.events == begun + written + flushed + moved + flushed + flushed + [.close])
    }

    @Test func `a small download removes the metadata that a killed process did not finish`() async throws {
        let bench = try DownloadBench()
        try await bench.leavePart()
        let metadata = try #require(bench.metadataURL)
        try FileManager.default.moveItem(at: metadata, to: URL(fileURLWithPath: metadata.path + ".new"))
        bench.serve(DownloadBench.resource(1_000))
        #expect(try await bench.download(to: .file(bench.url("file"))).file?.resumedBytes == 0)
        #expect(bench.names() == ["file"] && bench.holds("file", size: 1_000))
    }

    @Test(arguments: [65_535, 65_536])
    func `only a file of at least 64 KiB has metadata before its final rename`(size: Int) async throws {
        let bench = try DownloadBench(), stop = StoppedCall(at: .renameExclusively)
        bench.serve(DownloadBench.resource(size))
        stop.arm()
        let running = try bench.start(to: .file(bench.url("file")), files: stop.files)
        try await stop.reached.passage(within: .seconds(60))
        #expect((bench.metadataURL != nil) == (size == 65_536))
        stop.passes.open()
        #expect(await running.conclusion().file != nil)
        #expect(bench.names() == ["file"])
    }

    @Test(arguments: [2_000, 10_000, 60_000, 70_000])
    func `an interrupted small download writes its metadata and can be resumed`(at length: Int) async throws {
        let bench = try DownloadBench()
        bench.server.route("GET", "/file") { DownloadBench.resource().answer(to: $0).cut(at: length) }
        let cut = try await bench.download(to: .file(bench.url("file")))
        #expect(cut.error != nil, "\(cut)")
        #expect(bench.metadataURL != nil && bench.partURL != nil, "\(bench.names())")
        bench.serve(DownloadBench.resource())
        let whole = try await bench.download(to: .file(bench.url("file")))
        #expect(whole.file?.resumedBytes ?? 0 > 0 && bench.holds("file"), "\(whole)")
    }

    @Test(arguments: [true, false])
    func `a resumed download flushes new metadata only if the old metadata counts flushed bytes`(
        isFlushed: Bool
    ) async throws {
        let bench = try DownloadBench(), calls = EventRecorder<FileSystemCall.Kind>()
        if isFlushed {
            try await bench.leavePart()
        } else {
            // A canceled download does not wait for the disk.
            let whole = DownloadBench.resource()
            bench.server.route("GET", "/file") { whole.answer(to: $0).cut(at: 400_000, by: .stall) }
            let options = with(DownloadOptions()) { $0.checkpointInterval = .seconds(3600) }
            let canceled = try await bench.download(to: .file(bench.url("file")), options: options) { progress, run in
                if progress.received >= 100_000 { run?.cancel() }
            }
            #expect(canceled.error?.code == .cancelled, "\(canceled)")
            bench.serve(whole)
        }
        // The next response then states the length, which changes the metadata.
        try bench.changeMetadata { $0.total = nil }
        let files = FileSystem { call in
            // The metadata is replaced before the first byte is written.
            if [.write, .synchronize, .rename].contains(call.kind) { calls.record(call.kind) }
            return .proceed
        }
        let resumed = try await bench.download(to: .file(bench.url("file")), files: files)
        #expect(resumed.file?.resumedBytes ?? 0 > 0 && bench.holds("file"), "\(resumed)")
        let replaced: [FileSystemCall.Kind] = isFlushed ? [.write, .synchronize, .rename] : [.write, .rename]
        #expect(Array(calls.events.prefix(replaced.count)) == replaced)
    }

    @Test func `a partial file without metadata is downloaded again from the start`() async throws {
        let bench = try DownloadBench()
        try await bench.leavePart()
        try FileManager.default.removeItem(at: try #require(bench.metadataURL))
        let whole = try await bench.download(to: .file(bench.url("file")))
        #expect(whole.file?.resumedBytes == 0 && bench.holds("file"), "\(whole)")
        #expect(bench.names() == ["file"])
    }
}
