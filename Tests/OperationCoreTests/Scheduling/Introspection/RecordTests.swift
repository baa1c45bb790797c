// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationExporters
import OperationTestKit
import Testing

@Suite("Recordings of a queue", .nothingStaysAlive, .timeLimit(.minutes(3)))
struct RecordTests {
    @Test func `a replaced recording is released without a lock held`() {
        let queue = QueueManager("clock"), asked = Gate()
        queue.recording = QueueRecording(
            clock: LastWordClock {
                _ = queue.counts
                asked.open()
            })
        queue.recording = nil
        queue.recording = QueueRecording()
        #expect(asked.isOpen)
    }

    @Test func `a recording splits the time of each run into phases, and the trace agrees`() async throws {
        let clock = ManualClock(start: OperationInstant(offset: .seconds(100)))
        let queue = QueueManager("times", width: 1)
        queue.recording = QueueRecording(clock: clock)
        let load = HandDriven("load"), show = HandDriven("show \"it\"")
        let callbacks = DispatchQueue(label: "callbacks")
        show.callbackQueue = callbacks
        let handled = Gate()
        show.successHandler = { _ in handled.open() }
        show.addDependency(load)
        try queue.add([load, show])
        _ = await load.calls.events(atLeast: 1)
        clock.advance(by: .seconds(2))
        queue.isSuspended = true
        load.finish(withResult: 1)
        clock.advance(by: .seconds(3))
        queue.isSuspended = false
        _ = await show.calls.events(atLeast: 1)
        clock.advance(by: .seconds(4))
        callbacks.suspend()
        show.finish(withResult: 2)
        clock.advance(by: .seconds(5))
        callbacks.resume()
        await handled.passage()
        await queue.drained()
        let runs = queue.record.runs
        #expect(runs.map(\.name) == ["load", "show \"it\""])
        #expect(runs.map(\.waitingForDependencies) == [.zero, .seconds(2)])
        #expect(runs.map(\.waitingForPlace) == [.zero, .seconds(3)])
        #expect(runs.map(\.executing) == [.seconds(2), .seconds(4)])
        #expect(runs.map(\.handlerDelay) == [nil, .seconds(5)])
        #expect(runs.map(\.dependencies) == [[], [0]])
        #expect(runs.map(\.lane) == [0, 0])
        #expect(runs.map(\.ending) == [.success, .success])
        #expect(queue.record.criticalPath.runs == [0, 1])
        try Self.check(queue.record.chromeTrace())
    }

    private static func check(_ trace: Data) throws {
        let root = try #require(try JSONSerialization.jsonObject(with: trace) as? [String: Any])
        let events = try #require(root["traceEvents"] as? [[String: Any]])
        let stretches = events.filter { $0["ph"] as? String == "X" }
        #expect(stretches.compactMap { $0["name"] as? String } == ["load", "show \"it\""])
        #expect(stretches.compactMap { ($0["ts"] as? NSNumber)?.doubleValue } == [100_000_000, 105_000_000])
        #expect(stretches.compactMap { ($0["dur"] as? NSNumber)?.doubleValue } == [1_999_999.998, 3_999_999.998])
        #expect(stretches.allSatisfy { ($0["cat"] as? String)?.contains("critical") == true })
        let arrows = events.filter { ["s", "f"].contains($0["ph"] as? String ?? "") }
        #expect(arrows.compactMap { ($0["ts"] as? NSNumber)?.doubleValue } == [101_999_999.996, 105_000_000])
        #expect(Set(arrows.compactMap { ($0["id"] as? NSNumber)?.intValue }).count == 1)
        let figures = stretches.last?["args"] as? [String: String]
        #expect(figures?["time until its handler ran"] == "5.0 seconds")
        for begin in events where begin["ph"] as? String == "b" {
            #expect(events.contains { $0["ph"] as? String == "e" && $0["name"] as? String == begin["name"] as? String })
        }
    }

    @Test func `a recording is off by default, is limited in size and releases its operations`() async throws {
        let census = LiveObjects()
        let queue = QueueManager("bounds", width: 1)
        try queue.add {}
        await queue.drained()
        #expect(queue.record.runs.isEmpty)
        #expect(queue.recording == nil)
        queue.recording = QueueRecording(limit: 5)
        for number in 0..<20 {
            try queue.add(census.track(HandDriven("\(number)") { $0.finish(withResult: 1) }))
        }
        await queue.drained()
        queue.recording = nil
        try queue.add {}
        await queue.drained()
        let left = try await TestThread.run { census.countAtRest() }
        #expect(left == 0)
        #expect(queue.record.runs.map(\.name) == ["15", "16", "17", "18", "19"])
        #expect(queue.record.forgottenCount == 15)
        #expect(!queue.engine.isFollowed)
    }

