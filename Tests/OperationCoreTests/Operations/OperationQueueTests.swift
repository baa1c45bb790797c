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
