// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Metadata of a download", .timeLimit(.minutes(3)))
struct DownloadMetadataTests {
    /// Records the renames and the opened files of the download, except for the destination file.
    private func counted() -> (files: FileSystem, made: EventRecorder<String>) {
        let made = EventRecorder<String>()
        let files = FileSystem { call in
            if call.kind == .rename { made.record("rename") }
            if call.kind == .open, let name = call.name?.description, name.hasPrefix(".operationkit-") {
                made.record("open \(name.suffix(5))")
            }
            return .proceed
        }
        return (files, made)
    }

    @Test("A small download that succeeds writes no metadata, and opens its partial file twice")
    func small() async throws {
        let bench = try DownloadBench(), (files, made) = counted()
        bench.serve(DownloadBench.resource(10_000))
        let conclusion = try await bench.download(to: .file(bench.url("file")), files: files)
        #expect(conclusion.file != nil && bench.holds("file", size: 10_000))
        #expect(!made.events.contains("rename"))
        #expect(made.events.count { $0 == "open .part" } == 2, "\(made.events)")
        #expect(bench.names() == ["file"])
    }

    @Test("Only a file of at least 64 KiB has metadata before its final rename", arguments: [65_535, 65_536])
    func large(size: Int) async throws {
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

    @Test(
        "An interrupted small download writes its metadata and can be resumed",
        arguments: [2_000, 10_000, 60_000, 70_000])
    func left(at length: Int) async throws {
        let bench = try DownloadBench()
        bench.server.route("GET", "/file") { DownloadBench.resource().answer(to: $0).cut(at: length) }
        let cut = try await bench.download(to: .file(bench.url("file")))
        #expect(cut.error != nil, "\(cut)")
        #expect(bench.metadataURL != nil && bench.partURL != nil, "\(bench.names())")
        bench.serve(DownloadBench.resource())
        let whole = try await bench.download(to: .file(bench.url("file")))
        #expect(whole.file?.resumedBytes ?? 0 > 0 && bench.holds("file"), "\(whole)")
    }

    @Test("A partial file without metadata is downloaded again from the start")
    func killed() async throws {
        let bench = try DownloadBench()
        try await bench.leavePart()
        try FileManager.default.removeItem(at: try #require(bench.metadataURL))
        let whole = try await bench.download(to: .file(bench.url("file")))
        #expect(whole.file?.resumedBytes == 0 && bench.holds("file"), "\(whole)")
        #expect(bench.names() == ["file"])
    }
}
