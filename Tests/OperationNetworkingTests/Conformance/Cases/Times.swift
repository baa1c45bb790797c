// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

extension ConformanceCase {
    /// Runs a request and measures its duration.
    private static func timed(
        _ bench: Bench, _ body: RequestBody = .none, _ change: (inout TransferTimeouts) -> Void
    ) async throws -> (record: RecordingReceiver.Record, took: Duration) {
        let request = try bench.request(body.isNone ? "GET" : "POST", body: body) { $0.timeouts = with(.none, change) }
        let start = ContinuousClock.now
        let record = await bench.run(request)
        return (record, start.duration(to: .now))
    }

    /// Starts a request with a limit, lets the limit pass once the record meets the condition, and waits for the end.
    private static func passing(
        _ bench: Bench, until isReached: @escaping @Sendable (RecordingReceiver.Record) -> Bool,
        _ change: (inout TransferTimeouts) -> Void
    ) async throws -> RecordingReceiver.Record {
        let request = try bench.request { $0.timeouts = with(.none, change) }
        let run = bench.start(request)
        let record = await run.receiver.record(where: isReached)
        #expect(record.ends == 0)
        try await bench.passLimit()
        return await run.end()
    }

    /// Expects that the limit was enforced.
    ///
    /// It tolerates delays on a busy machine.
    private static func expectTimeout(
        _ result: (record: RecordingReceiver.Record, took: Duration), after limit: Duration,
        _ phase: NetworkError.Phase, location: SourceLocation = #_sourceLocation
    ) {
        #expect(result.record.error?.code == .timedOut, sourceLocation: location)
        #expect(result.record.error?.phase == phase, sourceLocation: location)
        #expect(result.took >= limit, sourceLocation: location)
        #expect(result.took < limit + .seconds(20), sourceLocation: location)
    }

    /// Pauses a running transfer for longer than each of its limits.
    private static func pause(
        _ bench: Bench, _ stop: @escaping @Sendable (any NetworkTask) -> Void,
        _ goOn: @escaping @Sendable (any NetworkTask) -> Void
    ) async throws {
        let size = 1 << 20
        bench.server.route("/") { _ in .repeating(TestPattern.block, count: size) }
        let limit = bench.passableLimit
        let request = try bench.request {
            $0.timeouts = TransferTimeouts(connect: limit, firstByte: limit, idle: limit, total: limit)
        }
        let isFirst = Locked(true)
        let run = bench.start(request) { event, task in
            guard case .bytes = event, isFirst.withLock({ exchange(&$0, with: false) }) else { return }
            stop(task)
        }
        _ = await run.receiver.record { $0.bodyCount > 0 }
        try await bench.passLimit()
        #expect(run.receiver.record.ends == 0)
        goOn(run.task)
        let record = await run.end()
        #expect(record.isSuccess, "\(String(describing: record.error))")
        #expect(record.bodyCount == size && record.isPattern)
    }

