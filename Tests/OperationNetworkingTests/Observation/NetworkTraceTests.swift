// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationExporters
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Timeline of network operations", .timeLimit(.minutes(3)))
struct NetworkTraceTests {
    /// A line of a trace.
    private struct Line: Decodable {
        let name: String
        let ph: String
        let cat: String?
        let ts: Double?
        let dur: Double?
        let pid: Int
        let tid: Int
        let id: Int?
        let args: [String: String]?

        var end: Double { (ts ?? 0) + (dur ?? 0) }
    }

    private struct Lines: Decodable { let traceEvents: [Line] }

    private func lines(_ data: Data) throws -> [Line] {
        try JSONDecoder().decode(Lines.self, from: data).traceEvents
    }

    /// Checks that spans of a track are nested or separate, and returns the enclosing names for each span.
    private func nesting(_ lines: [Line]) -> [String: [[String]]] {
        var result: [String: [[String]]] = [:]
        let stretches = lines.filter { $0.ph == "X" }
        for (_, track) in Dictionary(grouping: stretches, by: { [$0.pid, $0.tid] }) {
            var around: [Line] = []
            // In the order of a viewer, which is that of the start times, and then that of the file.
            for line in track.enumerated().sorted(by: {
                ($0.element.ts ?? 0, $0.offset) < ($1.element.ts ?? 0, $1.offset)
            }) {
                let line = line.element
                while let last = around.last, last.end <= line.ts ?? 0 { around.removeLast() }
                #expect(line.dur ?? -1 >= 0)
                for outer in around {
                    #expect(line.end <= outer.end, "\(line.name) ends after \(outer.name)")
                    // The margin is for readers that truncate fractions.
                    #expect((line.ts ?? 0) - (outer.ts ?? 0) > 0.005 && outer.end - line.end > 0.005)
                }
                result[line.name, default: []].append(around.map(\.name))
                around.append(line)
            }
        }
        return result
    }

