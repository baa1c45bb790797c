// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Operations of the package in an `OperationQueue`.
@Suite(.timeLimit(.minutes(3)))
struct OperationQueueTests {
    private let queue = OperationQueue()

    private func drained() async throws -> Int {
        let queue = queue
        try await TestThread.run { queue.waitUntilAllOperationsAreFinished() }
        return queue.operationCount
    }

    @Test func `an OperationQueue waits until an operation ends, not until main returns`() async throws {
        let operation = HandDriven()
        queue.maxConcurrentOperationCount = 1
        queue.addOperation(operation)
        let next = ClosureOperation { operation.isFinished }
        queue.addOperation(next)
        _ = await operation.calls.events(atLeast: 1)
        #expect(!next.isExecuting)
        operation.finish(withResult: 1)
        #expect(try await next.value)
        #expect(try await drained() == 0)
    }

    @Test func `cancelAllOperations ends executing and waiting operations`() async throws {
        // This operation keeps its slot until all are canceled. Otherwise the next one could start before it is
        // canceled.
        let running = HandDriven(windsDown: true)
        let waiting = (0..<20).map { _ in HandDriven() }
        queue.maxConcurrentOperationCount = 1
        queue.addOperation(running)
        for operation in waiting { queue.addOperation(operation) }
        _ = await running.calls.events(atLeast: 1)
        queue.cancelAllOperations()
        running.finish(withResult: 1)
        #expect(try await drained() == 0)
        #expect(Look(running) == .cancelled)
        #expect(waiting.allSatisfy { Look($0) == .cancelled && $0.calls.events == [] })
    }

    @Test func `waitUntilFinished works for each of many operations in a queue`() async throws {
        let operations = (0..<30).map { number in TaskOperation { number } }
        for operation in operations { queue.addOperation(operation) }
        let results = try await TestThread.run {
            operations.map { operation in
                operation.waitUntilFinished()
                return operation.outcome?.result
            }
        }
        #expect(results == Array(0..<30))
    }

    @Test func `an OperationQueue frees finished operations`() async {
        let gates = (0..<50).map { _ in Gate() }
        for (number, gate) in gates.enumerated() {
            let operation = Witnessed(gate)
            if number.isMultiple(of: 3) { operation.cancel() }
            queue.addOperation(operation)
        }
        for gate in gates { await gate.passage() }
    }

    @Test func `run, startAndWait and start do not start an operation that an OperationQueue holds`() async throws {
        queue.isSuspended = true
        let began = Gate(),
            operation = SyncProbe { operation in
                began.open()
                operation.finish(withResult: 1)
            }
        let mapped = operation.mapResult { $0 + 1 }
        queue.addOperation(operation)
        // None of these calls may start the operation outside its queue.
        mapped.start()
        let awaiting = Task { try await operation.run() }
        let waiting = Task { try await TestThread.run { try operation.startAndWait() } }
        operation.start()
        #expect(operation.state == .notStarted)
        queue.isSuspended = false
        #expect(try await awaiting.value == 1)
        #expect(try await waiting.value == 1)
        #expect(try await mapped.value == 2)
        await operation.ended()
        #expect(operation.calls.events == ["main"])
        #expect(try await drained() == 0)
    }

    @Test func `starting a mapped operation does not start an original that another queue holds`() async throws {
        let held = HandDriven(), states = EventRecorder<OperationState>(), other = OperationQueue()
        queue.isSuspended = true
        queue.addOperation(held)
        let mapped = held.mapResult { $0 }
        other.addOperation {
            mapped.start()
            states.record(held.state)
        }
        #expect(await states.events(atLeast: 1) == [.notStarted])
        queue.isSuspended = false
        await held.finishOnceBegun(withResult: 3)
        #expect(try await mapped.value == 3)
        #expect(try await drained() == 0)
    }
}

private final class Witnessed: SyncOperation<Int, Never>, @unchecked Sendable {
    private let witness: Witness
    init(_ gone: Gate) { witness = Witness(gone) }
    override func main() { finish(withResult: 1) }
}