    static var times: [ConformanceCase] {
        [
            ConformanceCase("a server that never responds exceeds the firstByte limit") { bench async throws in
                bench.server.route("/") { _ in .silence }
                expectTimeout(
                    try await timed(bench) { $0.firstByte = .milliseconds(250) }, after: .milliseconds(250),
                    .awaitingResponse)
                await bench.server.counts { $0.openConnections == 0 }
                try await bench.checkHealth()
            },
            ConformanceCase("a limit of less than a second is enforced") { bench async throws in
                bench.server.route("/") { _ in .silence }
                for body in [.none, RequestBody.stream(canBeSentAgain: true) { PieceProducer([0x78], size: 1) }] {
                    // A URLSession needs some time to report that it sent a body.
                    let limit = Duration.milliseconds(body.isNone ? 20 : 500)
                    let result = try await timed(bench, body) { $0.firstByte = limit }
                    expectTimeout(result, after: limit, .awaitingResponse)
                }
            },
            ConformanceCase("a body whose producer stalls exceeds the idle limit") { bench async throws in
                bench.server.route("/") { _ in .silence }
                let stream = RequestBody.stream(canBeSentAgain: true) {
                    ClosureProducer { _, _, call in call == 1 ? .bytes(1) : .notYet }
                }
                let result = try await timed(bench, stream) { $0.idle = .milliseconds(300) }
                #expect(result.record.error?.code == .timedOut && result.took >= .milliseconds(300))
            },
            ConformanceCase("a body that stops arriving exceeds the idle limit") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(.head(200, ["Content-Length": "9"]), .send("hello"), .stallForever)
                }
                let record = try await passing(bench, until: { $0.text == "hello" }) {
                    $0.idle = bench.passableLimit
                }
                #expect(record.error?.code == .timedOut && record.error?.phase == .receiving)
                #expect(record.text == "hello")
                try await bench.checkHealth()
            },
            ConformanceCase("a body that drips indefinitely exceeds the total limit") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(.head(200), .drip(String(repeating: "x", count: 100_000), every: .milliseconds(10)))
                }
                let record = try await passing(bench, until: { $0.bodyCount > 0 }) {
                    $0.total = bench.passableLimit
                }
                #expect(record.error?.code == .timedOut && record.error?.phase == .receiving)
                #expect(record.bodyCount > 0)
            },
            ConformanceCase("headers that drip indefinitely exceed the total limit") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(
                        .drip(
                            "HTTP/1.1 200 OK\r\nX-A: \(String(repeating: "x", count: 100_000))",
                            every: .milliseconds(10))
                    )
                }
                let result = try await timed(bench) { $0.total = .milliseconds(300) }
                #expect(result.record.error?.code == .timedOut)
                #expect(result.took < .seconds(20))
            },
            ConformanceCase("a slow body that keeps arriving does not exceed the idle limit") { bench async throws in
                bench.server.route("/") { _ in
                    LoopbackAnswer(
                        .head(200, ["Content-Length": "20"]), .drip("01234567890123456789", every: .milliseconds(120)))
                }
                let result = try await timed(bench) { $0.idle = .seconds(2) }
                #expect(result.record.text == "01234567890123456789")
                #expect(result.took >= .seconds(2))
            },
            ConformanceCase(
                "an upload that stalls exceeds the idle limit",
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
            ConformanceCase("waiting for a slot does not count toward the limits") { bench async throws in
                let gate = Gate()
                bench.server.route("/busy") { _ in .text("busy").after(gate) }
                bench.server.route("/") { _ in .text("hello") }
                // These requests occupy all slots of the host.
                let busy = try (0..<6).map { _ in
                    bench.start(try bench.request("GET", "/busy") { $0.timeouts = .none })
                }
                _ = await bench.server.heads(atLeast: 6)
                let limit = bench.passableLimit
                let waiting = try (0..<4).map { _ in
                    bench.start(
                        try bench.request {
                            $0.timeouts = TransferTimeouts(connect: limit, firstByte: limit, idle: limit, total: limit)
                        })
                }
                try await bench.passLimit()
                #expect(waiting.allSatisfy { $0.receiver.record.ends == 0 })
                gate.open()
                for run in busy + waiting { #expect(await run.end().isSuccess) }
            },
            ConformanceCase("no limit counts down while a task is suspended") { bench async throws in
                try await pause(bench, { $0.suspend() }, { $0.resume() })
            },
            ConformanceCase("no limit counts down while the receiver holds the task") { bench async throws in
                try await pause(bench, { $0.hold() }, { $0.proceed() })
            },
            ConformanceCase("the largest possible limits never expire") { bench async throws in
                bench.server.route("/") { _ in .text("hello") }
                let far = Duration.seconds(Int64.max)
                let result = try await timed(bench) {
                    $0 = TransferTimeouts(connect: far, firstByte: far, idle: far, total: far)
                }
                #expect(result.record.text == "hello")
            },
            ConformanceCase("limits of one nanosecond expire without a crash") { bench async throws in
                bench.server.route("/") { _ in .text("hello") }
                let near = Duration.nanoseconds(1)
                let result = try await timed(bench) {
                    $0 = TransferTimeouts(connect: near, firstByte: near, idle: near, total: near)
                }
                #expect(result.record.error?.code == .timedOut)
                try await bench.checkHealth()
            },
            ConformanceCase(
                "a connection that the server never accepts exceeds the connect limit",
                options: {
                    $0.accepts = false
                    $0.backlog = 0
                }
            ) { bench async throws in
                // The system accepts a few connections automatically. Requests on them receive no response.
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
