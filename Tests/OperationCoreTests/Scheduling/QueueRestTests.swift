// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Operations that wait in the middle of their work, without a thread and without a slot in their queue.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(Rounds.minutes)))
struct QueueRestTests {
    private let workers = ManualWorkers()
    private let pause = WaitReason.waiting(.pause, .milliseconds(3_250), " before attempt 2")

    private func add(_ names: String..., to queue: QueueManager) throws -> [HandDriven] {
        let operations = names.map { HandDriven($0) }
        for operation in operations { try queue.add(operation) }
        workers.runAll()
        return operations
    }

    @Test func `a resting operation gives its slot to the next one and gets a slot when it resumes`() async throws {
        let queue = workers.makeQueue("api", width: 1)
        let operations = try add("first", "second", "third", to: queue)
        #expect(operations.map(\.state) == [.executing, .notStarted, .notStarted])
        operations[0].rest(1, because: pause)
        workers.runAll()
        #expect(operations.map(\.state) == [.executing, .executing, .notStarted])
        #expect(operations[0].waitReason == pause)
        #expect(
            queue.explain(operations[0]) == "first runs in queue api: waiting 3.2 s before attempt 2.")
        #expect(queue.snapshot.resting.map(\.name) == ["first"])
        #expect(queue.explain(operations[2]).contains("occupied (width 1, held by second)"))

