// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.nothingStaysAlive, .timeLimit(.minutes(3)))
struct QueueUrgencyTests {
    private let workers = ManualWorkers()
    private let order = EventRecorder<String>()
    private let queue: QueueManager

    init() { queue = workers.makeQueue(width: 1) }

    private func made(_ name: String, _ priority: Operation.QueuePriority = .normal) -> SyncProbe {
        let operation = SyncProbe.recording(name, in: order)
        if priority != .normal { operation.queuePriority = priority }
        return operation
    }

    @Test func `operations start in order of priority, and in order of adding for equal priorities`() throws {
        let priorities: [Operation.QueuePriority] = [.low, .veryHigh, .normal, .veryLow, .high]
        for round in 0..<3 {
            for priority in priorities { try queue.add(made("\(priority.rawValue)/\(round)", priority)) }
        }
        workers.runAll()
        #expect(order.events == [8, 4, 0, -4, -8].flatMap { level in (0..<3).map { "\(level)/\($0)" } })
    }

    @Test func `quality of service determines the order of operations without a priority`() throws {
        let background = made("background"), user = made("user"), normal = made("normal")
        background.qualityOfService = .background
        user.qualityOfService = .userInitiated
        try queue.add([background, normal, user])
        workers.runAll()
        #expect(order.events == ["user", "normal", "background"])
    }

    @Test func `the priority of a waiting operation can change`() throws {
        let operations = (0..<5).map { made("\($0)") }
        try queue.add(operations)
        operations[3].queuePriority = .high
        operations[0].queuePriority = .low
        operations[3].queuePriority = .veryHigh
        operations[4].queuePriority = .high
        workers.runAll()
        #expect(order.events == ["3", "4", "1", "2", "0"])
    }

    @Test(arguments: [false, true])
    func `the children of a group become as urgent as the group or its dependent`(isDependent: Bool) throws {
        let first = HandDriven("first")
        let group = GroupOperation.all([made("a"), made("b")])
        try queue.add(first)
        workers.runAll()
        try queue.add([made("normal 1"), group, made("normal 2")])
        first.finish(withResult: 1)
        while order.events.isEmpty { workers.step() }
        // Begin the group, whose children then wait behind the other operation.
        while group.state != .executing { workers.step() }
        let urgent = made("urgent", .high)
        if isDependent { urgent.addDependency(group) } else { group.queuePriority = .high }
        try queue.add(urgent)
        workers.runAll()
        #expect(order.events == ["normal 1", "a", "b", "urgent", "normal 2"])
    }

    @Test func `changing a priority 10,000 times does not increase memory use`() throws {
        let operation = made("it")
        try queue.add(operation)
        for _ in 0..<10_000 {
            operation.queuePriority = .high
            operation.queuePriority = .low
        }
        #expect(queue.engine.ticketCount < 500)
        workers.runAll()
        #expect(order.events == ["it"])
    }

    @Test func `changing priorities behind a barrier or during a hold does not increase memory use`() throws {
        let operation = made("it"), held = made("held"), runs = HandDriven()
        held.addCondition(OperationCondition("asked in its turn") { _ in .satisfied })
        try queue.add(runs)
        try queue.addBarrier(made("barrier"))
        try queue.add([operation, held])
        for _ in 0..<10_000 {
            for changed in [operation, held] {
                changed.queuePriority = .high
                changed.queuePriority = .low
            }
        }
        #expect(queue.engine.ticketCount < 500)
        queue.cancelAll()
        workers.runAll()
    }

    @Test func `priority is passed to dependencies, also in other queues`() throws {
        let queue = workers.makeQueue("one", width: 1), other = workers.makeQueue("two", width: 1)
        let far = made("far", .veryLow), near = made("near", .low), urgent = made("urgent", .veryHigh)
        try near.depend(on: far, otherwise: .cancel)
        try urgent.depend(on: near, otherwise: .cancel)
        try other.add([made("x"), far])
        try queue.add([made("y"), near])
        try queue.add(urgent)
        workers.runAll()
        let events = order.events
        #expect(events.firstIndex(of: "far")! < events.firstIndex(of: "x")!)
        #expect(events.firstIndex(of: "near")! < events.firstIndex(of: "urgent")!)
    }

    @Test func `an operation with normal priority raises its low-priority dependencies`() throws {
        let low = made("low", .low), waiting = made("waiting")
        try waiting.depend(on: low, otherwise: .cancel)
        try queue.add([made("a"), low, made("b")])
        try queue.add(waiting)
        workers.runAll()
        #expect(order.events == ["a", "b", "low", "waiting"])
    }

