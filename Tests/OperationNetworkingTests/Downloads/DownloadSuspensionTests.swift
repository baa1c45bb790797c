// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct DownloadSuspensionTests {
    @Test func `a download that is suspended and resumed while its task starts continues`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        let (starting, starts, suspending, suspends) = (Gate(), Gate(), Gate(), Gate())
        let session = WatchedSession(bench.bench.session) { call in
            switch call {
            case .resume where !starting.isOpen:
                starting.open()
                starts.wait()
            case .suspend where starts.isOpen && !suspending.isOpen:
                suspending.open()
                suspends.wait()
            default: break
            }
        }
        let download = try bench.start(to: .file(bench.url("file")), over: session)
        await starting.passage()
        try await TestThread.run { download.task.suspend() }
        starts.open()
        await suspending.passage()
        try await TestThread.run { download.task.resume() }
        suspends.open()
        #expect(await download.conclusion().file != nil)
        #expect(bench.holds("file"))
    }

    @Test func `a download that one thread resumes while another one suspends it continues`() async throws {
        let bench = try DownloadBench()
        let gate = Gate()
        let whole = DownloadBench.resource()
        bench.server.route("GET", "/file") { whole.answer(to: $0).after(gate) }
        let (suspending, suspends) = (Gate(), Gate())
        let session = WatchedSession(bench.bench.session) { call in
            guard call == .suspend, !suspending.isOpen else { return }
            suspending.open()
            suspends.wait()
        }
        let download = try bench.start(to: .file(bench.url("file")), over: session)
        _ = await bench.server.heads(atLeast: 1)
        async let suspension: Void = TestThread.run { download.task.suspend() }
        await suspending.passage()
        try await TestThread.run { download.task.resume() }
        suspends.open()
        try await suspension
        gate.open()
        #expect(await download.conclusion().file != nil)
        #expect(bench.holds("file"))
    }

    @Test func `a download that is suspended before its task exists sends nothing until it is resumed`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        let stop = StoppedCall(at: .claim)
        stop.arm()
        let made = Gate()
        let session = WatchedSession(bench.bench.session) { if $0 == .resume { made.open() } }
        let download = try bench.start(to: .file(bench.url("file")), files: stop.files, over: session)
        await stop.reached.passage()
        download.task.suspend()
        stop.passes.open()
        #expect(!made.isOpen)
        #expect(bench.server.counts.heads == 0)
        download.task.resume()
        #expect(await download.conclusion().file != nil)
        #expect(bench.holds("file"))
    }
}
