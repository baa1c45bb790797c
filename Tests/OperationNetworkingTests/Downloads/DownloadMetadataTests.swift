// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

@Suite("When a download writes its metadata", .timeLimit(.minutes(3)))
struct DownloadMetadataTests {
    /// Counts what is asked of the system, by its kind, of names that are not the file's own.
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

    @Test("A small one that ends well never makes one, and opens its part twice: to look, and to make it")
    func small() async throws {
        let bench = try DownloadBench(), (files, made) = counted()
        bench.serve(DownloadBench.resource(10_000))
        let conclusion = try await bench.download(to: .file(bench.url("file")), files: files)
        #expect(conclusion.file != nil && bench.holds("file", size: 10_000))
        #expect(!made.events.contains("rename"))
        #expect(made.events.count { $0 == "open .part" } == 2, "\(made.events)")
        #expect(bench.names() == ["file"])
    }

    @Test(
        "Before it takes its place one of 64 KiB or more has a metadata, a smaller one has none",
        arguments: [65_535, 65_536])
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
        "A small part that is left gets its metadata then, and is gone on with",
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

    @Test("A small part beside which there was no time to write a metadata is begun anew")
    func killed() async throws {
        let bench = try DownloadBench()
        try await bench.leavePart()
        try FileManager.default.removeItem(at: try #require(bench.metadataURL))
        let whole = try await bench.download(to: .file(bench.url("file")))
        #expect(whole.file?.resumedBytes == 0 && bench.holds("file"), "\(whole)")
        #expect(bench.names() == ["file"])
    }
}
