// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// An operation whose user wanted the name for something else.
private final class Parcel: AsyncOperation<Int, Flaw>, @unchecked Sendable {
    let owner = 7
    override func main() {}
}

@Suite(.timeLimit(.minutes(3)))
struct OwnerTests {
    @Test func `all operations of an object are cancelled and no others`() {
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

    @Test func `an operation is canceled after those that may depend on it although its handler is enqueued`() async {
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
        // The owner keeps no operation, and nothing else here keeps the second one.
        withExtendedLifetime(operations) {
            #expect(OperationOwner.cancelOperations(ownedBy: screen) == 2)
            #expect(events.events == ["second", "first"])
        }
        queue.resume()
        await queue.drain()
    }

    @Test func `a name is matched by equality`() {
        let first = HandDriven(), second = HandDriven(), third = HandDriven()
        first.owner = "owner tests: a user"
        second.owner = .named(["owner tests", "a user"].joined(separator: ": "))
        third.owner = "owner tests: another user"
        #expect(first.owner == second.owner)
        #expect(OperationOwner.cancelOperations(ownedBy: "owner tests: a user") == 2)
        #expect(first.isCancelled && second.isCancelled && !third.isCancelled)
        #expect(first.cancellationCause?.message.contains("\"owner tests: a user\"") == true)
    }

    @Test func `a cause of ones own is what they are told`() {
        let screen = Screen()
        let operation = HandDriven()
        operation.owner = .object(screen)
        OperationOwner.cancelOperations(ownedBy: screen, because: .requested("logged out"))
        #expect(operation.cancellationCause == .requested("logged out"))
    }

    @Test func `one that is given to another belongs to that one only`() {
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

    @Test func `operations that ended or have a result are not touched`() {
        let screen = Screen()
        let ended = HandDriven(), kept = HandDriven(), late = HandDriven()
        for operation in [ended, kept] { operation.owner = .object(screen) }
        ended.start()
        ended.finish(withResult: 1)
        kept.finish(withResult: 2)
        late.start()
        late.finish(withResult: 3)
        late.owner = .object(screen)
        #expect(OperationOwner.cancelOperations(ownedBy: screen) == 0)
        #expect(ended.outcome == .success(1) && kept.outcome == .success(2) && late.outcome == .success(3))
        #expect(ended.owner == .object(screen))
    }

    @Test func `operations that were begun by an owner that goes are not cancelled by that`() {
        let operation = HandDriven()
        autoreleasing {
            let screen = Screen()
            operation.owner = .object(screen)
            operation.start()
        }
        #expect(operation.owner?.isGone == true)
        operation.finish(withResult: 1)
        #expect(operation.outcome == .success(1))
    }

    @Test func `those of an owner that is gone can be cancelled by what an operation has as its owner`() throws {
        let operation = HandDriven()
        autoreleasing {
            let screen = Screen()
            operation.owner = .object(screen)
            operation.start()
        }
        let owner = try #require(operation.owner)
        #expect(OperationOwner.cancelOperations(ownedBy: owner) == 1)
        #expect(operation.cancellationCause?.code == .ownerGone)
    }

    @Test func `the last that came is cancelled first so that none begins in between`() {
        let screen = Screen()
        let first = HandDriven(), second = HandDriven()
        second.addDependency(first)
        for operation in [first, second] {
            operation.owner = .object(screen)
            operation.start()
        }
        OperationOwner.cancelOperations(ownedBy: screen)
        #expect(first.calls.events == ["main", "cancel ownerCancelled"])
        #expect(second.calls.events.isEmpty)
    }

    @Test func `that is the order too where some have left`() {
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

    @Test func `in queues of ours nothing begins meanwhile, in whatever order they came`() throws {
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
        // As if other threads went on while one cancels.
        for operation in [first, second, third] { operation.whenEnded { workers.runAll() } }
        #expect(OperationOwner.cancelOperations(ownedBy: screen) == 3)
        for operation in [first, second, third] {
            #expect(Look(operation) == .cancelled && operation.calls.events.isEmpty)
        }
        // The queues go on.
        try queues[1].add(other)
        workers.runAll()
        #expect(other.state == .executing)
        other.finish(withResult: 1)
        gate.cancel()
    }

    @Test func `a handler may cancel the operations of its owner`() async {
        let screen = Screen()
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

    @Test func `a subclass may have a property of this name`() {
        let parcel = Parcel()
        parcel.start()
        #expect(parcel.owner == 7)
        OperationOwner.mark(parcel, as: "owner tests: parcel")
        #expect(OperationOwner.owner(of: parcel) == "owner tests: parcel")
        #expect(OperationOwner.cancelOperations(ownedBy: "owner tests: parcel") == 1)
    }
}
