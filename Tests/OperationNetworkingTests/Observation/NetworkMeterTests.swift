// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationExporters
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Counters and histograms of network operations", .timeLimit(.minutes(3)))
struct NetworkMeterTests {
    private func event(
        _ kind: NetworkEvent.Kind, _ url: String = "http://example.com/path", method: String = "GET",
        _ fill: (inout NetworkEvent) -> Void = { _ in }
    ) throws -> NetworkEvent {
        var event = NetworkEvent(kind)
        event.request = try NetworkRequest(method, url: try #require(URL(string: url)))
        fill(&event)
        return event
    }

    @Test func `operations, attempts, retries, bytes and operations in flight are counted`() async throws {
        let bench = try OperationBench { _ in .redirect(to: "/there") }, meter = NetworkMeter(), log = EventLog(),
            gate = Gate()
        bench.server.route("GET", "/there") { _ in .text("Hello") }
        bench.server.route("PUT", "/flaky") { $0.number < 5 ? .status(503) : .text("done") }
        bench.server.route("GET", "/slow") { _ in .text("late").after(gate) }
        func observed<Kind: AnyNetworkOperation>(_ operation: Kind) -> Kind {
            operation.addNetworkObserver(meter)
            operation.addNetworkObserver(log)
            return operation
        }
        let queue = QueueManager("the \"main\"\\queue\n", width: 4)
        meter.watch(queue)
        meter.watch(queue)
        let slow = observed(bench.text("/slow"))
        try queue.add(slow)
        _ = await bench.server.heads(atLeast: 1)
        var shown = try Exposition(meter.text)
        #expect(shown.sum("operationkit_operations_in_flight") == 1)
        #expect(shown.sum("operationkit_attempts_in_flight") == 1)
        let label = ["queue": queue.name]
        #expect(shown.sum("operationkit_queue_operations", label) == 1)
        gate.open()
        #expect(try await observed(bench.text()).run() == "Hello")
        let flaky = observed(bench.upload("/flaky", method: "PUT", body: .data(Data("twelve bytes".utf8))))
        flaky.retry = Retry(backoff: .constant(.zero), throttledBackoff: .constant(.zero))
        #expect(try await flaky.run().utf8.count == 4)
        #expect(await failure(of: observed(bench.text("/nowhere")))?.status == 404)
        let notBegun = observed(bench.text())
        notBegun.cancel()
        await log.ended(5)
        await queue.drained()
        shown = try Exposition(meter.text)
        let host = "127.0.0.1:\(bench.server.port)"
        #expect(shown.sum("operationkit_operations_started_total") == 4)
        #expect(shown.sum("operationkit_operations_in_flight") == 0)
        #expect(shown.sum("operationkit_attempts_in_flight") == 0)
        #expect(shown.sum("operationkit_operations_ended_total", ["outcome": "success", "host": host]) == 3)
        #expect(shown.sum("operationkit_operations_ended_total", ["outcome": "failure", "status": "4xx"]) == 1)
        #expect(shown.sum("operationkit_operations_ended_total", ["outcome": "unbegun"]) == 1)
        let attempts = shown.sum("operationkit_attempts_total", ["method": "PUT"])
        #expect(shown.sum("operationkit_retries_total", ["reason": "mayPass"]) == attempts - 1 && attempts > 1)
        #expect(shown.sum("operationkit_sent_body_bytes_total", ["host": host]) == 12 * attempts)
        #expect(shown.sum("operationkit_received_body_bytes_total") >= 13)
        #expect(shown.sum("operationkit_operation_duration_seconds_count") == 4)
        #expect(shown.sum("operationkit_time_to_first_byte_seconds_count") == 3 + attempts)
        #expect(shown.sum("operationkit_queue_operations") == 0)
        #expect(shown.sum("operationkit_queue_ended_total", ["queue": queue.name, "outcome": "success"]) == 1)
        #expect(meter.samples.count == shown.lines.count)
    }

    @Test func `refreshes and waits are counted`() async throws {
        let tokens = try TokenBench(), meter = NetworkMeter(), log = EventLog()
        let told = EventRecorder<AuthenticationEvent>()
        let itself = Shared<Authenticator<String>?>(nil)
        let authenticator = tokens.authenticator(
            change: { options in
                options.eventHandler = { event in
                    meter.note(event)
                    told.record(event)
                }
            },
            refresh: {
                // The refresh ends only when the operation waits for it.
                await until { itself.value?.postponedCount == 1 }
                return "new"
            })
        itself.value = authenticator
        let operation = tokens.operation(authenticator)
        operation.addNetworkObserver(meter)
        operation.addNetworkObserver(log)
        #expect(try await operation.run() == "Hello")
        await log.ended()
        await until { told.events.count { $0.kind == .credentialCame } == 2 }
        let shown = try Exposition(meter.text)
        // The first credential was set explicitly.
        for outcome in ["began", "success", "set"] {
            #expect(shown.sum("operationkit_refreshes_total", ["outcome": outcome]) == 1, "\(outcome)")
        }
        #expect(shown.sum("operationkit_waits_total", ["reason": "credential"]) == 1)
        itself.value = nil
    }

    @Test func `the number of lines is limited for any number of hosts and methods, and contains no path`() throws {
        var options = NetworkMeter.Options()
        options.hostLimit = 10
        options.prefix = "9 my-app"
        let meter = NetworkMeter(options)
        for number in 0..<1_000 {
            let ended = try event(.attemptEnded, "http://h\(number).example/secret/\(number)?q=1", method: "M\(number)")
            {
                $0.ending = .success
            }
            meter.observe(try event(.attemptBegan))
            meter.observe(ended)
        }
        let shown = try Exposition(meter.text)
        let name = "_9_my_app_attempts_total"
        #expect(shown.lines.filter { $0.name == name }.count == 11)
        #expect(shown.sum(name, ["host": "other", "method": "other"]) == 990)
        #expect(shown.sum(name) == 1_000)
        #expect(!meter.text.contains("secret") && !meter.text.contains("M7"))
    }

    @Test func `durations are sorted into buckets, and invalid bounds are ignored`() throws {
        var options = NetworkMeter.Options()
        options.buckets = [1, .nan, 0.1, .infinity, -1, 0.1, 1e-7]
        let meter = NetworkMeter(options)
        for milliseconds in [50, 100, 101, 1_000, 5_000, -3] {
            meter.observe(
                try event(.operationEnded) {
                    ($0.ending, $0.sinceOperationBegan) = (.success, .milliseconds(milliseconds))
                })
        }
        let shown = try Exposition(meter.text)
        let name = "operationkit_operation_duration_seconds"
        let buckets = shown.lines.filter { $0.name == name + "_bucket" }
        #expect(buckets.map { $0.labels["le"] } == ["1e-07", "0.1", "1", "+Inf"])
        #expect(buckets.map(\.value) == [1, 3, 5, 6])
        #expect(abs(shown.sum(name + "_sum") - 6.251) < 1e-9)
        options.buckets = []
        let plain = NetworkMeter(options)
        plain.observe(try event(.responded) { $0.sinceSending = .seconds(1) })
        #expect(try Exposition(plain.text).lines.contains { $0.labels["le"] == "+Inf" && $0.value == 1 })
    }

    @Test func `a new queue is counted even if it has the address of a released queue`() throws {
        let meter = NetworkMeter()
        for number in 0..<50 {
            do { meter.watch(QueueManager("gone", width: 1)) }
            let queue = QueueManager("queue \(number)", width: 1)
            meter.watch(queue)
            #expect(meter.samples.contains { $0.labels.contains { $0.name == "queue" && $0.value == queue.name } })
        }
        #expect(!meter.samples.contains { $0.labels.contains { $0.name == "queue" && $0.value == "gone" } })
    }

    @Test func `the counts of a released queue are kept, and queues of the same name are added up`() async throws {
        let meter = NetworkMeter()
        func run(_ count: Int, in queue: QueueManager) async throws {
            for _ in 0..<count { try queue.add(ClosureOperation { 1 }) }
            await queue.drained()
        }
        func ended(_ meter: NetworkMeter, _ name: String = "downloads") throws -> Double {
            try Exposition(meter.text).sum("operationkit_queue_ended_total", ["queue": name, "outcome": "success"])
        }
        let last = QueueManager("downloads", width: 1)
        weak var gone: QueueManager?
        do {
            let first = QueueManager("downloads", width: 1)
            gone = first
            meter.watch(first)
            meter.watch(last)
            try await run(10, in: first)
            try await run(5, in: last)
            #expect(try ended(meter) == 15)
        }
        while gone != nil { await Task.yield() }
        #expect(try ended(meter) == 15)
        try await run(1, in: last)
        #expect(try ended(meter) == 16)
        let options = with(NetworkMeter.Options()) { $0.queueLimit = 2 }
        let bounded = NetworkMeter(options)
        let queues = (0..<5).map { QueueManager("queue \($0)", width: 1) }
        for queue in queues {
            bounded.watch(queue)
            try await run(1, in: queue)
        }
        #expect(try ended(bounded, "queue 1") == 1 && ended(bounded, "other") == 3)
        #expect(try Exposition(bounded.text).sum("operationkit_queue_ended_total") == 5)
    }

    @Test func `failed attempts are counted by error code, for a limited number of codes`() throws {
        let meter = NetworkMeter()
        for code in [NetworkError.Code.timedOut, .timedOut, .notConnected] {
            meter.observe(
                try event(.attemptEnded) {
                    $0.ending = .failure
                    $0.error = NetworkError(code: code, phase: .connecting, message: "No.")
                })
        }
        meter.observe(try event(.attemptEnded) { $0.ending = .success })
        let shown = try Exposition(meter.text), name = "operationkit_attempts_total"
        #expect(shown.sum(name, ["code": "timedOut"]) == 2 && shown.sum(name, ["code": "notConnected"]) == 1)
        #expect(shown.sum(name, ["code": "none", "outcome": "success"]) == 1)
        for number in 0..<1_000 {
            meter.observe(
                try event(.attemptEnded) {
                    $0.ending = .failure
                    $0.error = NetworkError(code: .init("own\(number)"), phase: .connecting, message: "No.")
                })
        }
        let lines = try Exposition(meter.text).lines.filter { $0.name == name }
        #expect(lines.count <= 102 && lines.contains { $0.labels["code"] == "other" && $0.value > 800 })
    }

    #if os(Linux) || os(macOS)
        private static let tool = ["/usr/bin/promtool", "/usr/local/bin/promtool", "/opt/homebrew/bin/promtool"].first {
            FileManager.default.isExecutableFile(atPath: $0)
        }

        @Test(.enabled(if: tool != nil, "promtool is not installed: the text was not looked at by Prometheus itself"))
        func `the tool of Prometheus accepts the output without a warning`() async throws {
            let meter = NetworkMeter(), queue = QueueManager("a \"queue\"\n\\", width: 1)
            meter.watch(queue)
            for kind in [NetworkEvent.Kind.operationBegan, .attemptBegan, .responded, .attemptEnded, .operationEnded] {
                meter.observe(
                    try event(kind) {
                        ($0.sinceSending, $0.sinceOperationBegan) = (.milliseconds(3), .seconds(2))
                        ($0.ending, $0.metrics) = (.success, TransferMetrics())
                    })
            }
            meter.observe(try event(.decided) { $0.decision = AttemptPolicyDecision(.again(after: .zero)) })
            let (tool, text) = (try #require(Self.tool), meter.text)
            try await TestThread.run {
                let process = Process(), (input, output) = (Pipe(), Pipe())
                process.executableURL = URL(fileURLWithPath: tool)
                process.arguments = ["check", "metrics"]
                (process.standardInput, process.standardOutput, process.standardError) = (input, output, output)
                try process.run()
                try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
                try input.fileHandleForWriting.close()
                let said = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
                process.waitUntilExit()
                #expect(process.terminationStatus == 0 && said.isEmpty, "\(said)")
            }
            withExtendedLifetime(queue) {}
        }
    #endif

    @Test func `no count is lost with many threads`() async throws {
        let meter = NetworkMeter()
        let event = try event(.attemptBegan)
        try await TestThread.run {
            DispatchQueue.concurrentPerform(iterations: 8) { _ in
                for _ in 0..<1_000 { meter.observe(event) }
            }
        }
        #expect(try Exposition(meter.text).sum("operationkit_attempts_in_flight") == 8_000)
    }
}