    @Test("In the trace of a queue, operations contain their attempts, and attempts contain their phases")
    func joined() async throws {
        let bench = try OperationBench(), trace = NetworkTrace()
        let count = Locked(0)
        bench.server.route("GET", "/") { _ in
            let number = count.next()
            return number == 1 ? .status(503) : .redirect(to: "/there?token=S3CRET")
        }
        bench.server.route("GET", "/there") { _ in .text("Hello").after(.milliseconds(5)) }
        let queue = QueueManager("photos", width: 2)
        queue.recording = QueueRecording()
        let operation = bench.text().named("greeting")
        operation.addNetworkObserver(trace)
        operation.retry = Retry(backoff: .constant(.milliseconds(2)), throttledBackoff: .constant(.milliseconds(2)))
        let other = bench.text("/there").named("other")
        other.addNetworkObserver(trace)
        try queue.add([operation, other])
        await queue.drained()
        let lines = try lines(trace.chromeTrace(with: queue.record))
        let nesting = nesting(lines)
        #expect(nesting["greeting"] == [[]] && nesting["other"] == [[]])
        #expect(nesting["attempt 1"]?.sorted { $0[0] < $1[0] } == [["greeting"], ["other"]])
        #expect(nesting["attempt 2"] == [["greeting"]], "\(bench.server.requests.map { "\($0)" })")
        #expect(nesting["waiting: pause"] == [["greeting"]])
        let there = "GET \(bench.server.url("/there"))?token=***"
        #expect(nesting[there] == [["greeting", "attempt 2"]])
        #expect(nesting["wait"]?.contains(["greeting", "attempt 2", there]) == true, "\(nesting)")
        for phase in ["receive", "queued"] { #expect(nesting[phase] != nil, "\(phase)") }
        #expect(lines.filter { $0.ph == "X" }.allSatisfy { $0.pid == 1 })
        let attempt = lines.first { $0.name == "attempt 1" && $0.args?["status"] == "503" }
        #expect(attempt?.args?["error"] == "unacceptableStatus" && attempt?.args?["ended"] == "failure")
        #expect(!String(decoding: try trace.chromeTrace(), as: UTF8.self).contains("S3CRET"))
    }

    @Test
    func `without a queue, operations have their own tracks, and concurrent operations different ones`() async throws {
        let bench = try OperationBench(), trace = NetworkTrace(), log = EventLog(), gate = Gate()
        bench.server.route("GET", "/*") { _ in .text("Hello").after(gate) }
        let operations = (0..<3).map { bench.text("/\($0)") }
        for operation in operations {
            operation.addNetworkObserver(trace)
            operation.addNetworkObserver(log)
            operation.start()
        }
        _ = await bench.server.requests(atLeast: 3)
        #expect(Set(try lines(trace.chromeTrace()).filter { $0.ph == "X" }.map(\.tid)).count == 3)
        #expect(operations[0].suspend())
        #expect(operations[0].resume())
        operations[1].cancel()
        gate.open()
        await log.ended(3)
        let after = bench.text("/after")
        after.addNetworkObserver(trace)
        after.addNetworkObserver(log)
        #expect(try await after.run() == "Hello")
        await log.ended(4)
        let lines = try lines(trace.chromeTrace())
        _ = nesting(lines)
        let stretches = lines.filter { $0.cat == "operation" && $0.ph == "X" }
        #expect(stretches.count == 4 && Set(stretches.map(\.tid)).count == 3)
        #expect(stretches.contains { $0.args?["ended"] == "cancelled" })
        #expect(lines.count { $0.ph == "i" } == 2)
    }

    @Test func `two queues have two processes with separate tracks, and the limit is respected`() async throws {
        let bench = try OperationBench(), trace = NetworkTrace(limit: 3)
        bench.server.route("GET", "/*") { _ in .text("Hello") }
        let queues = ["one", "two"].map { QueueManager($0, width: 1) }
        for queue in queues { queue.recording = QueueRecording() }
        for number in 0..<8 {
            let operation = bench.text("/\(number)")
            operation.addNetworkObserver(trace)
            try queues[number % 2].add(operation)
        }
        for queue in queues { await queue.drained() }
        #expect(trace.forgottenCount == 5)
        let lines = try lines(trace.chromeTrace(with: queues.map(\.record)))
        _ = nesting(lines)
        #expect(Set(lines.filter { $0.ph == "X" }.map(\.pid)) == [1, 2])
        #expect(lines.count { $0.cat == "attempt" } == 3)
        let ids = lines.filter { $0.ph == "b" }.map { [$0.id ?? -1, $0.pid] }
        #expect(!ids.isEmpty && Set(ids.map { $0[0] }).count == Set(ids).count)
    }

    @Test func `a trace is bounded, however long and however many the operations are`() throws {
        func event(_ kind: NetworkEvent.Kind, _ id: UInt64, _ number: Int, attempt: Int = 1) -> NetworkEvent {
            NetworkEvent(
                kind, operationID: id, attempt: attempt, moment: OperationInstant(offset: .milliseconds(number)))
        }
        let one = NetworkTrace(limit: 100)
        one.observe(event(.operationBegan, 1, 0))
        one.observe(event(.attemptBegan, 1, 1))
        for number in 1...1_000 {
            for (offset, kind) in [NetworkEvent.Kind.held, .wentOn, .hopBegan, .hopEnded].enumerated() {
                one.observe(event(kind, 1, number * 10 + offset))
            }
        }
        one.observe(event(.attemptEnded, 1, 20_000))
        for number in 1...1_000 {
            var decided = event(.decided, 1, 20_000 + number)
            decided.decision = AttemptPolicyDecision(.again(after: number == 1_000 ? .zero : .seconds(1)))
            one.observe(decided)
        }
        one.observe(event(.operationEnded, 1, 30_000))
        let shown = try lines(one.chromeTrace())
        #expect(shown.count { $0.name == "held: held" } == 100 && shown.count { $0.cat == "request" } == 100)
        #expect(shown.count { $0.name == "waiting: pause" } == 99 && shown.count { $0.name == "waiting: place" } == 1)
        let many = NetworkTrace(limit: 10)
        for id in 1...10 as ClosedRange<UInt64> {
            many.observe(event(.operationBegan, id, Int(id) * 1_000))
            for attempt in 1...50 {
                many.observe(event(.attemptBegan, id, Int(id) * 1_000 + attempt * 2, attempt: attempt))
                many.observe(event(.attemptEnded, id, Int(id) * 1_000 + attempt * 2 + 1, attempt: attempt))
            }
        }
        // The last two operations have 51 items each, and a third operation would exceed the limit.
        #expect(many.forgottenCount == 8)
        #expect(try lines(many.chromeTrace()).count { $0.cat == "attempt" } == 100)
    }

    @Test func `there are only as many tracks as concurrent operations, and no spans of a track overlap`() throws {
        var generator = SeededGenerator(seed: Rounds.firstSeed)
        let trace = NetworkTrace()
        let spans = (0..<1_000).map { _ in
            let began = Int.random(in: 0..<5_000, using: &generator)
            return (began: began, ended: began + Int.random(in: 1..<200, using: &generator))
        }
        for (id, span) in spans.enumerated() {
            for (kind, number) in [(NetworkEvent.Kind.operationBegan, span.began), (.operationEnded, span.ended)] {
                let moment = OperationInstant(offset: .milliseconds(number))
                trace.observe(NetworkEvent(kind, operationID: UInt64(id), moment: moment))
            }
        }
        let bars = try lines(trace.chromeTrace()).filter { $0.ph == "X" && $0.cat == "operation" }
        let tracks = Dictionary(grouping: bars, by: \.tid).values.map { $0.sorted { $0.end < $1.end } }
        for track in tracks {
            #expect(zip(track, track.dropFirst()).allSatisfy { $0.end < $1.ts ?? 0 })
        }
        let concurrent = spans.map { span in spans.count { $0.began <= span.began && span.began <= $0.ended } }
        #expect(bars.count == spans.count && tracks.count == concurrent.max())
    }

    @Test func `phases follow each other for any measured times, and do not exceed the total time`() {
        var generator = SeededGenerator(seed: 1)
        func some() -> Duration? {
            generator.chance(1, in: 4) ? nil : .microseconds(Int.random(in: -5...100, using: &generator))
        }
        for _ in 0..<2_000 {
            var metrics = TransferMetrics()
            (metrics.slotGranted, metrics.nameResolved, metrics.connected) = (some(), some(), some())
            (metrics.secured, metrics.requestBegan, metrics.firstByte) = (some(), some(), some())
            metrics.ended = some()
            let phases = TransferPhases(metrics, bodySent: some())
            var moment = Duration.zero
            for phase in phases.list {
                #expect(phase.began >= moment && phase.ended >= phase.began)
                moment = phase.ended
            }
            #expect(moment <= max(metrics.ended ?? .microseconds(200), .zero))
            #expect(Set(phases.list.map(\.kind)).count == phases.list.count)
        }
    }
}
