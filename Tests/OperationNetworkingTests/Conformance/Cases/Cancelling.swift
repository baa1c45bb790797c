// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

extension ConformanceCase {
    /// Cancels the task in the receiver at the first matching event.
    private static func cancelled(
        _ name: String, _ answer: LoopbackAnswer, body: RequestBody = .none,
        at fits: @escaping @Sendable (RecordingReceiver.Event) -> Bool
    ) -> ConformanceCase {
        ConformanceCase(name) { bench async throws in
            bench.server.routeEarly("/") { _ in answer }
            let late = Locked<(isCancelled: Bool, bodyParts: Int)>((false, 0))
            let record = await bench.run(try bench.request(body.isNone ? "GET" : "POST", body: body)) { event, task in
                late.withLock { late in
                    guard late.isCancelled, case .bytes = event else { return }
                    late.bodyParts += 1
                }
                guard fits(event) else { return }
                task.cancel()
                late.withLock { $0.isCancelled = true }
            }
            #expect(record.error?.code == .cancelled)
            // URLSession may still deliver bytes that it received before the cancellation.
            #expect(bench.kind == .urlSession || late.withLock { $0.bodyParts } == 0)
            await bench.server.counts { $0.openConnections == 0 }
            try await bench.checkHealth()
        }
    }

    private static let stalling = LoopbackAnswer(
        .head(103, ["Link": "<a>"]), .head(200, ["Content-Length": "9"]), .send("hello"), .stallForever)

