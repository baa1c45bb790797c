// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

/// Queues that are held while the network is gone.
@Suite(.timeLimit(.minutes(1)))
struct NetworkHoldTests {
    private let network = ManualConnectivity(.unsatisfied)

    @Test func `nothing begins while the network is gone, and the queue says why`() async throws {
        let queue = QueueManager("uploads", width: 2)
        let hold = queue.hold(whileOffline: network)
        let operation = ClosureOperation { 42 }
        operation.name = "upload"
        try queue.add(operation)
        #expect(queue.isSuspended)
        #expect(
            queue.explain(operation).description
                == "upload is ready in queue uploads: the queue is suspended (the network is gone).")
        network.write(.satisfied)
        #expect(try await operation.value == 42)
        #expect(!queue.isSuspended)
        network.write(.unsatisfied)
        #expect(queue.isSuspended)
        hold.cancel()
        #expect(!queue.isSuspended && network.observerCount == 0)
        network.write(.satisfied)
        network.write(.unsatisfied)
        #expect(!queue.isSuspended)
    }

    @Test func `the user's suspension and the network's do not know each other`() throws {
        let queue = QueueManager("uploads")
        queue.suspend(because: "the user asked for it")
        let hold = queue.hold(whileOffline: network)
        let operation = ClosureOperation { 42 }
        operation.name = "upload"
        try queue.add(operation)
        #expect(queue.explain(operation).description.contains("(the user asked for it, the network is gone)"))
        network.write(.satisfied)
        #expect(queue.isSuspended)
        network.write(.unsatisfied)
        queue.isSuspended = false
        #expect(queue.isSuspended, "the network is still gone")
        network.write(.satisfied)
        #expect(!queue.isSuspended)
        withExtendedLifetime(hold) {}
    }

    @Test func `two who hold a queue do not know each other, either, and a token that goes ends its hold`() {
        let queue = QueueManager("uploads"), other = ManualConnectivity(.unsatisfied)
        var holds = [queue.hold(whileOffline: network), queue.hold(whileOffline: other)]
        network.write(.satisfied)
        #expect(queue.isSuspended)
        holds.removeLast()
        #expect(!queue.isSuspended && other.observerCount == 0)
        withExtendedLifetime(holds) {}
    }

    @Test func `a queue that is let go of while it is held cancels what it holds`() async throws {
        let operation = ClosureOperation { 42 }
        let hold: NetworkHold
        do {
            let queue = QueueManager("uploads")
            hold = queue.hold(whileOffline: network)
            try queue.add(operation)
        }
        await operation.ended()
        #expect(operation.outcome?.cancellationCause != nil)
        network.write(.satisfied)
        hold.cancel()
    }

    @Test func `Race: the network, the user and the token at once: in the end nobody holds it`() async throws {
        for _ in 0..<Rounds.count(ci: 100, soak: 10_000) {
            let queue = QueueManager("uploads"), network = network
            network.write(.satisfied)
            let hold = queue.hold(whileOffline: network)
            try await TestThread.run {
                ThreadTeam(count: 3).run([
                    { for number in 0..<20 { network.write(number % 2 == 0 ? .unsatisfied : .satisfied) } },
                    { for number in 0..<20 { queue.isSuspended = number % 2 == 0 } },
                    { hold.cancel() },
                ])
            }
            #expect(!queue.isSuspended)
        }
    }
}
