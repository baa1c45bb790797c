// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(2)))
struct LateProgressTests {
    @Test func `no progress is reported after a failure, even if it was counted before`() async throws {
        let bench = try OperationBench()
        let gate = Gate()
        bench.server.route("GET", "/") { _ in
            LoopbackAnswer(
                .head(200, ["Content-Length": "10"]), .stall(until: gate), .send("01234"), .stallForever)
        }
        // The clock calls a closure whenever it is read, until the closure returns true.
        let manual = ManualClock(), interruption = Locked<(@Sendable () -> Bool)?>(nil)
        let clock = ClosureClock(
            over: manual,
            now: {
                let action = interruption.withLock { exchange(&$0, with: nil) }
                if let action, !action() { interruption.withLock { $0 = action } }
                return manual.now
            })
        let operation = bench.text()
        operation.clock = clock
        let lines = EventRecorder<String>()
        let failed = Gate()
        operation.failureHandler = { _ in
            lines.record("failure")
            failed.open()
        }
        operation.start()
        try await TestThread.run { while operation.responseHead == nil { sched_yield() } }
        let error = NetworkError(code: .transferFailed, phase: .receiving, message: "Given up.")
        operation.downloadProgressHandler = { _ in lines.record("progress") }
        interruption.withLock {
            $0 = { [weak operation] in
                // The bytes are counted, but not reported on the queue yet.
                guard let operation, operation.downloadProgress.completedBytes > 0 else { return false }
                operation.finish(withError: error)
                return true
            }
        }
        gate.open()
        try await failed.passage(within: .seconds(30))
        // The thread of the session has finished with these bytes when it handles another request.
        _ = try await bench.session.stream(NetworkRequest(url: bench.server.url("/")))
        await bench.settled()
        #expect(lines.events == ["failure"])
    }

    @Test func `the last progress is reported although the program keeps no reference to the operation`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        let counts = EventRecorder<Int64>(), census = LiveObjects()
        func load() async {
            let operation = census.track(bench.text())
            operation.downloadProgressHandler = { counts.record($0.completedBytes) }
            await operation.startAndEnd()
        }
        bench.callbacks.suspend()
        await load()
        // Meanwhile, other threads release the operation, so that only the last report keeps it.
        _ = try await TestThread.run { census.countAtRest(limit: .milliseconds(200)) }
        bench.callbacks.resume()
        await bench.settled()
        #expect(counts.events.last == 5)
        try await bench.checkNothingIsLeft()
    }
}
