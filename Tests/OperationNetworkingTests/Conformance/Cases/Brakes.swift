// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

extension ConformanceCase {
    private static let size = 8 << 20

    /// Suspends a transfer each time it has received `part` more bytes, and checks that each byte arrives exactly once.
    private static func suspendOften(_ run: RunningTask, at part: Int, count: Int) async {
        for number in 1..<8 {
            _ = await run.receiver.record { $0.bodyCount >= number * part }
            run.task.suspend()
            run.task.resume()
        }
        let record = await run.end()
        #expect(record.isSuccess, "\(String(describing: record.error))")
        #expect(record.bodyCount == count && record.isPattern)
    }

    static var brakes: [ConformanceCase] {
        [
            ConformanceCase("a task that was suspended before it started sends nothing until it is resumed") {
                bench async throws in
                bench.server.route("/") { _ in .text("hello") }
                let receiver = RecordingReceiver()
                let task = bench.session.makeTask(with: try bench.request(), receiver: receiver)
                task.suspend()
                try await bench.checkHealth()
                #expect(bench.server.counts.heads == 1)
                #expect(receiver.record.ends == 0)
                task.resume()
                #expect(await receiver.end().text == "hello")
            },
            ConformanceCase("a suspended download resumes where it stopped") { bench async throws in
                bench.server.route("/") { _ in .repeating(TestPattern.block, count: size) }
                let run = bench.start(try bench.request())
                await suspendOften(run, at: 1 << 20, count: size)
                #expect(bench.server.counts.heads == 1)
            },
            ConformanceCase("a suspended task delivers nothing, and the server stops sending") {
                bench async throws in
                let count = 256 << 20
                bench.server.route("/") { _ in .repeating(TestPattern.block, count: count) }
                let run = bench.start(try bench.request()) { event, task in
                    if case .head = event { task.suspend() }
                }
                _ = await run.receiver.record { $0.head != nil }
                // Another transfer completes in the meantime, so the suspended one had enough time to deliver bytes.
                bench.server.route("/other") { _ in .repeating(TestPattern.block, count: size) }
                #expect(try await bench.get("/other").isPattern)
                #expect(run.receiver.record.bodyCount == 0)
                #expect(bench.server.counts.sentBytes < 64 << 20)
                run.task.cancel()
                #expect(await run.end().error?.code == .cancelled)
            },
            ConformanceCase("a held task delivers no bytes until the receiver calls proceed") {
                bench async throws in
                bench.server.route("/") { _ in .repeating(TestPattern.block, count: size) }
                let held = Locked(false), overruns = Locked(0)
                let run = bench.start(try bench.request()) { event, task in
                    guard case .bytes = event else { return }
                    if held.withLock({ was in
                        defer { was = true }; return was
                    }) {
                        overruns.withLock { $0 += 1 }
                    }
                    task.hold()
                    DispatchQueue.global().async {
                        held.withLock { $0 = false }
                        task.proceed()
                    }
                }
                let record = await run.end()
                #expect(record.isSuccess)
                #expect(record.bodyCount == size)
                #expect(record.isPattern)
                #expect(overruns.withLock { $0 } == 0)
            },
            ConformanceCase("a task held when its headers arrive delivers no body until it proceeds") {
                bench async throws in
                bench.server.route("/") { _ in .text("hello") }
                let run = bench.start(try bench.request()) { event, task in
                    if case .head = event { task.hold() }
                }
                _ = await run.receiver.record { $0.head != nil }
                for _ in 0..<5 { try await bench.checkHealth() }
                #expect(run.receiver.record.bodyCount == 0)
                #expect(run.receiver.record.ends == 0)
                run.task.proceed()
                #expect(await run.end().text == "hello")
            },
            ConformanceCase("suspend and hold are independent, and both must be released") { bench async throws in
                bench.server.route("/") { _ in .text("hello") }
                let run = bench.start(try bench.request()) { event, task in
                    if case .head = event { task.hold() }
                }
                _ = await run.receiver.record { $0.head != nil }
                run.task.suspend()
                run.task.proceed()
                try await bench.checkHealth()
                #expect(run.receiver.record.bodyCount == 0)
                run.task.hold()
                run.task.resume()
                try await bench.checkHealth()
                #expect(run.receiver.record.bodyCount == 0)
                run.task.proceed()
                #expect(await run.end().text == "hello")
            },
            withNoContent(
                "a suspended upload resumes where it stopped", options: { $0.keptBodyBytes = 1 << 24 }
            ) { bench async throws in
                let bytes = TestPattern.bytes(count: size)
                let run = bench.start(try bench.request("PUT", body: .data(Data(bytes))))
                for part in 1..<8 {
                    await bench.server.counts { $0.bodyBytes >= part << 19 }
                    run.task.suspend()
                    run.task.resume()
                }
                #expect(await run.end().status == 204)
                #expect(bench.server.requests.map(\.bodyCount) == [size])
                let isSame = bench.server.requests.first?.body == bytes
                #expect(isSame)
                #expect(bench.server.violations == [])
            },
            withNoContent(
                "a suspended upload of a stream resumes where it stopped", options: { $0.keptBodyBytes = 1 << 24 }
            ) { bench async throws in
                let bytes = TestPattern.bytes(count: 1 << 20)
                let body = RequestBody.stream(canBeSentAgain: false) { PieceProducer(bytes, size: 9_000, isLate: true) }
                let run = bench.start(try bench.request("PUT", body: body))
                for part in 1..<8 {
                    await bench.server.counts { $0.bodyBytes >= part << 16 }
                    run.task.suspend()
                    run.task.resume()
                }
                #expect(await run.end().status == 204)
                let isSame = bench.server.requests.first?.body == bytes
                #expect(isSame)
            },
            ConformanceCase("suspending simultaneous upload and download transfers every byte exactly once") {
                bench async throws in
                bench.server.routeEarly("/") { _ in .echo }
                let bytes = TestPattern.bytes(count: 2 << 20)
                let body = RequestBody.stream(canBeSentAgain: false) { PieceProducer(bytes, size: 9_000) }
                let run = bench.start(try bench.request("PUT", body: body))
                await suspendOften(run, at: 1 << 17, count: bytes.count)
            },
            ConformanceCase("suspending the download of a compressed body delivers every byte exactly once") {
                bench async throws in
                let bytes = TestPattern.bytes(count: 4 << 20)
                bench.server.route("/") { _ in .gzip(bytes) }
                let run = bench.start(try bench.request())
                await suspendOften(run, at: 1 << 18, count: bytes.count)
            },
            withNoContent("a response that completes while the task is suspended is delivered on resume") {
                bench async throws in
                let isSuspended = Gate()
                let run = bench.start(try bench.request()) { event, task in
                    guard case .head = event else { return }
                    task.suspend()
                    isSuspended.open()
                }
                await isSuspended.passage()
                try await bench.checkHealth()
                #expect(run.receiver.record.ends == 0)
                run.task.resume()
                #expect(await run.end().isSuccess)
            },
            ConformanceCase("a suspended task that waits for a slot lets later tasks go first") { bench async throws in
                let gate = Gate()
                bench.server.route("/*") { .text($0.path) }
                bench.server.route("/held") { _ in .text("held").after(gate) }
                // No timeouts: on a busy machine, a request that timed out would release its slot.
                let first = try (0..<6).map { _ in
                    bench.start(try bench.request("GET", "/held") { $0.timeouts = .none })
                }
                await bench.server.counts { $0.heads == 6 }
                let waiting = try (0..<6).map { bench.start(try bench.request("GET", "/\($0)")) }
                for run in waiting { run.task.suspend() }
                gate.open()
                for run in first { #expect(await run.end().text == "held") }
                bench.server.route("/last") { _ in .text("last") }
                #expect(try await bench.get("/last").text == "last")
                #expect(bench.server.counts.heads == 7, "\(bench.server.requests.map(\.target))")
                for run in waiting { run.task.resume() }
                for (number, run) in waiting.enumerated() { #expect(await run.end().text == "/\(number)") }
            },
            ConformanceCase("random calls of suspend, hold, proceed and resume deliver every byte exactly once") {
                bench async throws in
                bench.server.route("/") { _ in .repeating(TestPattern.block, count: 1 << 20) }
                for seed in 0..<UInt64(Rounds.count(ci: 20, soak: 2_000)) {
                    let run = bench.start(try bench.request())
                    try await TestThread.run {
                        var generator = SeededGenerator(seed: Rounds.firstSeed + seed)
                        while run.receiver.record.ends == 0 {
                            switch Int.random(in: 0..<4, using: &generator) {
                            case 0: run.task.suspend()
                            case 1: run.task.hold()
                            case 2: run.task.proceed()
                            default: run.task.resume()
                            }
                            if generator.chance(1, in: 8) {
                                run.task.resume()
                                run.task.proceed()
                            }
                            sched_yield()
                        }
                    }
                    let record = await run.end()
                    #expect(record.isSuccess, "seed \(seed): \(String(describing: record.error))")
                    #expect(record.bodyCount == 1 << 20 && record.isPattern, "seed \(seed)")
                }
            },
            ConformanceCase("a failure that occurs while the receiver holds the task is delivered") {
                bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(
                        .head(200, ["Content-Length": "9"]), .send("hello"), .pause(.milliseconds(20)), .reset)
                }
                let run = bench.start(try bench.request()) { event, task in
                    if case .bytes = event { task.hold() }
                }
                _ = await run.receiver.record { $0.bodyCount > 0 }
                await bench.server.counts { $0.openConnections == 0 }
                run.task.proceed()
                #expect(await run.end().error != nil)
            },
        ]
    }
}