    @Test func `priority is passed to a dependency that is added while the operation is queued`() throws {
        let low = made("low", .low), urgent = made("urgent", .veryHigh), first = made("first", .low)
        try urgent.depend(on: first, otherwise: .cancel)
        try queue.add([made("a"), low, made("b"), urgent, first])
        try urgent.depend(on: low, otherwise: .cancel)
        workers.runAll()
        #expect(order.events == ["first", "low", "urgent", "a", "b"])
    }

    @Test func `priority is passed through a dependency that is not yet in a queue`() throws {
        let low = made("low", .low), between = made("between"), urgent = made("urgent", .veryHigh)
        try urgent.depend(on: between, otherwise: .cancel)
        try queue.add([made("a"), low, urgent])
        try between.depend(on: low, otherwise: .cancel)
        try queue.add(between)
        workers.runAll()
        #expect(order.events == ["low", "between", "urgent", "a"])
    }

    #if os(macOS) || os(Linux)
        // Runs in a separate process, where it is the first code that lowers a priority below normal.
        @Test func `a dependency whose priority is lowered keeps the priority of its dependents`() async throws {
            await #expect(processExitsWith: .success) {
                let workers = ManualWorkers(), queue = workers.makeQueue(width: 1), order = EventRecorder<String>()
                func made(_ name: String) -> SyncProbe {
                    SyncProbe.recording(name, in: order)
                }
                let dependency = made("dependency"), waiting = made("waiting")
                try waiting.depend(on: dependency, otherwise: .cancel)
                try queue.add([made("a"), waiting, dependency])
                dependency.queuePriority = .veryLow
                try queue.add(made("b"))
                workers.runAll()
                #expect(order.events == ["a", "dependency", "b", "waiting"])
            }
        }
    #endif

    @Test func `ageing gives less urgent operations their turns, and the most urgent ones the rest`() throws {
        queue.ageing = 1
        let priorities: [Operation.QueuePriority] = [.veryLow, .low, .normal, .high, .veryHigh]
        for _ in 0..<40 { for priority in priorities { try queue.add(made("\(priority.rawValue)", priority)) } }
        for _ in 0..<160 { workers.step() }
        let begun = Dictionary(grouping: order.events.prefix(80), by: \.self).mapValues(\.count)
        #expect(begun == ["8": 40, "4": 10, "0": 10, "-4": 10, "-8": 10])
        queue.cancelAll()
        workers.runAll()
    }

    @Test(arguments: [1, 4, 32])
    func `a low-priority operation runs despite a constant flow of urgent operations`(ageing: Int) throws {
        queue.ageing = ageing
        try queue.add(made("low", .veryLow))
        for _ in 0..<10 { try queue.add(made("high", .high)) }
        var starts = 0
        while order.events.last != "low", starts < 200 {
            try queue.add(made("high", .high))
            workers.step()
            workers.step()
            starts += 1
        }
        #expect(order.events.last == "low")
        #expect(order.count <= ageing + 2)
        queue.cancelAll()
        workers.runAll()
    }

    @Test func `without ageing, a low-priority operation waits for all urgent ones`() throws {
        queue.ageing = nil
        try queue.add(made("low", .veryLow))
        for _ in 0..<100 { try queue.add(made("high", .high)) }
        workers.runAll()
        #expect(order.events.last == "low")
    }

    @Test func `an operation that a body waits for gets the priority of the body and starts first`() async throws {
        let report = made("report", .veryLow), done = Gate()
        let waiting = SyncProbe { operation in
            report.waitUntilFinished()
            operation.finish(withResult: 1)
        }
        waiting.queuePriority = .low
        try queue.add(waiting)
        workers.step(0)
        let parts = (0..<20).map { _ in made("part", .veryLow) }
        for part in parts { report.addDependency(part) }
        try queue.add(parts)
        try queue.add([made("normal"), made("veryLow", .veryLow), made("low", .low), report])
        Thread.detachNewThread { [workers] in
            workers.step(0)
            done.open()
        }
        while workers.count < 2 { await Task.yield() }
        try queue.add(made("urgent", .veryHigh))
        while !done.isOpen {
            workers.step(1)
            await Task.yield()
        }
        workers.runAll()
        let expected = ["urgent", "normal", "low"] + parts.map { _ in "part" } + ["report", "veryLow"]
        #expect(order.events == expected)
    }

    @Test func `a low-priority operation runs even if bodies wait for many others`() async throws {
        let outer = QueueManager("outer", width: 1)
        let children = (0..<71).map { made("\($0)") }, began = EventRecorder<Int>()
        try queue.add(made("low", .veryLow))
        try queue.add(children)
        for (number, child) in children.enumerated() {
            try outer.add {
                began.record(number)
                child.waitUntilFinished()
            }
        }
        // The width is 1, so all bodies but the last have given up their slot and wait.
        _ = await began.events(atLeast: children.count)
        workers.runAll()
        await outer.drained()
        #expect((order.events.firstIndex(of: "low") ?? .max) <= 36)
        #expect(order.count == 72)
    }
}