    @Test func `a recording that is switched off releases unfinished operations and keeps their names`() throws {
        let census = LiveObjects(), workers = ManualWorkers()
        let queue = workers.makeQueue("off")
        func record() throws {
            queue.recording = QueueRecording()
            let late = census.track(NameAsker("late", queue)), held = census.track(NameAsker("held", queue))
            held.addDependency(late)
            try queue.add([late, held])
            workers.runAll()
            queue.recording = nil
            late.finish(withResult: 1)
            workers.runAll()
            held.finish(withResult: 1)
        }
        try record()
        #expect(census.count == 0)
        #expect(queue.record.runs.map(\.name) == ["late", "held"])
        #expect(queue.record.runs.map(\.ending) == [nil, nil])
    }

    @Test func `concurrent operations have different lanes, and lanes are reused`() async throws {
        let queue = QueueManager("lanes", width: 2)
        queue.recording = QueueRecording()
        let first = HandDriven("first"), second = HandDriven("second"), third = HandDriven("third")
        try queue.add([first, second, third])
        for operation in [first, second] { _ = await operation.calls.events(atLeast: 1) }
        first.finish(withResult: 1)
        _ = await third.calls.events(atLeast: 1)
        second.cancel()
        third.finish(withError: .first)
        await queue.drained()
        let runs = queue.record.runs
        #expect(Set(runs.prefix(2).compactMap(\.lane)) == [0, 1])
        #expect(runs.last?.lane == runs.first?.lane)
        #expect(runs.map(\.ending) == [.success, .cancelled, .failure])
    }

    @Test func `the critical path is the longest chain by time, and the other runs have slack`() {
        func run(_ id: Int, _ seconds: Int, _ dependencies: [Int]) -> QueueRun {
            var run = QueueRun(id: id, name: "\(id)", added: OperationInstant(offset: .zero))
            run.started = run.added
            run.ended = run.added.advanced(by: .seconds(seconds))
            run.dependencies = dependencies
            return run
        }
        // Run 3 was added before its dependency 4, and 9 is no longer in the record.
        let record = QueueRecord(
            queue: "path",
            runs: [run(0, 2, [9]), run(1, 5, [0]), run(2, 1, [0]), run(3, 3, [4, 1]), run(4, 4, [2]), run(5, 1, [])])
        let path = record.criticalPath
        #expect(path.runs == [0, 1, 3] || path.runs == [0, 2, 4, 3])
        #expect(path.duration == .seconds(10))
        #expect(path.slack == [0: .zero, 1: .zero, 2: .zero, 3: .zero, 4: .zero, 5: .seconds(9)])
        #expect(QueueRecord(queue: "none", runs: []).criticalPath.runs.isEmpty)
    }

    @Test func `the critical path of a chain of 100,000 runs needs no deep stack`() {
        let start = OperationInstant(offset: .zero)
        let runs = (0..<100_000).map { id in
            var run = QueueRun(id: id, name: "link", added: start)
            run.started = start
            run.ended = start.advanced(by: .nanoseconds(1))
            if id > 0 { run.dependencies = [id - 1] }
            return run
        }
        #expect(QueueRecord(queue: "deep", runs: runs).criticalPath.duration == .nanoseconds(100_000))
    }
}

/// A clock that calls a closure when it is freed.
private final class LastWordClock: OperationClock {
    private let clock = ManualClock()
    private let say: @Sendable () -> Void

    init(_ say: @escaping @Sendable () -> Void) { self.say = say }

    deinit { say() }

    var now: OperationInstant { clock.now }

    func schedule(at instant: OperationInstant, _ action: @escaping @Sendable () -> Void) -> any OperationTimer {
        clock.schedule(at: instant, action)
    }
}

/// An operation whose name reads the counts of its queue.
private final class NameAsker: AsyncOperation<Int, Flaw>, @unchecked Sendable {
    // Sendable: its properties never change.

    private let title: String
    private let queue: QueueManager

    init(_ title: String, _ queue: QueueManager) {
        self.title = title
        self.queue = queue
    }

    override var name: String? {
        get {
            _ = queue.counts
            return title
        }
        set {}
    }

    override func main() {}
}
