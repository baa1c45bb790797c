// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct DownloadCancellationTests {
    @Test func `cancelled in the middle, it keeps its part, or nothing if it may not`() async throws {
        for keeps in [true, false] {
            let bench = try DownloadBench()
            let gate = Gate()
            bench.server.route("GET", "/file") { _ in
                LoopbackAnswer(
                    .head(200, ["Content-Length": "900000", "ETag": "\"one\""]),
                    .send(TestPattern.bytes(count: 300_000)), .stall(until: gate))
            }
            var options = DownloadOptions()
            options.keepsPart = keeps
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

    @Test func `cancelled, it does not wait for the disk, and the next one goes on from all that was there`()
        async throws
    {
        let bench = try DownloadBench()
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

    @Test func `cancelled while its files are made ready, it asks for nothing and leaves nothing`() async throws {
        let bench = try DownloadBench()
        bench.serve(DownloadBench.resource())
        let stop = StoppedCall(at: .claim)
        stop.arm()
        let download = try bench.start(to: .file(bench.url("new/file")), files: stop.files)
        await stop.reached.passage()
        download.run.cancel()
        stop.passes.open()
        #expect(await download.conclusion().error?.code == .cancelled)
        #expect(bench.server.counts.connections == 0)
        #expect(bench.names() == [])
    }

    @Test func `cancelled while it waits for a place that is taken, it waits no longer`() async throws {
        let bench = try DownloadBench()
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
        second.run.cancel()
        // Behind the try that failed, on another thread.
        try await TestThread.run { while clock.pendingCount == 0 { sched_yield() } }
        clock.advance(by: .milliseconds(10))
        #expect(await second.conclusion().error?.code == .cancelled)
        gate.open()
        #expect(await first.conclusion().file != nil)
        #expect(bench.names() == ["file"])
    }

    /// Cancels a download at a call to the system behind its last byte, and returns how it ended.
    private func cancelled(
        at kind: FileSystemCall.Kind, _ bench: DownloadBench, _ options: DownloadOptions
    ) async throws -> (conclusion: DownloadConclusion, laterCalls: Int) {
        let stop = StoppedCall(at: kind)
        let download = try bench.start(to: .file(bench.url("file")), options: options, files: stop.files) { progress in
            if progress.received == progress.total { stop.arm() }
        }
        await stop.reached.passage()
        download.run.cancel()
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

    /// Sees that nothing came to the destination, and that another download goes on from all that was there.
    private func checkKept(_ bench: DownloadBench) async throws {
        #expect(bench.bytes("file") == Array("old".utf8))
        #expect(bench.names().count == 3)
        #expect(bench.partURL != nil && bench.metadataURL != nil)
        let next = try await bench.download(to: .file(bench.url("file")), options: options)
        #expect(next.file?.resumedBytes == Int64(DownloadBench.size - 1))
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
    }

    @Test func `cancelled while its checksum is taken, it stops there, keeps its part, and nothing appears`()
        async throws
    {
        let bench = try DownloadBench()
        try await bench.leavePart()
        try Data("old".utf8).write(to: bench.url("file"))
        let (conclusion, laterCalls) = try await cancelled(at: .read, bench, options)
        #expect(conclusion.error?.code == .cancelled, "\(conclusion)")
        #expect(laterCalls == 0)
        try await checkKept(bench)
    }

    @Test func `cancelled while it is brought to the disk, it keeps its part, and nothing appears`() async throws {
        let bench = try DownloadBench()
        bench.serve(DownloadBench.resource())
        try Data("old".utf8).write(to: bench.url("file"))
        let (conclusion, _) = try await cancelled(at: .synchronize, bench, options)
        #expect(conclusion.error?.code == .cancelled, "\(conclusion)")
        try await checkKept(bench)
    }

    @Test func `a cancellation that comes while the file takes its place finds it there, whole`() async throws {
        let bench = try DownloadBench()
        bench.serve(DownloadBench.resource())
        try Data("old".utf8).write(to: bench.url("file"))
        let (conclusion, _) = try await cancelled(at: .rename, bench, options)
        #expect(conclusion.file != nil, "\(conclusion)")
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
    }

    @Test func `cancelled when all of an answer that is no file has come, it tells nothing of it`() async throws {
        let bench = try DownloadBench()
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
        running.run.resume()
        await judging.passage()
        await ended.passage()
        running.run.cancel()
        judges.open()
        #expect(await running.conclusion().error?.code == .cancelled)
        #expect(bench.names() == [])
    }
}
