// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Testing

@Suite("Owners and queues", .timeLimit(.minutes(3)))
struct OwnerQueueTests {
    @Test func `canceling by owner in an OperationQueue cancels only operations in that queue`() async {
        let screen = Screen()
        let queue = OperationQueue(), other = OperationQueue()
        queue.isSuspended = true
        other.isSuspended = true
        let inside = HandDriven(), outside = HandDriven(), byHand = HandDriven(), stranger = HandDriven()
        for operation in [inside, outside, byHand] { operation.owner = .object(screen) }
        for operation in [inside, stranger] as [Operation] { queue.addOperation(operation) }
        other.addOperation(outside)
        byHand.start()
        #expect(queue.cancelOperations(ownedBy: screen) == 1)
        #expect(inside.cancellationCause?.code == .ownerCancelled)
        #expect(!outside.isCancelled && !byHand.isCancelled && !stranger.isCancelled)
        #expect(OperationOwner.cancelOperations(ownedBy: screen) == 2)
        for operation in [stranger, byHand] { operation.cancel() }
        queue.isSuspended = false
        other.isSuspended = false
        await inside.end()
        await outside.end()
    }

    @Test func `canceling by owner in a QueueManager cancels only operations in that queue`() async throws {
        let queue = QueueManager("owners", width: 1), other = QueueManager("others", width: 1)
        let name = OperationOwner.named("owner queue tests: \(UInt64.random(in: 0 ... .max))")
        let inside = (0..<3).map { _ in HandDriven() }, outside = HandDriven()
        for operation in inside + [outside] { operation.owner = name }
        for operation in inside { try queue.add(operation) }
        try other.add(outside)
        #expect(queue.cancelOperations(ownedBy: name) == 3)
        #expect(inside.allSatisfy(\.isCancelled) && !outside.isCancelled)
        for operation in inside { await operation.end() }
        #expect(other.cancelOperations(ownedBy: name, because: .requested("enough")) == 1)
        await outside.end()
        #expect(outside.cancellationCause == .requested("enough"))
    }

    @Test func `plain operations can be marked with an owner and canceled by it`() async {
        let screen = Screen()
        let queue = OperationQueue()
        queue.isSuspended = true
        let block = BlockOperation {}, held = ForeignHeldWork(), free = BlockOperation {}
        OperationOwner.mark(block, as: .object(screen))
        OperationOwner.mark(held, as: .object(screen))
        #expect(OperationOwner.owner(of: block) == .object(screen))
        #expect(OperationOwner.owner(of: free) == nil)
        for operation in [block, free] as [Operation] { queue.addOperation(operation) }
        #expect(queue.cancelOperations(ownedBy: screen) == 1)
        #expect(block.isCancelled && !held.isCancelled && !free.isCancelled)
        OperationOwner.mark(held, as: nil)
        #expect(OperationOwner.cancelOperations(ownedBy: screen) == 0)
        OperationOwner.mark(held, as: "owner queue tests: held")
        #expect(OperationOwner.cancelOperations(ownedBy: "owner queue tests: held") == 1)
        queue.isSuspended = false
        await withCheckedContinuation { continuation in queue.addBarrierBlock { continuation.resume() } }
    }
}
