// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct ConformanceScaleTests {
    @Test(arguments: SessionKind.allCases)
    func `ten thousand running requests all complete on few threads`(_ kind: SessionKind) async throws {
        let count = Rounds.count(ci: 10_000, soak: 100_000)
        // The first request starts the threads that the process keeps.
        let first = try Bench(kind)
        first.server.route("/") { _ in .text("hello") }
        #expect(try await first.get().text == "hello")
        first.closeSession()
        await first.server.stopped()
        let bench = try Bench(kind)
        let gate = Gate()
        bench.server.route("/") { _ in .text("hello").after(gate) }
        let threads = ProcessFigures.threads
        let runs = try (0..<count).map { _ in bench.start(try bench.request()) }
        // No request has ended yet.
        _ = await bench.server.heads(atLeast: 1)
        #expect(ProcessFigures.threads <= threads + 4)
        gate.open()
        for run in runs { #expect(await run.end().text == "hello") }
        #expect(ProcessFigures.threads <= threads + 4)
        #expect(bench.server.counts.requests == count)
        #expect(bench.server.violations == [])
        bench.closeSession()
        await bench.server.stopped()
    }

    @Test(arguments: SessionKind.allCases)
    func `a closed session leaves no threads and no file descriptors`(_ kind: SessionKind) async throws {
        let before = try await TestThread.run { ProcessShape() }
        for _ in 0..<Rounds.count(ci: 20, soak: 1_000) {
            let bench = try Bench(kind)
            bench.server.route("/") { _ in .text("hello") }
            let runs = try (0..<8).map { _ in bench.start(try bench.request()) }
            await runs[0].end()
            bench.closeSession()
            for run in runs { _ = await run.receiver.end() }
            await bench.server.counts { $0.openConnections == 0 }
            await bench.server.stopped()
        }
        #expect(try await ProcessShape.settled(since: before).newDescriptors(since: before) == [])
    }
}
