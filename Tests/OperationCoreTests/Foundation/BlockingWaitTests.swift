// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

// These tests check only that every wait ends with the right result. The time that Foundation's pool takes to add
// threads for blocked ones is measured elsewhere.
@Suite("Foundation's queue: blocking waits", .timeLimit(.minutes(2)))
struct BlockingWaitTests {
    @Test(arguments: [1, 2, -1])
    func `L14: nested startAndWait() calls return in a queue of any width`(width: Int) async throws {
        let depth = 50
        let results = try await TestThread.run {
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = width
            let operations = (0..<10).map { _ in nested(depth: depth) }
            for operation in operations { queue.addOperation(operation) }
            return operations.map { try? $0.startAndWait() }
        }
        #expect(results == Array(repeating: depth, count: 10))
    }

    @Test func `L14: operations that block on other operations of the same queue finish`() async throws {
        let sum = try await TestThread.run {
            let queue = OperationQueue()
            let outer = QuickWork { operation in
                let middle = QuickWork { operation in
                    let inner = ClosureOperation { 40 }
                    queue.addOperation(inner)
                    inner.waitUntilFinished()
                    operation.finish(withResult: (inner.outcome?.result ?? 0) + 1)
                }
                queue.addOperation(middle)
                middle.waitUntilFinished()
                operation.finish(withResult: (middle.outcome?.result ?? 0) + 1)
            }
            queue.addOperation(outer)
            outer.waitUntilFinished()
            return outer.outcome?.result
        }
        #expect(sum == 42)
    }

    @Test(
        "L14: all threads waiting for an operation wake when it finishes or is canceled",
        arguments: [false, true])
    func manyWaiters(cancelled: Bool) async throws {
        let isDone = try await TestThread.run {
            let operation = HeldWork()
            let (awake, ended) = (Arrivals(40), Tally())
            for number in 0..<40 {
                Thread {
                    if number.isMultiple(of: 2) {
                        operation.waitUntilFinished()
                        if operation.isFinished { ended.add() }
                    } else {
                        _ = try? operation.startAndWait()
                        if operation.outcome != nil { ended.add() }
                    }
                    awake.arrive()
                }.start()
            }
            cancelled ? operation.cancel() : operation.finish(withResult: 1)
            return awake.haveAllCome() && ended.value == 40
        }
        #expect(isDone)
    }
}

@available(*, noasync)
private func nested(depth: Int) -> ClosureOperation<Int, any Error> {
    ClosureOperation {
        guard depth > 0 else { return 0 }
        return try nested(depth: depth - 1).startAndWait() + 1
    }
}
