// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

extension ConformanceCase {
    /// Runs a request and tells how long it took.
    private static func timed(
        _ bench: Bench, _ change: (inout TransferTimeouts) -> Void
    ) async throws -> (record: RecordingReceiver.Record, took: Duration) {
        let request = try bench.request { options in
            options.timeouts = .none
            change(&options.timeouts)
        }
        let start = ContinuousClock.now
        let record = await bench.run(request)
        return (record, start.duration(to: .now))
    }

    /// That a limit was kept, on a machine which may be busy.
    private static func expectTimeout(
        _ result: (record: RecordingReceiver.Record, took: Duration), after limit: Duration,
        _ phase: NetworkError.Phase, location: SourceLocation = #_sourceLocation
    ) {
        #expect(result.record.error?.code == .timedOut, sourceLocation: location)
        #expect(result.record.error?.phase == phase, sourceLocation: location)
        #expect(result.took >= limit, sourceLocation: location)
        #expect(result.took < limit + .seconds(3), sourceLocation: location)
    }

    static var times: [ConformanceCase] {
        [
            ConformanceCase("a server that never answers exceeds the limit for the first byte") { bench async throws in
                bench.server.route("/") { _ in .silence }
                expectTimeout(
                    try await timed(bench) { $0.firstByte = .milliseconds(250) }, after: .milliseconds(250),
                    .awaitingResponse)
                await bench.server.counts { $0.openConnections == 0 }
                try await bench.checkHealth()
            },
            ConformanceCase("a limit of less than a second is kept as it is") { bench async throws in
                bench.server.route("/") { _ in .silence }
                let result = try await timed(bench) { $0.firstByte = .milliseconds(20) }
                expectTimeout(result, after: .milliseconds(20), .awaitingResponse)
            },
            ConformanceCase("a body that stops exceeds the limit for silence") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(.head(200, ["Content-Length": "9"]), .send("hello"), .stallForever)
                }
                let result = try await timed(bench) { $0.idle = .milliseconds(200) }
                expectTimeout(result, after: .milliseconds(200), .receiving)
                #expect(result.record.text == "hello")
                try await bench.checkHealth()
            },
            ConformanceCase("a body that drips for ever exceeds the limit of the whole") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(.head(200), .drip(String(repeating: "x", count: 100_000), every: .milliseconds(10)))
                }
                let result = try await timed(bench) {
                    $0.idle = .seconds(5)
                    $0.total = .milliseconds(300)
                }
                expectTimeout(result, after: .milliseconds(300), .receiving)
                #expect(result.record.bodyCount > 0)
            },
            ConformanceCase("a head that drips for ever exceeds the limit of the whole") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(
                        .drip(
                            "HTTP/1.1 200 OK\r\nX-A: \(String(repeating: "x", count: 100_000))",
                            every: .milliseconds(10))
                    )
                }
                let result = try await timed(bench) { $0.total = .milliseconds(300) }
                #expect(result.record.error?.code == .timedOut)
                #expect(result.took < .seconds(3))
            },
            ConformanceCase("a body that is slow but moves is no silence") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(
                        .head(200, ["Content-Length": "20"]), .drip("01234567890123456789", every: .milliseconds(30)))
                }
                let result = try await timed(bench) { $0.idle = .milliseconds(400) }
                #expect(result.record.text == "01234567890123456789")
                #expect(result.took >= .milliseconds(500))
            },
            ConformanceCase(
                "an upload that comes to a halt exceeds the limit for silence",
                options: { $0.receiveBufferSize = 8_192 }
            ) { bench async throws in
                bench.server.routeEarly("/") { _ in LoopbackAnswer(.stopReading, .stallForever) }
                let request = try bench.request("POST", body: .data(Data(count: 30 << 20))) { options in
                    options.timeouts = .none
                    options.timeouts.idle = .milliseconds(300)
                }
                let record = await bench.run(request)
                #expect(record.error?.code == .timedOut)
                #expect(record.error?.phase == .sending)
                bench.server.endConnections()
            },
            ConformanceCase("the wait for a turn does not count") { bench async throws in
                bench.server.route("/") { _ in .text("hello").after(.milliseconds(60)) }
                let runs = try (0..<60).map { _ in
                    bench.start(
                        try bench.request {
                            $0.timeouts = TransferTimeouts(
                                connect: .seconds(2), firstByte: .milliseconds(500), total: .milliseconds(550))
                        })
                }
                for run in runs { #expect(await run.end().isSuccess) }
            },
            ConformanceCase("no limit runs while a task is suspended") { bench async throws in
                bench.server.route("/") { _ in .repeating(TestPattern.block, count: 4 << 20) }
                let request = try bench.request {
                    $0.timeouts = TransferTimeouts(
                        connect: .seconds(2), firstByte: .milliseconds(250), idle: .milliseconds(250),
                        total: .milliseconds(900))
                }
                let isFirst = Locked(true)
                // From within, for on a busy machine the body would be complete before anybody else could say so.
                let run = bench.start(request) { event, task in
                    guard case .bytes = event,
                        isFirst.withLock({ was in
                            defer { was = false }; return was
                        })
                    else { return }
                    task.suspend()
                }
                _ = await run.receiver.record { $0.bodyCount > 0 }
                try await Task.sleep(for: Rounds.isSoak ? .seconds(10) : .milliseconds(1_200))
                #expect(run.receiver.record.ends == 0)
                run.task.resume()
                let record = await run.end()
                #expect(record.isSuccess, "\(String(describing: record.error))")
                #expect(record.bodyCount == 4 << 20 && record.isPattern)
            },
            ConformanceCase("no limit runs while the receiver holds the task") { bench async throws in
                bench.server.route("/") { _ in .repeating(TestPattern.block, count: 4 << 20) }
                let request = try bench.request {
                    $0.timeouts = TransferTimeouts(
                        connect: .seconds(2), firstByte: .milliseconds(250), idle: .milliseconds(250),
                        total: .milliseconds(900))
                }
                let isFirst = Locked(true)
                let run = bench.start(request) { event, task in
                    guard case .bytes = event,
                        isFirst.withLock({ was in
                            defer { was = false }; return was
                        })
                    else { return }
                    task.hold()
                }
                _ = await run.receiver.record { $0.bodyCount > 0 }
                try await Task.sleep(for: .milliseconds(1_200))
                run.task.proceed()
                let record = await run.end()
                #expect(record.isSuccess, "\(String(describing: record.error))")
                #expect(record.bodyCount == 4 << 20 && record.isPattern)
            },
            ConformanceCase("a limit as large as numbers go is none") { bench async throws in
                bench.server.route("/") { _ in .text("hello") }
                let far = Duration.seconds(Int64.max)
                let result = try await timed(bench) {
                    $0 = TransferTimeouts(connect: far, firstByte: far, idle: far, total: far)
                }
                #expect(result.record.text == "hello")
            },
            ConformanceCase("limits as small as numbers go are exceeded, and no trap") { bench async throws in
                bench.server.route("/") { _ in .text("hello") }
                let near = Duration.nanoseconds(1)
                let result = try await timed(bench) {
                    $0 = TransferTimeouts(connect: near, firstByte: near, idle: near, total: near)
                }
                #expect(result.record.error?.code == .timedOut)
                try await bench.checkHealth()
            },
            ConformanceCase(
                "a connection that is never taken exceeds a limit",
                options: {
                    $0.accepts = false
                    $0.backlog = 0
                }
            ) { bench async throws in
                // The system takes a few by itself; those have a connection, and no answer.
                let runs = try (0..<6).map { _ in
                    bench.start(
                        try bench.request {
                            $0.timeouts = TransferTimeouts(connect: .milliseconds(400), firstByte: .milliseconds(400))
                        })
                }
                var phases: Set<NetworkError.Phase> = []
                for run in runs {
                    let error = await run.end().error
                    #expect(error?.code == .timedOut)
                    if let error { phases.insert(error.phase) }
                }
                #expect(phases.contains(.connecting))
            },
        ]
    }
}
