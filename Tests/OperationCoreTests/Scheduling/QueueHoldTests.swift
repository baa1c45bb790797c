// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

/// Independent reasons for which a queue is suspended.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(1)))
struct QueueHoldTests {
    private let queue = QueueManager("uploads", width: 2)

    @Test func `a hold suspends the queue, and its operations start after the hold is released`() async throws {
        let hold = QueueHold(queue, because: "the network is gone")
        #expect(!queue.isSuspended, "The hold must not suspend the queue before it is set.")
        hold.set(true)
        let operation = ClosureOperation { 42 }.named("upload")
        try queue.add(operation)
        #expect(queue.isSuspended && !queue.isSuspendedByUser && !operation.isExecuting)
        #expect(
            queue.explain(operation)
                == "upload is ready in queue uploads: the queue is suspended (the network is gone).")
        hold.set(true)
        hold.set(false)
        #expect(!queue.isSuspended)
        #expect(try await operation.value == 42)
    }

    @Test func `a queue resumes only after all holds and the user have released it`() {
        let first = QueueHold(queue, because: "one"), second = QueueHold(queue, because: "two")
        queue.isSuspended = true
        first.set(true)
        second.set(true)
        first.set(false)
        queue.isSuspended = false
        #expect(queue.isSuspended && !queue.isSuspendedByUser)
        second.set(false)
        #expect(!queue.isSuspended)
    }

    @Test func `a hold that has ended or is freed no longer suspends the queue`() {
        let hold = QueueHold(queue, because: "one")
        hold.set(true)
        hold.end()
        #expect(!queue.isSuspended)
        hold.set(true)
        #expect(!queue.isSuspended)
        do {
            let other = QueueHold(queue, because: "two")
            other.set(true)
            #expect(queue.isSuspended)
        }
        #expect(!queue.isSuspended)
    }

    @Test func `Race: a hold that one thread sets and another ends leaves the queue resumed`() async throws {
        let queue = queue
        let wasHeld = try await TestThread.run {
            let team = ThreadTeam(count: 2)
            return (0..<Rounds.count(ci: 500, soak: 30_000)).count { _ in
                let hold = QueueHold(queue, because: "one")
                team.run([{ hold.set(true) }, { hold.end() }])
                return queue.isSuspended
            }
        }
        #expect(wasHeld == 0)
    }
}