        let wentOn = Gate()
        #expect(!operations[0].wake(1) { wentOn.open() })
        #expect(operations[0].waitReason?.kind == .place)
        operations[1].finish(withResult: 2)
        // The resting operation resumes before the operation that has not started.
        await wentOn.passage()
        workers.runAll()
        #expect(operations[2].state == .notStarted)
        #expect(operations[0].waitReason == nil)
        operations[0].finish(withResult: 1)
        workers.runAll()
        #expect(operations[2].state == .executing)
        operations[2].finish(withResult: 3)
        #expect(queue.counts.unended == 0)
    }

    @Test func `queue events report that an operation rests, why, and that it resumes`() async throws {
        let queue = workers.makeQueue(width: 1)
        let updates = queue.events(keeping: 1_024).makeAsyncIterator()
        let operations = try add("first", "second", to: queue)
        operations[0].rest(1, because: pause)
        workers.runAll()
        #expect(queue.snapshot.resting.map { queue.snapshot.waitReason(of: $0) } == [pause])
        #expect(queue.counts.resting == 1)
        let wentOn = Gate()
        #expect(!operations[0].wake(1) { wentOn.open() })
        operations[1].finish(withResult: 2)
        await wentOn.passage()
        operations[0].rest(2, because: pause)
        operations[0].cancel()
        workers.runAll()
        #expect(queue.snapshot.resting.isEmpty && queue.counts.resting == 0)
        let last = queue.snapshot
        var told: [String] = []
        var state: QueueSnapshot?
        while state?.number != last.number, let update = await updates.next() {
            if let event = update.event {
                let text = "\(event)".drop { $0 != " " }.dropFirst()
                if event.entry?.name == "first" { told.append(String(text)) }
                state?.apply(event)
            } else {
                state = update.snapshot
            }
        }
        #expect(state == last)
        #expect(
            told.suffix(5) == [
                "paused first, waiting 3.2 s before attempt 2",
                "paused first, waiting for a slot in its queue to resume", "resumed first",
                "paused first, waiting 3.2 s before attempt 2", "ended first, cancelled",
            ])
    }

    @Test func `a resting operation resumes immediately if a slot is free`() throws {
        let queue = workers.makeQueue(width: 2)
        let operation = try add("only", to: queue)[0]
        operation.rest(1, because: pause)
        let others = try add("a", to: queue)
        #expect(operation.wake(1) { Issue.record("The operation must resume immediately, without this closure.") })
        #expect(operation.waitReason == nil)
        for operation in others + [operation] { operation.finish(withResult: 0) }
    }

    @Test func `a wait reported after its end is ignored, but the next wait is not`() throws {
        let queue = workers.makeQueue(width: 1)
        let operations = try add("first", "second", to: queue)
        #expect(operations[0].wake(1) {})
        operations[0].rest(1, because: pause)
        workers.runAll()
        #expect(operations[0].waitReason == nil && operations[1].state == .notStarted)
        operations[0].rest(2, because: pause)
        let other = WaitReason(.network, "waiting for the network")
        operations[0].rest(2, because: other)
        workers.runAll()
        #expect(operations[0].waitReason == other && operations[1].state == .executing)
        for operation in operations { operation.finish(withResult: 0) }
        #expect(queue.counts.unended == 0)
    }

    @Test func `canceling a resting operation does not release its slot twice`() throws {
        let queue = workers.makeQueue(width: 1)
        let operations = try add("first", "second", "third", "fourth", to: queue)
        operations[0].rest(1, because: pause)
        workers.runAll()
        operations[0].cancel()
        workers.runAll()
        #expect(operations.map(\.state) == [.cancelled, .executing, .notStarted, .notStarted])
        #expect(operations[0].waitReason == nil)
        operations[0].rest(2, because: pause)
        #expect(operations[0].waitReason == nil)
        operations[1].finish(withResult: 0)
        workers.runAll()
        #expect(operations.dropFirst(2).map(\.state) == [.executing, .notStarted])
        operations[2].finish(withResult: 0)
        operations[3].cancel()
        workers.runAll()
        #expect(queue.counts.unended == 0)
    }

    @Test func `an operation canceled while it waits for a slot does not block others`() throws {
        let queue = workers.makeQueue(width: 1)
        let operations = try add("first", "second", "third", to: queue)
        operations[0].rest(1, because: pause)
        workers.runAll()
        #expect(!operations[0].wake(1) {})
        operations[0].cancel()
        operations[1].finish(withResult: 0)
        workers.runAll()
        #expect(operations[2].state == .executing)
        operations[2].finish(withResult: 0)
        #expect(queue.counts.unended == 0)
    }

    @Test func `an operation outside a queue also reports its wait reason`() {
        let operation = HandDriven("free")
        operation.rest(1, because: pause)
        #expect(operation.waitReason == nil, "The operation has not started.")
        operation.start()
        operation.rest(1, because: pause)
        #expect(operation.waitReason == pause)
        #expect(operation.wake(1) {})
        #expect(operation.waitReason == nil)
        operation.finish(withResult: 0)
    }

    @Test func `with many resting and canceled operations, the width holds and all operations end`() async throws {
        let count = Rounds.count(ci: 500, soak: 100_000)
        let queue = QueueManager("resting", width: 3), running = Tally()
        let alarm = DispatchQueue(label: "alarm", attributes: .concurrent)
        let operations = (0..<count).map { number in
            HandDriven(
                "\(number)",
                hooks: .init(main: { operation in
                    running.add()
                    // Left before the slot is released, and entered again after a slot is available.
                    running.add(-1)
                    let end: @Sendable () -> Void = {
                        // A canceled operation releases its slot immediately and is not counted.
                        if number % 5 != 0 { running.during {} }
                        operation.finish(withResult: number)
                    }
                    alarm.async { if operation.wake(1, end) { end() } }
                    operation.rest(1, because: .place)
                    if number % 5 == 0 { alarm.async { operation.cancel() } }
                }))
        }
        try await queue.addAndDrain(operations)
        #expect(operations.allSatisfy { $0.outcome != nil })
        #expect(running.peak <= 3)
        let last = (0..<6).map { HandDriven("last \($0)") }
        try queue.add(last)
        while last.filter({ $0.state == .executing }).count < 3 { await Task.yield() }
        #expect(queue.snapshot.entries(.running).count == 3)
        for operation in last { operation.cancel() }
        await queue.drained()
    }
}
