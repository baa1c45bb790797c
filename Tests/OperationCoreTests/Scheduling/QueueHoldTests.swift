// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Reasons for which a queue is held that know nothing of each other.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(1)))
struct QueueHoldTests {
    private let queue = QueueManager("uploads", width: 2)

    @Test func `while it holds nothing begins, and what waited begins afterwards`() async throws {
        let hold = QueueHold(queue, because: "the network is gone")
        #expect(!queue.isSuspended, "not before it is set")
        hold.set(true)
        let operation = ClosureOperation { 42 }
        operation.name = "upload"
        try queue.add(operation)
        #expect(queue.isSuspended && !queue.isSuspendedByUser && !operation.isExecuting)
        #expect(
            queue.explain(operation).description
                == "upload is ready in queue uploads: the queue is suspended (the network is gone).")
        hold.set(true)
        hold.set(false)
        #expect(!queue.isSuspended)
        #expect(try await operation.value == 42)
    }

    @Test func `it goes on when all who hold it let it go, the user included`() {
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

    @Test func `once it ended it holds nothing any more, and one that is let go of has ended`() {
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

    @Test func `Race: set by one thread and ended by another, it holds nothing in the end`() async throws {
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