    /// Cancels most of many tasks at random moments.
    ///
    /// The other tasks receive the complete response.
    private static func racing(
        _ name: String, _ text: String, _ answer: @escaping @Sendable () -> LoopbackAnswer
    ) -> ConformanceCase {
        ConformanceCase(name) { bench async throws in
            bench.server.route("/") { _ in answer() }
            let rounds = Rounds.count(ci: 1_000, soak: 100_000)
            var generator = SeededGenerator(seed: Rounds.firstSeed)
            var running: [Bench.Running] = []
            for _ in 0..<rounds {
                running.append(bench.start(try bench.request()))
                if running.count == 32 {
                    running.shuffle(using: &generator)
                    for run in running.prefix(24) { run.task.cancel() }
                    for run in running {
                        let record = await run.end()
                        #expect(record.error == nil || record.error?.code == .cancelled)
                        if record.error == nil { #expect(record.text == text) }
                    }
                    running = []
                }
            }
            for run in running { await run.end() }
            try await bench.checkHealth()
        }
    }

    static var cancelling: [ConformanceCase] {
        [
            ConformanceCase("a task canceled before it started ends with an error and sends nothing") {
                bench in
                let receiver = RecordingReceiver()
                let task = bench.session.makeTask(with: try bench.request(), receiver: receiver)
                task.cancel()
                task.cancel()
                task.resume()
                let record = await receiver.end()
                #expect(record.error?.code == .cancelled)
                #expect(record.error?.isUnsent == true)
                try await bench.checkHealth()
                #expect(bench.server.counts.heads == 1)
                #expect(receiver.record.ends == 1 && receiver.record.faults == [])
            },
            ConformanceCase("a task that is never started releases its receiver") { bench async throws in
                let objects = LiveObjects()
                do {
                    let task = bench.session.makeTask(
                        with: try bench.request(), receiver: objects.track(RecordingReceiver()))
                    task.suspend()
                }
                #expect(objects.count == 0)
                try await bench.checkHealth()
            },
            ConformanceCase("an ended task releases its receiver although the task itself is still retained") {
                bench async throws in
                bench.server.route("/") { _ in .text("hello") }
                let objects = LiveObjects(), ended = Gate()
                let task = bench.session.makeTask(
                    with: try bench.request(),
                    receiver: objects.track(RecordingReceiver { event, _ in if case .end = event { ended.open() } }))
                task.resume()
                await ended.passage()
                #expect(try await TestThread.run { objects.countAtRest() } == 0)
                task.cancel()
            },
            ConformanceCase("tasks canceled while they wait for a slot send nothing") { bench async throws in
                let gate = Gate()
                bench.server.route("/") { _ in .text("hello").after(gate) }
                let runs = try (0..<100).map { _ in bench.start(try bench.request()) }
                await bench.server.counts { $0.heads >= 6 }
                for run in runs.dropFirst(6) { run.task.cancel() }
                for run in runs.dropFirst(6) { #expect(await run.end().error?.code == .cancelled) }
                gate.open()
                for run in runs.prefix(6) { #expect(await run.end().isSuccess) }
                #expect(bench.server.counts.heads == 6)
                try await bench.checkHealth()
            },
            ConformanceCase("canceling a task that awaits its response closes the connection") {
                bench async throws in
                bench.server.route("/") { _ in .silence }
                let run = bench.start(try bench.request())
                _ = await bench.server.requests(atLeast: 1)
                run.task.cancel()
                run.task.cancel()
                let error = await run.end().error
                #expect(error?.code == .cancelled && error?.phase == .awaitingResponse && error?.isUnsent == false)
                await bench.server.counts { $0.openConnections == 0 }
                #expect(bench.server.counts.abandoned == 1)
                try await bench.checkHealth()
            },
            ConformanceCase("canceling a task during its upload ends it", options: { $0.receiveBufferSize = 8_192 }) {
                bench in
                bench.server.routeEarly("/") { _ in
                    LoopbackAnswer(.awaitBody(atLeast: 100_000), .stopReading, .stallForever)
                }
                let run = bench.start(try bench.request("POST", body: .data(Data(count: 20 << 20))))
                await bench.server.counts { $0.bodyBytes >= 100_000 }
                run.task.cancel()
                #expect(await run.end().error?.code == .cancelled)
                bench.server.endConnections()
                try await bench.checkHealth()
            },
            withNoContent("canceling a task ends it, even if its body producer has no bytes") { bench async throws in
                let waker = Locked<BodyWaker?>(nil)
                let body = RequestBody.stream(canBeSentAgain: false) {
                    ClosureProducer { _, new, _ in
                        waker.withLock { $0 = new }
                        return .notYet
                    }
                }
                let run = bench.start(try bench.request("POST", body: body))
                await bench.server.counts { $0.heads == 1 }
                run.task.cancel()
                #expect(await run.end().error?.code == .cancelled)
                waker.withLock { $0 }?.wake()
                try await bench.checkHealth()
            },
            ConformanceCase("canceling a suspended task ends it") { bench async throws in
                bench.server.route("/") { _ in stalling }
                let run = bench.start(try bench.request())
                _ = await run.receiver.record { $0.bodyCount > 0 }
                run.task.suspend()
                run.task.cancel()
                #expect(await run.end().error?.code == .cancelled)
                await bench.server.counts { $0.openConnections == 0 }
            },
            ConformanceCase("canceling a task ends it, even while the receiver holds the task") { bench async throws in
                bench.server.route("/") { _ in .repeating(TestPattern.block, count: 50 << 20) }
                let run = bench.start(try bench.request()) { event, task in
                    if case .bytes = event { task.hold() }
                }
                _ = await run.receiver.record { $0.bodyCount > 0 }
                run.task.cancel()
                #expect(await run.end().error?.code == .cancelled)
                await bench.server.counts { $0.openConnections == 0 }
            },
            ConformanceCase("canceling a task after its end has no effect") { bench async throws in
                bench.server.route("/") { _ in .text("hello") }
                let run = bench.start(try bench.request())
                #expect(await run.end().isSuccess)
                run.task.cancel()
                run.task.cancel()
                run.task.resume()
                run.task.suspend()
                try await bench.checkHealth()
                #expect(run.receiver.record.isSuccess)
            },
            cancelled("a receiver can cancel its task when informational headers arrive", stalling) {
                if case .informational = $0 { true } else { false }
            },
            cancelled(
                "a receiver can cancel its task when headers arrive", stalling
            ) { if case .head = $0 { true } else { false } },
            cancelled("a receiver can cancel its task when body bytes arrive", stalling) {
                if case .bytes = $0 { true } else { false }
            },
            cancelled(
                "a receiver can cancel its task when upload progress is reported",
                LoopbackAnswer(.awaitBody, .stallForever),
                body: .data(Data(count: 30 << 20))
            ) { if case .sent = $0 { true } else { false } },
            ConformanceCase("a task canceled when body bytes arrive delivers no further bytes") { bench async throws in
                bench.server.route("/") { _ in .repeating(TestPattern.block, count: 1 << 20) }
                let deliveries = Locked(0)
                let record = await bench.run(try bench.request()) { event, task in
                    guard case .bytes = event else { return }
                    deliveries.withLock { $0 += 1 }
                    task.cancel()
                }
                #expect(record.error?.code == .cancelled)
                #expect(deliveries.withLock { $0 } == 1)
            },
            ConformanceCase("after cancel returns, a task delivers only its end") { bench async throws in
                bench.server.route("/") { _ in .repeating(TestPattern.block, count: 1 << 30) }
                for _ in 0..<Rounds.count(ci: 50, soak: 5_000) {
                    let afterwards = Locked<(isCancelled: Bool, events: Int)>((false, 0))
                    let run = bench.start(try bench.request()) { event, _ in
                        afterwards.withLock { state in
                            switch event {
                            case .end, .metrics: break
                            default: if state.isCancelled { state.events += 1 }
                            }
                        }
                    }
                    _ = await run.receiver.record { $0.bodyCount > 0 }
                    run.task.cancel()
                    // One call may have begun before the cancellation, so one event is allowed.
                    afterwards.withLock { $0.isCancelled = true }
                    #expect(await run.end().error?.code == .cancelled)
                    #expect(afterwards.withLock { $0.events } <= 1)
                }
            },
            racing("cancel races with a chunked response and its trailers, and each task ends once", "helloworld") {
                .chunks(["hello", "world"], trailers: ["X-A": "b"])
            },
            racing("cancel races with a chunked response, and each task ends once", "helloworld") {
                .chunks(["hello", "world"])
            },
            racing("cancel races with a redirect, and each task ends once", "") { .redirect(to: "/next") },
            racing("cancel races with a challenge, and each task ends once", "why") {
                .text("why", status: 401).with("WWW-Authenticate", "Basic realm=\"a\"")
            },
        ]
    }
}
