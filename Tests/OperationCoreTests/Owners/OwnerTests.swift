// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// An operation subclass that declares a property with the same name.
private final class Parcel: AsyncOperation<Int, Flaw>, @unchecked Sendable {
    let owner = 7
    override func main() {}
}

@Suite(.timeLimit(.minutes(3)))
struct OwnerTests {
    private let screen = Screen()

    @Test func `canceling by an object cancels all operations that it owns and no others`() {
        let (one, other) = (Screen(), Screen())
        let own = (0..<5).map { _ in HandDriven() }
        let foreign = HandDriven(), free = HandDriven()
        for operation in own { operation.owner = .object(one) }
        foreign.owner = .object(other)
        for operation in own.prefix(2) + [foreign, free] { operation.start() }

        #expect(OperationOwner.cancelOperations(ownedBy: one) == 5)
        #expect(own.allSatisfy { $0.cancellationCause?.code == .ownerCancelled })
        #expect(foreign.state == .executing && free.state == .executing)
        for operation in [foreign, free] { operation.finish(withResult: 1) }
        #expect(own[0].cancellationCause?.message.contains("Screen") == true)
        #expect(OperationOwner.cancelOperations(ownedBy: one) == 0)
    }

    @Test func `operations of an owner are canceled in reverse order even with a handler enqueued`() async {
        let screen = Screen(), queue = DispatchQueue(label: "callbacks"), events = EventRecorder<String>()
        let operations = ["first", "second"].map { name in
            HandDriven(name, hooks: .init(cancel: { _ in events.record(name) }))
        }
        for operation in operations {
            operation.owner = .object(screen)
            operation.start()
        }
        queue.suspend()
        operations[0].enqueueHandler(on: queue) {}
        // The owner keeps no operation alive, and nothing else here keeps the second one.
        withExtendedLifetime(operations) {
            #expect(OperationOwner.cancelOperations(ownedBy: screen) == 2)
            #expect(events.events == ["second", "first"])
        }
        queue.resume()
        await queue.drain()
    }

    @Test func `owners with equal names are the same owner`() {
        let first = HandDriven(), second = HandDriven(), third = HandDriven()
        first.owner = "owner tests: a user"
        second.owner = .named(["owner tests", "a user"].joined(separator: ": "))
        third.owner = "owner tests: another user"
        #expect(first.owner == second.owner)
        #expect(OperationOwner.cancelOperations(ownedBy: "owner tests: a user") == 2)
        #expect(first.isCancelled && second.isCancelled && !third.isCancelled)
        #expect(first.cancellationCause?.message.contains("\"owner tests: a user\"") == true)
    }

    @Test func `a custom cancellation cause is passed to the operations of the owner`() {
        let operation = HandDriven()
        operation.owner = .object(screen)
        OperationOwner.cancelOperations(ownedBy: screen, because: .requested("logged out"))
        #expect(operation.cancellationCause == .requested("logged out"))
    }

    @Test func `an operation belongs only to the owner that was assigned last`() {
        let (one, other) = (Screen(), Screen())
        let operation = HandDriven()
        operation.owner = .object(one)
        operation.owner = .object(other)
        #expect(OperationOwner.cancelOperations(ownedBy: one) == 0)
        operation.owner = nil
        #expect(operation.owner == nil)
        #expect(OperationOwner.cancelOperations(ownedBy: other) == 0)
        operation.owner = .object(one)
        #expect(OperationOwner.cancelOperations(ownedBy: one) == 1)
    }

    @Test func `canceling by owner does not affect operations that are finished or have a result`() {
        let ended = HandDriven(), kept = HandDriven(), late = HandDriven()
        for operation in [ended, kept] { operation.owner = .object(screen) }
        ended.startAndFinish(withResult: 1)
        kept.finish(withResult: 2)
        late.startAndFinish(withResult: 3)
        late.owner = .object(screen)
        #expect(OperationOwner.cancelOperations(ownedBy: screen) == 0)
        #expect(ended.outcome == .success(1) && kept.outcome == .success(2) && late.outcome == .success(3))
        #expect(ended.owner == .object(screen))
    }

    @Test func `an operation that is executing continues when its owner is freed`() {
        let operation = HandDriven()
        operation.startWithBriefOwner()
        #expect(operation.owner?.isGone == true)
        operation.finish(withResult: 1)
        #expect(operation.outcome == .success(1))
    }

    @Test func `operations of a freed owner can be canceled through the owner property`() throws {
        let operation = HandDriven()
        operation.startWithBriefOwner()
        let owner = try #require(operation.owner)
        #expect(OperationOwner.cancelOperations(ownedBy: owner) == 1)
        #expect(operation.cancellationCause?.code == .ownerGone)
    }

    @Test func `operations are canceled newest first even if others have already finished`() {
        let screen = Screen(), order = EventRecorder<String>()
        let operations = (0..<6).map { HandDriven("\($0)") }
        for operation in operations {
            operation.owner = .object(screen)
            operation.whenEnded { order.record(operation.displayName) }
            operation.start()
        }
        for number in [0, 3] { operations[number].finish(withResult: 1) }
        #expect(OperationOwner.cancelOperations(ownedBy: screen) == 4)
        #expect(order.events == ["0", "3", "5", "4", "2", "1"])
    }

    @Test func `canceling by owner starts no other operation of the owner in a QueueManager`() throws {
        let workers = ManualWorkers(), screen = Screen()
        let queues = [workers.makeQueue("one", width: 1), workers.makeQueue("two", width: 1)]
        let ended = HandDriven("ended"), first = HandDriven("first"), second = HandDriven("second")
        let third = HandDriven("third"), other = HandDriven("other")
        let gate = HandDriven("gate")
        first.addDependency(gate)
        second.addDependency(first)
        third.addDependency(first)
        for operation in [ended, third, second, first] { operation.owner = .object(screen) }
        try queues[0].add([ended, first, second])
        try queues[1].add(third)
        workers.runAll()
        ended.finish(withResult: 1)
        // Simulates other threads that continue during the cancellation.
        for operation in [first, second, third] { operation.whenEnded { workers.runAll() } }
        #expect(OperationOwner.cancelOperations(ownedBy: screen) == 3)
        for operation in [first, second, third] {
            #expect(Look(operation) == .cancelled && operation.calls.events.isEmpty)
        }
        // The queues still run other operations.
        try queues[1].add(other)
        workers.runAll()
        #expect(other.state == .executing)
        other.finish(withResult: 1)
        gate.cancel()
    }

    @Test func `a handler can cancel the operations of its owner`() async {
        let first = HandDriven(), second = HandDriven()
        let gate = Gate()
        first.callbackQueue = DispatchQueue(label: "owners")
        first.successHandler = { _ in
            OperationOwner.cancelOperations(ownedBy: screen)
            gate.open()
        }
        for operation in [first, second] {
            operation.owner = .object(screen)
            operation.start()
        }
        first.finish(withResult: 1)
        await gate.passage()
        #expect(second.isCancelled)
    }

    @Test func `a subclass can declare a property named owner`() {
        let parcel = Parcel()
        parcel.start()
        #expect(parcel.owner == 7)
        OperationOwner.mark(parcel, as: "owner tests: parcel")
        #expect(OperationOwner.owner(of: parcel) == "owner tests: parcel")
        #expect(OperationOwner.cancelOperations(ownedBy: "owner tests: parcel") == 1)
    }

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
        await inside.ended()
        await outside.ended()
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
        for operation in inside { await operation.ended() }
        #expect(other.cancelOperations(ownedBy: name, because: .requested("enough")) == 1)
        await outside.ended()
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
