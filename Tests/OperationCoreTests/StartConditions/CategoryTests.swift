// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Categories", .timeLimit(.minutes(3)))
struct CategoryTests {
    private func driven(_ name: String, _ categories: OperationCategory...) -> HandDriven {
        let operation = HandDriven(name)
        operation.categories = categories
        return operation
    }

    @Test(arguments: StartingWay.allCases)
    func `the limit of a category holds, and the next operation starts when one ends`(way: StartingWay) async throws {
        let category = OperationCategory("two seats", limit: 2)
        let starter = Starter(way)
        let operations = (0..<5).map { driven("\($0)", category) }
        for (number, operation) in operations.enumerated() {
            try starter.start(operation)
            #expect(await eventually { category.holders.count + category.waitingCount == number + 1 })
        }
        for (number, operation) in operations.enumerated() {
            _ = await operation.calls.events(atLeast: 1)
            #expect(await eventually { category.holders.count == min(2, 5 - number) })
            #expect(category.holders.map(\.name) == (number...min(number + 1, 4)).map { "\($0)" })
            #expect(category.waiters.compactMap(\.name) == (number + 2..<max(number + 2, 5)).map { "\($0)" })
            if number + 2 < 5 { #expect(operations[number + 2].calls.events == []) }
            await operation.finishAndEnd(withResult: number)
            #expect(await eventually { category.holders.count == min(2, 4 - number) })
        }
        #expect(category.holders.isEmpty && category.waitingCount == 0)
    }

    @Test func `a category is shared by operations in both kinds of queues and outside queues`() async throws {
        let category = OperationCategory("shared")
        let starters = StartingWay.allCases.map(Starter.init)
        let operations = StartingWay.allCases.map { driven($0.rawValue, category) }
        for (starter, operation) in zip(starters, operations) {
            try starter.start(operation)
            #expect(await eventually { category.holders.first === operation || category.waiters.last === operation })
        }
        for operation in operations {
            _ = await operation.calls.events(atLeast: 1)
            #expect(category.holders == [operation])
            await operation.finishAndEnd(withResult: 1)
        }
    }

    @Test(
        "Canceling a waiting operation removes it from all lines, and the waiters behind it move up",
        arguments: StartingWay.allCases)
    func cancelledWaiter(way: StartingWay) async throws {
        let first = OperationCategory("first"), second = OperationCategory("second")
        let holder = driven("holder", first), waiter = driven("waiter", first, second), next = driven("next", second)
        let starter = Starter(way)
        for (operation, category) in [(holder, first), (waiter, second), (next, second)] {
            try starter.start(operation)
            #expect(await eventually { category.holders.last === operation || category.waiters.last === operation })
        }
        #expect(next.calls.events == [])
        await waiter.cancelAndEnd()
        #expect(await next.calls.events(atLeast: 1) == ["main"])
        #expect(waiter.calls.events == [])
        // A queue thread that is requesting the category withdraws its request when it sees the end.
        #expect(await eventually { first.waitingCount == 0 && second.waitingCount == 0 })
        holder.finish(withResult: 1)
        next.finish(withResult: 1)
        #expect(await eventually { first.holders.isEmpty && second.holders.isEmpty })
    }

    @Test func `a canceled holder keeps its categories until it has wound down`() async throws {
        let category = OperationCategory("slow to leave")
        let holder = HandDriven("holder", windsDown: true)
        holder.categories = [category]
        let next = driven("next", category)
        holder.start()
        next.start()
        holder.cancel()
        #expect(category.holders == [holder] && next.calls.events == [])
        holder.finish(withResult: 1)
        #expect(await next.calls.events(atLeast: 1) == ["main"])
        next.finish(withResult: 1)
    }

    @Test func `an operation that waits for a slot holds no category and can get a dependency`() async throws {
        let category = OperationCategory("both want it")
        let manager = QueueManager("busy", width: 1)
        let busy = HandDriven("busy")
        try await manager.addAndBegin(busy)
        let operation = driven("operation", category), upstream = driven("upstream", category)
        try manager.add(operation)
        #expect(await eventually { category.waiters == [operation] })
        #expect(category.holders.isEmpty)
        upstream.start()
        #expect(upstream.calls.events == ["main"])
        try operation.depend(on: upstream, otherwise: .runAnyway)
        #expect(category.waitingCount == 0)
        busy.finish(withResult: 1)
        #expect(operation.calls.events == [])
        upstream.finish(withResult: 1)
        #expect(await operation.calls.events(atLeast: 1) == ["main"])
        await operation.finishAndEnd(withResult: 1)
        #expect(category.holders.isEmpty && category.waitingCount == 0)
    }

    @Test(arguments: [0, -1, Int.min])
    func `a limit below 1 counts as 1, and a duplicate category counts once`(limit: Int) async {
        let category = OperationCategory("odd", limit: limit)
        #expect(category.limit == 1)
        let operation = driven("operation", category, category)
        #expect(operation.categories == [category])
        operation.start()
        #expect(operation.calls.events == ["main"])
        operation.finish(withResult: 1)
    }

    @Test func `admissionStanding reports the category that an operation waits for`() async {
        let category = OperationCategory("asked")
        let holder = driven("holder", category), waiter = driven("waiter", category)
        holder.start()
        waiter.start()
        guard case .categories([category]) = waiter.admissionStanding
        else { return unmet("\(waiter.admissionStanding)") }
        guard case .none = holder.admissionStanding else { return unmet("\(holder.admissionStanding)") }
        holder.finish(withResult: 1)
        await waiter.finishOnceBegun(withResult: 1)
    }

    @Test(
        "Operations with random categories in all kinds of queues end without exceeding a limit",
        arguments: UInt64(0)..<4)
    func randomSubsets(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let categories = (0..<5).map { OperationCategory("\($0)", limit: $0 % 2 + 1) }
        let inside = Locked([Int](repeating: 0, count: 5))
        let excess = EventRecorder<Int>()
        let starters = StartingWay.allCases.map(Starter.init)
        var operations: [ManagedOperation] = []
        for number in 0..<Rounds.count(ci: 300, soak: 3_000) {
            let chosen = (0..<5).filter { _ in random.chance(1, in: 3) }.shuffled(using: &random)
            let operation = ClosureOperation<Void, Never> {
                for category in chosen {
                    let count = inside.withLock { inside in
                        inside[category] += 1
                        return inside[category]
                    }
                    if count > category % 2 + 1 { excess.record(category) }
                }
                for category in chosen { inside.withLock { $0[category] -= 1 } }
            }
            operation.categories = chosen.map { categories[$0] }
            operations.append(operation)
            try starters[number % 3].start(operation)
            if random.chance(1, in: 10) { operations[Int.random(in: 0...number, using: &random)].cancel() }
        }
        for operation in operations { await operation.ended() }
        #expect(excess.events == [])
        #expect(await eventually { categories.allSatisfy { $0.holders.isEmpty && $0.waitingCount == 0 } })
    }

    @Test func `10,000 operations that wait for one category run in order`() async throws {
        let category = OperationCategory("line")
        let order = EventRecorder<Int>()
        let holder = driven("holder", category)
        holder.start()
        let manager = QueueManager("line", width: 2)
        for number in 0..<10_000 {
            let operation = ClosureOperation<Void, Never> { order.record(number) }
            operation.categories = [category]
            try manager.add(operation)
        }
        holder.finish(withResult: 1)
        #expect(await order.events(atLeast: 10_000) == Array(0..<10_000))
    }
}
