// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("A plain OperationQueue", .timeLimit(.minutes(2)))
struct PlainQueueTests {
    @Test func `C6: a queue runs operations by priority, and in order of addition within a priority`() async throws {
        let order = EventRecorder<String>()
        try await TestThread.run {
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
            queue.isSuspended = true
            let priorities: [Operation.QueuePriority] = [.veryLow, .normal, .veryHigh, .low, .high]
            for round in 1...2 {
                for priority in priorities {
                    let operation = QuickWork { _ in order.record("\(priority.rawValue) \(round)") }
                    operation.queuePriority = priority
                    queue.addOperation(operation)
                }
            }
            queue.isSuspended = false
            queue.waitUntilAllOperationsAreFinished()
        }
        #expect(order.events == [8, 4, 0, -4, -8].flatMap { ["\($0) 1", "\($0) 2"] })
    }

    @Test(
        "C6: in a random graph of managed and plain operations, each begins after its dependencies end",
        arguments: 1...8)
    func randomGraph(seed: UInt64) async throws {
        let tooEarly = try await TestThread.run {
            var random = SeededGenerator(seed: seed)
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = Int.random(in: 1...4, using: &random)
            var graph: [(operation: Operation, dependencies: [Operation])] = []
            let (ended, tooEarly) = (Arrivals(200), Tally())
            for number in 0..<200 {
                let check = Check(tooEarly)
                // A plain operation depends only on managed ones, because Foundation's own graph is not tested.
                let isForeign = random.chance(1, in: 3)
                let operation: Operation =
                    isForeign ? ForeignQuickWork { check.run() } : QuickWork { _ in check.run() }
                var dependencies: [Operation] = []
                for _ in 0..<min(3, number) where random.chance(2, in: 3) {
                    let upstream = graph[Int.random(in: 0..<number, using: &random)].operation
                    if isForeign {
                        guard let upstream = upstream as? QuickWork else { continue }
                        operation.addDependency(upstream)
                    } else {
                        operation.addDependency(upstream)
                    }
                    dependencies.append(upstream)
                }
                check.dependencies = dependencies
                operation.completionBlock = { ended.arrive() }
                graph.append((operation, dependencies))
            }
            for (operation, _) in graph.shuffled(using: &random) { queue.addOperation(operation) }
            guard ended.haveAllCome() else { return -1 }
            queue.waitUntilAllOperationsAreFinished()
            return tooEarly.value + queue.operationCount
        }
        #expect(tooEarly == 0, "seed \(seed)")
    }

    @Test func `C6: the completion block runs once, after isFinished becomes true`() async throws {
        let failures = try await TestThread.run {
            let queue = OperationQueue()
            let (blocks, failures) = (Arrivals(2_000), Tally())
            for number in 0..<2_000 {
                let operation: ManagedOperation =
                    number.isMultiple(of: 2)
                    ? QuickWork() : HeldWork { work in DispatchQueue.global().async { work.finish(withResult: 1) } }
                operation.completionBlock = { [weak operation] in
                    if operation?.isFinished != true || operation?.isExecuting != false { failures.add() }
                    blocks.arrive()
                }
                queue.addOperation(operation)
                if number.isMultiple(of: 3) { operation.cancel() }
            }
            guard blocks.haveAllCome() else { return -1 }
            queue.waitUntilAllOperationsAreFinished()
            return failures.value + abs(blocks.missingCount) + queue.operationCount
        }
        #expect(failures == 0)
    }

    @Test(arguments: [1, 2, 3])
    func `C6: a queue runs as many operations as its limit allows, and never more`(limit: Int) async throws {
        let peak = try await TestThread.run {
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = limit
            let (running, ended, full) = (Tally(), Arrivals(300), Arrivals(limit))
            for number in 0..<300 {
                let operation = HeldWork { work in
                    running.add()
                    full.arrive()
                    // The first operations end only when the queue is full.
                    DispatchQueue.global().async {
                        if number < limit { _ = full.haveAllCome() }
                        running.add(-1)
                        work.finish(withResult: 1)
                    }
                }
                operation.completionBlock = { ended.arrive() }
                queue.addOperation(operation)
            }
            guard ended.haveAllCome() else { return -1 }
            return running.peak
        }
        #expect(peak == limit)
    }

    @Test func `C6: addOperations(_:waitUntilFinished:) waits for managed and plain operations`() async throws {
        let unfinished = try await TestThread.run {
            let operations: [Operation] = (0..<100).map { number in
                number.isMultiple(of: 2) ? QuickWork() : ForeignQuickWork()
            }
            OperationQueue().addOperations(operations, waitUntilFinished: true)
            return operations.count { !$0.isFinished }
        }
        #expect(unfinished == 0)
    }
}

/// Counts a mistake if it runs before all dependencies have ended.
private final class Check: @unchecked Sendable {
    // Sendable: set before the operation is added to the queue.
    var dependencies: [Operation] = []
    private let mistakes: Tally

    init(_ mistakes: Tally) { self.mistakes = mistakes }

    func run() {
        if dependencies.contains(where: { !$0.isFinished }) { mistakes.add() }
        dependencies = []
    }
}
