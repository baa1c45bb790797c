// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("The steps between the dependencies and the body", .timeLimit(.minutes(3)))
struct AdmissionOrderTests {
    @Test(
        "An operation waits for dependencies, conditions, throttle and categories in this order",
        arguments: StartingWay.allCases)
    func order(way: StartingWay) async throws {
        let clock = ManualClock()
        let registry = OperationThrottle(clock: clock)
        let category = OperationCategory("order")
        let gate = Gate(), asked = Gate()
        let holder = HandDriven("holder"), runner = HandDriven("runner"), upstream = HandDriven("upstream")
        holder.categories = [category]
        runner.throttle = .init(key: "order", interval: .seconds(5), early: .wait, in: registry)
        holder.start()
        runner.start()
        let operation = HandDriven("operation")
        operation.addDependency(upstream)
        operation.addCondition("gate") { _ in
            asked.open()
            await gate.passage()
            return .satisfied
        }
        operation.throttle = .init(key: "order", interval: .seconds(5), early: .wait, in: registry)
        operation.categories = [category]
        let starter = Starter(way)
        try starter.start(operation)
        #expect(!asked.isOpen)

        upstream.startAndFinish(withResult: 1)
        await asked.passage()
        #expect(registry.waitingCount(of: "order") == 0 && category.waitingCount == 0)
        gate.open()
        #expect(await eventually { registry.waiters(of: "order") == [operation] })
        #expect(category.waitingCount == 0)
        runner.finish(withResult: 1)
        #expect(await eventually { clock.pendingCount == 1 })
        clock.advance(by: .seconds(5))
        #expect(await eventually { category.waiters == [operation] })
        #expect(operation.calls.events == [] && operation.state == .notStarted)
        holder.finish(withResult: 1)
        #expect(await operation.calls.events(atLeast: 1) == ["main"])
        #expect(category.holders == [operation] && registry.runner(of: "order") === operation)
        await operation.finishAndEnd(withResult: 1)
        #expect(await eventually { category.holders.isEmpty && registry.runner(of: "order") == nil })
    }

    @Test(arguments: StartingWay.allCases)
    func `a deadline that passes while an operation waits for a category ends it`(way: StartingWay) async throws {
        let clock = ManualClock()
        let category = OperationCategory("deadline")
        let holder = HandDriven("holder"), operation = HandDriven("operation")
        holder.categories = [category]
        holder.start()
        operation.clock = clock
        operation.deadline = OperationInstant(offset: .seconds(10))
        operation.categories = [category]
        let starter = Starter(way)
        try starter.start(operation)
        #expect(await eventually { category.waitingCount == 1 })
        clock.advance(by: .seconds(10))
        await operation.ended()
        #expect(operation.cancellationCause?.code == .deadlinePassed)
        #expect(await eventually { category.waitingCount == 0 })
        holder.finish(withResult: 1)
    }

    @Test
    func `with many operations that have a condition, each handler is called once and none is lost`() async throws {
        let count = Rounds.count(ci: 20_000, soak: 1_000_000)
        let manager = QueueManager("conditions", width: 4)
        let told = EventRecorder<Int>()
        let queue = DispatchQueue(label: "told")
        for slice in stride(from: 0, to: count, by: 10_000) {
            for number in slice..<min(slice + 10_000, count) {
                let operation = ClosureOperation<Int, Never> { number }
                operation.callbackQueue = queue
                operation.successHandler = { told.record($0) }
                operation.addCondition("yes") { _ in .satisfied }
                try manager.add(operation)
            }
            _ = await told.events(atLeast: min(slice + 10_000, count))
        }
        #expect(Set(told.events).count == count && told.count == count)
        if Rounds.isSoak { print("soak: operations with a condition: \(count)") }
    }
}
