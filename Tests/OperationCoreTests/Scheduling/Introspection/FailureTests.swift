// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("The failures of a queue", .nothingStaysAlive, .timeLimit(.minutes(3)))
struct FailureTests {
    @Test(.comparesObjects)
    func `failures lists only failed operations, in order and with their errors`() async throws {
        let queue = QueueManager("failures", width: 1)
        let first = HandDriven("first") { $0.finish(withError: .first) }
        let second = HandDriven("second") { $0.finish(withError: .second) }
        try queue.add([first, HandDriven("fine") { $0.finish(withResult: 1) }, second])
        try queue.add(BlockOperation {})
        await queue.drained()
        let failures = queue.failures
        #expect(failures.map(\.operation) == [first, second])
        #expect(failures.map { $0.error as? Flaw } == [.first, .second])
        #expect(failures.map(\.canRunAgain) == [false, false])
        #expect(failures.first?.description == "first failed: first")
        queue.removeAllFailures()
        #expect(queue.failures.isEmpty)
        #expect(queue.counts.failed == 2)
    }

    @Test func `only the latest failures are kept, and dropped failures are counted and freed`() async throws {
        let census = LiveObjects()
        let queue = QueueManager("limit", width: 1)
        queue.failureLimit = 3
        for number in 0..<10 {
            try queue.add(census.track(HandDriven("\(number)") { $0.finish(withError: .first) }))
        }
        await queue.drained()
        #expect(queue.failures.map(\.operation.name) == ["7", "8", "9"])
        #expect(queue.forgottenFailureCount == 7)
        queue.failureLimit = 0
        #expect(queue.failures.isEmpty)
        let left = try await TestThread.run { census.countAtRest() }
        #expect(left == 0)
    }

    @Test(.comparesObjects)
    func `a failure can be run again as a new operation, which can fail again`() async throws {
        let queue = QueueManager("again")
        let tries = EventRecorder<Int>()
        let original = try queue.add(remaking: {
            HandDriven("flaky") { operation in
                tries.record(tries.count)
                if tries.count < 3 { operation.finish(withError: .first) } else { operation.finish(withResult: 7) }
            }
        })
        await queue.drained()
        let failure = try #require(queue.failures.first)
        #expect(failure.operation === original)
        #expect(failure.canRunAgain)
        let second = try queue.runAgain(failure)
        #expect(second !== original)
        await queue.drained()
        #expect(queue.failures.map(\.operation) == [second])
        #expect(throws: OperationSetupError.self) { try queue.runAgain(failure) }
        let made = try queue.runAllFailuresAgain()
        await queue.drained()
        #expect((made.first as? HandDriven)?.outcome?.result == 7)
        #expect(queue.failures.isEmpty)
        #expect(tries.count == 3)
    }

    @Test func `running a failure again that cannot be remade throws an error and keeps the failure`() async throws {
        let queue = QueueManager("refusal")
        try queue.add(HandDriven("once") { $0.finish(withError: .first) })
        await queue.drained()
        let failure = try #require(queue.failures.first)
        let error = thrown { () throws(OperationSetupError) in try queue.runAgain(failure) }
        #expect(error?.code == .notRemakable)
        #expect(error?.message.contains("add(remaking:)") == true)
        #expect(try queue.runAllFailuresAgain().isEmpty)
        #expect(queue.failures.count == 1)
    }

    @Test func `runAgain keeps the failure if the queue rejects the new operation`() async throws {
        let queue = QueueManager("closed")
        try queue.add(remaking: { HandDriven("flaky") { $0.finish(withError: .first) } })
        await queue.drained()
        await queue.shutDown(grace: .zero)
        let failure = try #require(queue.failures.first)
        #expect(thrown { () throws(OperationSetupError) in try queue.runAgain(failure) }?.code == .closed)
        #expect(queue.failures.map(\.id) == [failure.id])
    }
}
