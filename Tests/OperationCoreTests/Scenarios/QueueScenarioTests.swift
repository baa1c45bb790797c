// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Scenarios: Foundation's queue", .timeLimit(.minutes(2)))
struct QueueScenarioTests {
    #if os(macOS) || os(Linux)
        @Test(
            "Scenario 8 (algolia client#592): a suspended queue of 1,000 is canceled and resumed without a warning")
        func suspendedQueue() async throws {
            // Runs in a separate process, because Foundation prints its warning.
            let result = await #expect(
                processExitsWith: .success, observing: [\.standardOutputContent, \.standardErrorContent]
            ) {
                try await TestThread.run {
                    let queue = OperationQueue()
                    queue.isSuspended = true
                    let ended = Arrivals(1_000)
                    for number in 0..<1_000 {
                        let operation: ManagedOperation = number.isMultiple(of: 2) ? HeldWork() : QuickWork()
                        operation.completionBlock = { ended.arrive() }
                        queue.addOperation(operation)
                    }
                    queue.cancelAllOperations()
                    #expect(queue.operations.count { $0.isFinished } == 0)
                    #expect(ended.missingCount == 1_000)
                    queue.isSuspended = false
                    #expect(ended.haveAllCome())
                    #expect(queue.operationCount == 0)
                }
            }
            let output = (result?.standardOutputContent ?? []) + (result?.standardErrorContent ?? [])
            #expect(!String(decoding: output, as: UTF8.self).contains("***"))
        }
    #endif

    @Test(
        "ProcedureKit, queue reference goes away: operations of a released queue still run, and the queue is freed",
        arguments: [false, true])
    func releasedQueue(cancelled: Bool) async throws {
        let isDone = try await TestThread.run {
            let (began, ended, queueFreed) = (Arrivals(1), Arrivals(100), Arrivals(1))
            let first = HeldWork { _ in began.arrive() }
            first.completionBlock = { ended.arrive() }
            let bodies = Tally()
            autoreleasing {
                let queue = TracedQueue(Trace(queueFreed))
                queue.addOperation(first)
                var chain: [ManagedOperation] = [first]
                for number in 1..<100 {
                    let next = QuickWork { _ in bodies.add() }
                    next.addDependency(chain[number - 1])
                    next.completionBlock = { ended.arrive() }
                    queue.addOperation(next)
                    chain.append(next)
                }
                // From the end, so that no operation is released by the end of the previous one.
                if cancelled { for operation in chain.dropFirst().reversed() { operation.cancel() } }
            }
            guard began.haveAllCome() else { return false }
            first.finish(withResult: 1)
            guard ended.haveAllCome(), queueFreed.haveAllCome() else { return false }
            return bodies.value == (cancelled ? 0 : 99)
        }
        #expect(isDone)
    }
}

private final class TracedQueue: OperationQueue, @unchecked Sendable {
    private let trace: Trace

    init(_ trace: Trace) {
        self.trace = trace
        super.init()
    }
}
