// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct DownloadCancellationTests {
    private let bench: DownloadBench

    init() throws {
        bench = try DownloadBench()
    }

    @Test func `a download that is canceled halfway keeps its partial file only if keepsPart is true`() async throws {
        for keeps in [true, false] {
            let bench = try DownloadBench()
            let gate = Gate()
            bench.server.route("GET", "/file") { _ in
                .pattern(900_000, stallingAfter: 300_000, until: gate).with("ETag", "\"one\"")
            }
            let options = with(DownloadOptions()) { $0.keepsPart = keeps }
            let conclusion = try await bench.download(to: .file(bench.url("new/file")), options: options) {
                progress, run in
                if progress.received == 300_000 { run?.cancel() }
            }
            #expect(conclusion.error?.code == .cancelled)
            #expect(bench.names("new").count == (keeps ? 2 : 0))
            #expect(bench.names() == (keeps ? ["new"] : []))
            gate.open()
            bench.serve(DownloadBench.resource())
            let file = try await bench.download(to: .file(bench.url("new/file"))).file
            #expect(file?.resumedBytes == (keeps ? 300_000 : 0))
            #expect(bench.bytes("new/file").map { TestPattern.matches($0) && $0.count == DownloadBench.size } == true)
        }
    }

    @Test func `a canceled download does not wait for the disk, and the next one uses all its bytes`() async throws {
        bench.server.route("GET", "/file") { _ in
            LoopbackAnswer(
                .head(200, ["Content-Length": "900000", "ETag": "\"one\""]),
                .send(TestPattern.bytes(count: 300_000)), .stallForever)
        }
        let synchronized = EventRecorder<FileSystemCall.Kind>()
        let files = FileSystem { call in
            if call.kind == .synchronize { synchronized.record(call.kind) }
            return .proceed
        }
        let conclusion = try await bench.download(to: .file(bench.url("file")), files: files) { progress, run in
            if progress.received == 300_000 { run?.cancel() }
        }
        #expect(conclusion.error?.code == .cancelled)
        #expect(synchronized.events.isEmpty)
        bench.serve(DownloadBench.resource())
        #expect(try await bench.download(to: .file(bench.url("file"))).file?.resumedBytes == 300_000)
        #expect(bench.holds("file"))
    }

    @Test func `a download that is canceled while it prepares its files leaves nothing`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        let stop = StoppedCall(at: .claim)
        stop.arm()
        let download = try bench.start(to: .file(bench.url("new/file")), files: stop.files)
        await stop.reached.passage()
        download.task.cancel()
        stop.passes.open()
        #expect(await download.conclusion().error?.code == .cancelled)
        #expect(bench.server.counts.connections == 0)
        #expect(bench.names() == [])
    }

    @Test func `a download that waits for a destination in use can be canceled`() async throws {
        let gate = Gate()
        let whole = DownloadBench.resource()
        bench.server.route("GET", "/file") { whole.answer(to: $0).after(gate) }
        let first = try bench.start(to: .file(bench.url("file")))
        _ = await bench.server.heads(atLeast: 1)
        let (clock, waits) = (ManualClock(), Gate())
        let files = FileSystem { call in
            if call.kind == .claim { waits.open() }
            return .proceed
        }
        let second = try bench.start(to: .file(bench.url("file")), files: files, clock: clock)
        await waits.passage()
        second.task.cancel()
        // The timer is set after the first attempt has failed, on another thread.
        try await TestThread.run { while clock.pendingCount == 0 { sched_yield() } }
        clock.advance(by: .milliseconds(10))
        #expect(await second.conclusion().error?.code == .cancelled)
        gate.open()
        #expect(await first.conclusion().file != nil)
        #expect(bench.names() == ["file"])
    }

    /// Cancels a download at a system call after its last byte, and returns how the download ended.
    private func cancelled(
        at kind: FileSystemCall.Kind, _ bench: DownloadBench, _ options: DownloadOptions
    ) async throws -> (conclusion: DownloadConclusion, laterCalls: Int) {
        let stop = StoppedCall(at: kind)
        let download = try bench.start(to: .file(bench.url("file")), options: options, files: stop.files) { progress in
            if progress.received == progress.total { stop.arm() }
        }
        await stop.reached.passage()
        download.task.cancel()
        stop.passes.open()
        return (await download.conclusion(), stop.laterCalls)
    }

    private var options: DownloadOptions {
        var options = DownloadOptions()
        options.existingItem = .replace
        options.checkpointInterval = .seconds(3600)
        let bytes = TestPattern.bytes(count: DownloadBench.size)
        options.checksum = FileChecksum(
            algorithm: .sha256, bytes: SHA256.checksum(of: bytes, startingWith: SHA256()))
        return options
    }

    /// Checks that the destination is unchanged, and that another download resumes from all bytes.
    private func checkKept(_ bench: DownloadBench) async throws {
        #expect(bench.bytes("file") == Array("old".utf8))
        #expect(bench.names().count == 3)
        #expect(bench.partURL != nil && bench.metadataURL != nil)
        let next = try await bench.download(to: .file(bench.url("file")), options: options)
        #expect(next.file?.resumedBytes == Int64(DownloadBench.size - 1))
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
    }

    @Test func `canceled while its checksum is computed, a download stops and keeps its partial file`() async throws {
        try await bench.leavePart()
        try Data("old".utf8).write(to: bench.url("file"))
        let (conclusion, laterCalls) = try await cancelled(at: .read, bench, options)
        #expect(conclusion.error?.code == .cancelled, "\(conclusion)")
        #expect(laterCalls == 0)
        try await checkKept(bench)
    }

    @Test func `canceled while it is synchronized, a download keeps its partial file and the old file`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        try Data("old".utf8).write(to: bench.url("file"))
        let (conclusion, _) = try await cancelled(at: .synchronize, bench, options)
        #expect(conclusion.error?.code == .cancelled, "\(conclusion)")
        try await checkKept(bench)
    }

    @Test func `a cancellation during the final rename comes too late, and the file is complete`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        try Data("old".utf8).write(to: bench.url("file"))
        let (conclusion, _) = try await cancelled(at: .rename, bench, options)
        #expect(conclusion.file != nil, "\(conclusion)")
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
    }

    @Test func `canceled while a rejected response is checked, a download reports just that`() async throws {
        bench.server.route("GET", "/file") { _ in .text("none", status: 404) }
        let (judging, judges) = (Gate(), Gate())
        let download = Download(to: .file(bench.url("file"))) { _ in
            judging.open()
            judges.wait()
            return false
        }
        let ended = Gate()
        let session = WatchedSession(bench.bench.session) { call in
            if call == .end { ended.open() }
        }
        let running = RunningDownload(try bench.bench.request("GET", "/file"), over: session, download) { _ in }
        running.task.resume()
        await judging.passage()
        await ended.passage()
        running.task.cancel()
        judges.open()
        #expect(await running.conclusion().error?.code == .cancelled)
        #expect(bench.names() == [])
    }
}
