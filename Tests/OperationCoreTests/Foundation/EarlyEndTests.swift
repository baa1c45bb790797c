// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Foundation's queue: operations that end before their start", .timeLimit(.minutes(Rounds.minutes)))
struct EarlyEndTests {
    @Test("L5: an operation canceled or finished in a suspended queue ends only when the queue starts it")
    func suspendedQueue() async throws {
        NoticeHub.install()
        try await expectNoFailures { failures in
            for _ in 0..<Rounds.count(ci: 3, soak: 300) {
                let queue = OperationQueue()
                queue.isSuspended = true
                let (ended, bodies) = (Arrivals(1_000), Tally())
                let operations = (0..<1_000).map { number in
                    let operation = HeldWork { _ in bodies.add() }
                    operation.completionBlock = { ended.arrive() }
                    queue.addOperation(operation)
                    return operation
                }
                for (number, operation) in operations.enumerated() {
                    number.isMultiple(of: 3) ? operation.finish(withResult: number) : operation.cancel()
                }
                failures += operations.count(where: \.isFinished)
                if queue.operationCount != 1_000 { failures += 1 }
                queue.isSuspended = false
                guard ended.haveAllCome() else { return failures += 1 }
                if bodies.value != 0 || queue.operationCount != 0 { failures += 1 }
                failures += operations.enumerated().count { number, operation in
                    number.isMultiple(of: 3)
                        ? operation.outcome != .success(number) : operation.outcome != .cancelled(.requested)
                }
            }
        }
    }

    @Test func `L5: an operation that is finished or canceled while a queue starts it ends once`() async throws {
        NoticeHub.install()
        try await expectNoFailures { failures in
            let team = ThreadTeam(count: 3)
            let queue = OperationQueue()
            for round in 0..<Rounds.count(ci: 2_000, soak: 100_000) {
                let operation = HeldWork()
                let (ended, tellings) = (Arrivals(1), Tally())
                operation.completionBlock = { ended.arrive() }
                operation.observe(on: .global()) { _ in tellings.add() }
                team.run([
                    { queue.addOperation(operation) },
                    { operation.finish(withResult: round) },
                    { operation.cancel() },
                ])
                guard ended.haveAllCome() else { return failures += 1 }
                if ended.missingCount != 0 || operation.outcome == nil { failures += 1 }
                if tellings.value > 1 { failures += 1 }
            }
            queue.waitUntilAllOperationsAreFinished()
            failures += queue.operationCount
        }
    }

    @Test func `L13: a queue removes an operation however it ends`() async throws {
        NoticeHub.install()
        let remaining = try await TestThread.run {
            let queue = OperationQueue()
            let clock = ManualClock()
            let failing = QuickWork { $0.finish(withError: .broken) }
            let cancelledInside = QuickWork { $0.cancel() }
            let resultless = ClosureOperation<Int, any Error> { throw CancellationError() }
            let late = HeldWork { _ in clock.advance(by: .seconds(2)) }
            late.clock = clock
            late.timeout = .seconds(1)
            let windingDown = HeldWork(windsDown: true) { operation in
                operation.cancel()
                operation.finish(withError: .broken)
            }
            let elsewhere = HeldWork { operation in
                Thread { operation.finish(withResult: 2) }.start()
            }
            let suspended = HeldWork { operation in
                operation.suspend()
                operation.cancel()
            }
            let task = TaskOperation { 3 }
            let all: [ManagedOperation] = [
                QuickWork(), failing, cancelledInside, resultless, late, windingDown, elsewhere, suspended, task,
                task.mapResult { $0 + 1 },
            ]
            let ended = Arrivals(all.count)
            for operation in all { operation.completionBlock = { ended.arrive() } }
            queue.addOperations(all, waitUntilFinished: false)
            return ended.haveAllCome() ? queue.operations.map { "\(type(of: $0))" } : ["some never ended"]
        }
        #expect(remaining.isEmpty)
    }
}
