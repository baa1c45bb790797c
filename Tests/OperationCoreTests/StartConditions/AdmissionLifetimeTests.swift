// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Operations that are freed while they wait for admission", .timeLimit(.minutes(3)))
struct AdmissionLifetimeTests {
    private let census = LiveObjects()

    @Test func `an operation that is freed while it waits for a category leaves the line`() async throws {
        let category = OperationCategory("freed")
        let holder = HandDriven("holder"), next = HandDriven("next")
        holder.categories = [category]
        next.categories = [category]
        holder.start()
        do {
            let operation = census.track(HandDriven("freed"))
            operation.categories = [category]
            operation.start()
            next.start()
            #expect(category.waitingCount == 2)
        }
        #expect(census.count == 0 && category.waiters == [next])
        holder.finish(withResult: 1)
        #expect(await next.calls.events(atLeast: 1) == ["main"])
        next.finish(withResult: 1)
    }

    @Test func `an operation that is freed while it waits for its throttle key leaves no timer`() {
        let clock = ManualClock()
        let registry = OperationThrottle(clock: clock)
        let first = HandDriven("first")
        first.throttle = .init(key: "freed", interval: .seconds(3_600), in: registry)
        first.startAndFinish(withResult: 1)
        do {
            let operation = census.track(HandDriven("freed"))
            operation.throttle = .init(key: "freed", interval: .seconds(3_600), early: .wait, in: registry)
            operation.start()
            #expect(clock.pendingCount == 1 && registry.waitingCount(of: "freed") == 1)
        }
        #expect(census.count == 0 && clock.pendingCount == 0 && registry.waitingCount(of: "freed") == 0)
    }

    @Test func `freeing an operation while its condition is evaluated cancels the task of the condition`() async {
        let asked = Gate(), stopped = Gate()
        do {
            let operation = census.track(HandDriven("freed"))
            operation.addCondition("endless") { _ in
                asked.open()
                await stopped.openedByCancellation()
                return .satisfied
            }
            operation.start()
            await asked.passage()
        }
        await stopped.passage()
        #expect(census.count == 0)
    }

    @Test func `objects that a condition captured are freed when the operation ends or is freed`() async throws {
        do {
            let operation = census.track(HandDriven("ended"))
            let witness = census.track(Witness())
            operation.addCondition("captures") { [weak operation] _ in
                _ = witness
                return operation == nil ? .failed("it is gone") : .satisfied
            }
            operation.start()
            await operation.finishOnceBegun(withResult: 1)
        }
        do {
            let operation = census.track(HandDriven("never started"))
            let witness = census.track(Witness())
            operation.addCondition("captures") { _ in
                _ = witness
                return .satisfied
            }
            operation.categories = [census.track(OperationCategory("its own"))]
        }
        let census = census
        let left = try await TestThread.run { census.countAtRest() }
        #expect(left == 0, "\(census.types)")
    }

    @Test(arguments: [StartingWay.byHand, .queueManager])
    func `many operations that wait for a category are canceled and freed`(way: StartingWay) async throws {
        let count = Rounds.count(ci: 10_000, soak: 100_000)
        let category = OperationCategory("crowded")
        let holder = HandDriven("holder")
        holder.categories = [category]
        holder.start()
        do {
            let starter = Starter(way)
            var operations: [HandDriven] = []
            for _ in 0..<count {
                let operation = census.track(HandDriven())
                operation.callbackQueue = DispatchQueue.global()
                operation.categories = [category]
                operations.append(operation)
                try starter.start(operation)
            }
            #expect(await eventually { category.waitingCount == count })
            for operation in operations.shuffled() { operation.cancel() }
        }
        #expect(await eventually { category.waitingCount == 0 })
        #expect(category.holders == [holder])
        let census = census
        let left = try await TestThread.run { census.countAtRest() }
        #expect(left == 0)
        holder.finish(withResult: 1)
    }
}
