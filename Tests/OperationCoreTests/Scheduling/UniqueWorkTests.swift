// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@testable import OperationCore

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct UniqueWorkTests {
    private let queue = QueueManager("unique", width: 4)

    @Test func `keep cancels the new operation while another one is present`() async throws {
        let present = HandDriven("present"), new = HandDriven()
        #expect(try queue.addUnique(present, key: "a", policy: .keep))
        #expect(try !queue.addUnique(new, key: "a", policy: .keep))
        await new.ended()
        #expect(new.cancellationCause?.code == .alreadyPresent)
        #expect(new.cancellationCause?.message.contains("present is in queue unique") == true)
        await present.finishOnceBegun(withResult: 1)
        await present.ended()
        let next = HandDriven()
        #expect(try queue.addUnique(next, key: "a", policy: .keep))
        await next.finishOnceBegun(withResult: 1)
        await next.ended()
        #expect(new.calls.events.isEmpty)
    }

    @Test func `a key that does not equal itself is not stored, and its operations all run`() async throws {
        let operations = [HandDriven(), HandDriven()]
        for operation in operations { #expect(try queue.addUnique(operation, key: Double.nan, policy: .keep)) }
        #expect(queue.engine.uniqueWork.count == 0)
        for operation in operations { await operation.finishOnceBegun(withResult: 1) }
    }

    @Test func `keep accepts a new operation if the present one is canceled, and runs it afterward`() async throws {
        let present = HandDriven(windsDown: true), new = HandDriven()
        try queue.addUnique(present, key: "a", policy: .keep)
        _ = await present.calls.events(atLeast: 1)
        present.cancel()
        #expect(try queue.addUnique(new, key: "a", policy: .keep))
        #expect(!new.isReady)
        present.finish(withResult: 1)
        await new.finishOnceBegun(withResult: 2)
        await new.ended()
    }

    @Test func `replace cancels all present operations and runs the new one after they have ended`() async throws {
        let first = HandDriven(windsDown: true), second = HandDriven(), third = HandDriven("third")
        try queue.addUnique(first, key: "a", policy: .append)
        try queue.addUnique(second, key: "a", policy: .append)
        _ = await first.calls.events(atLeast: 1)
        #expect(try queue.addUnique(third, key: "a", policy: .replace))
        #expect(first.cancellationCause?.code == .replaced && second.cancellationCause?.code == .replaced)
        #expect(first.cancellationCause?.message.contains("third") == true)
        await second.ended()
        #expect(second.calls.events.isEmpty && third.calls.events.isEmpty && !third.isReady)
        first.finish(withResult: 1)
        await third.finishOnceBegun(withResult: 3)
        await third.ended()
        #expect(third.outcome == .success(3))
    }

    @Test func `append runs operations one after another, however they end`() async throws {
        let log = EventRecorder<Int>()
        let operations = (0..<6).map { number in
            HandDriven(
                hooks: .init(main: {
                    log.record(number)
                    number == 2 ? $0.finish(withError: .first) : $0.finish(withResult: number)
                }))
        }
        let blocker = HandDriven()
        try queue.addUnique(blocker, key: 1, policy: .append)
        for operation in operations { try queue.addUnique(operation, key: 1, policy: .append) }
        operations[4].cancel()
        #expect(log.count == 0)
        await blocker.finishOnceBegun(withResult: 0)
        for operation in operations { await operation.ended() }
        #expect(log.events == [0, 1, 2, 3, 5])
    }

    @Test func `no barrier comes between two operations with the same key that are added concurrently`() async throws {
        let first = HandDriven("first"), second = HandDriven("second"), barrier = HandDriven("barrier")
        let engine = queue.engine
        // Another thread adds the other two just before the first one enters the queue.
        let isToRun = try engine.uniqueWork.add(first, UniqueWorkKey("a"), .append, to: engine) {
            epoch throws(OperationSetupError) in
            try queue.addUnique(second, key: "a", policy: .append)
            try queue.addBarrier(barrier)
            try engine.add(first, in: epoch)
        }
        #expect(isToRun)
        await first.finishOnceBegun(withResult: 1)
        await second.finishOnceBegun(withResult: 2)
        await barrier.finishOnceBegun(withResult: 3)
        await queue.drained()
    }

    @Test func `an operation with a key that a full queue refuses blocks no barrier`() async throws {
        let present = HandDriven("present"), refused = HandDriven("refused"), barrier = HandDriven("barrier")
        queue.capacity = 1
        try queue.add(present)
        #expect(refusal(refused, .append) == "full")
        queue.capacity = nil
        try queue.addBarrier(barrier)
        await present.finishOnceBegun(withResult: 1)
        await barrier.finishOnceBegun(withResult: 2)
        await queue.drained()
    }

    @Test func `unique work with another key or in another queue is independent`() async throws {
        let operations = (0..<3).map { _ in HandDriven() }
        try queue.addUnique(operations[0], key: "a", policy: .keep)
        try queue.addUnique(operations[1], key: "b", policy: .keep)
        try QueueManager("other").addUnique(operations[2], key: "a", policy: .keep)
        for operation in operations {
            await operation.finishOnceBegun(withResult: 1)
            await operation.ended()
        }
    }

    @Test func `an operation that the queue refuses does not replace the present one`() async throws {
        let present = HandDriven(), started = HandDriven()
        try queue.addUnique(present, key: "a", policy: .replace)
        started.start()
        #expect(throws: OperationSetupError.self) { try queue.addUnique(started, key: "a", policy: .replace) }
        #expect(throws: OperationSetupError.self) { try queue.addUnique(present, key: "a", policy: .replace) }
        #expect(!present.isCancelled && started.state == .executing)
        started.finish(withResult: 1)
        await present.cancelAndEnd()
    }

    @Test func `keep does not cancel a child of a group, which the queue refuses`() async throws {
        let present = HandDriven(), child = ClosureOperation { 1 }
        let group = GroupOperation.all([child])
        try queue.addUnique(present, key: "a", policy: .keep)
        #expect(throws: OperationSetupError.self) { try queue.addUnique(child, key: "a", policy: .keep) }
        #expect(!child.isCancelled)
        #expect(try await group.run() == [1])
        await present.cancelAndEnd()
    }

    private func refusal(_ operation: HandDriven, _ policy: UniqueWorkPolicy) -> String? {
        thrown { () throws(OperationSetupError) in try queue.addUnique(operation, key: "a", policy: policy) }?.code
            .description
    }

    @Test func `append refuses a dependency of the present operation, which can run without the key`() async throws {
        let present = HandDriven("present"), new = HandDriven("new")
        present.addDependency(new)
        try queue.addUnique(present, key: "a", policy: .append)
        #expect(refusal(new, .append) == "cycle")
        try queue.add(new)
        await new.finishOnceBegun(withResult: 1)
        await present.finishOnceBegun(withResult: 1)
        await queue.drained()
        #expect(queue.engine.uniqueWork.count == 0)
    }

    @Test func `a dependency of a present operation that already has its result is refused as a cycle`() async throws {
        let present = HandDriven("present"), new = HandDriven("new")
        present.addDependency(new)
        try queue.addUnique(present, key: "a", policy: .append)
        present.finish(withResult: 1)
        #expect(refusal(new, .keep) == "cycle")
        #expect(refusal(new, .replace) == "cycle")
        try queue.add(new)
        await new.finishOnceBegun(withResult: 1)
        await present.ended()
    }

    @Test func `replace also cancels a present operation that depends on the new one`() async throws {
        let present = HandDriven("present"), new = HandDriven("new")
        present.addDependency(new)
        try queue.addUnique(present, key: "a", policy: .append)
        #expect(refusal(new, .replace) == nil)
        _ = await new.calls.events(atLeast: 1)
        #expect(present.cancellationCause?.code == .replaced)
        new.finish(withResult: 1)
        await queue.drained()
    }

    @Test func `a later dependency that closes a cycle is refused, even after an operation left`() async throws {
        let gate = HandDriven("gate"), first = HandDriven("first"), middle = HandDriven("middle")
        let last = HandDriven("last")
        first.addDependency(gate)
        for operation in [first, middle, last] { try queue.addUnique(operation, key: "a", policy: .append) }
        #expect(throws: OperationSetupError.self) { try first.depend(on: last, otherwise: .runAnyway) }
        await middle.cancelAndEnd()
        #expect(throws: OperationSetupError.self) { try first.depend(on: last, otherwise: .runAnyway) }
        gate.cancel()
        gate.start()
        for operation in [first, last] {
            await operation.finishOnceBegun(withResult: 1)
        }
        await queue.drained()
    }

    @Test func `the memory for replaced operations stays bounded while the first one winds down`() async throws {
        let first = HandDriven("first", windsDown: true)
        try queue.addUnique(first, key: "a", policy: .append)
        _ = await first.calls.events(atLeast: 1)
        for _ in 0..<200 { try queue.addUnique(HandDriven(), key: "a", policy: .replace) }
        #expect(queue.engine.uniqueWork.storedCount <= 64)
        first.finish(withResult: 1)
        queue.cancelAll()
        await queue.drained()
        let engine = queue.engine
        #expect(await eventually { engine.uniqueWork.storedCount == 0 })
    }

    @Test func `operations that were added with a key are freed after their end`() async throws {
        let census = LiveObjects()
        for policy in [UniqueWorkPolicy.keep, .replace, .append] {
            let queue = QueueManager("left", width: 1)
            for _ in 0..<20 {
                let operation = census.track(HandDriven(hooks: .init(main: { $0.finish(withResult: 1) })))
                try queue.addUnique(operation, key: "a", policy: policy)
            }
            await queue.drained()
        }
        #expect(try await TestThread.run { census.countAtRest() } == 0)
    }

    @Test func `an operation added behind a refused one gets its turn`() async throws {
        let queue = QueueManager("unique"), group = GroupOperation(policy: .failFast)
        let refused = NameCaller(), next = HandDriven()
        try group.add(refused)
        // Runs between the arrival of the refused operation in the line and its departure.
        refused.onName.withLock { hook in
            hook = { _ = try? queue.addUnique(next, key: "a", policy: .append) }
        }
        #expect(throws: OperationSetupError.self) { try queue.addUnique(refused, key: "a", policy: .append) }
        try #require(await eventually { next.state == .executing })
        next.finish(withResult: 1)
        await queue.drained()
        #expect(await eventually { queue.engine.uniqueWork.count == 0 })
    }

    @Test("The last operation that fits into the queue does not wait for refused operations", arguments: [0, 1])
    func racesForTheLastPlace(presentCount: Int) async throws {
        let rounds = Rounds.count(ci: 1_000, soak: 100_000)
        let failure = try await TestThread.run { () -> String? in
            let team = ThreadTeam(count: 4)
            for round in 0..<rounds {
                if let failure = autoreleasing({ race(team, presentCount) }) { return "round \(round): \(failure)" }
            }
            return nil
        }
        #expect(failure == nil)
    }
}

/// Plays one round, in which three threads add operations and the queue has room for one more, now or soon.
@available(*, noasync)
private func race(_ team: ThreadTeam, _ presentCount: Int) -> String? {
    let queue = QueueManager("last place", width: 2)
    queue.capacity = presentCount + 1
    let present = (0..<presentCount).map { _ in HandDriven() }
    let passing = HandDriven()
    let operations = (0..<3).map { _ in HandDriven(hooks: .init(main: { $0.finish(withResult: 1) })) }
    /// Returns the error with which the queue refused the operation, if any.
    let add: @Sendable (HandDriven) -> OperationSetupError? = { operation in
        thrown { () throws(OperationSetupError) in try queue.addUnique(operation, key: 0, policy: .append) }
    }
    for operation in present { _ = add(operation) }
    if presentCount > 0 { try? queue.add(passing) }
    let lost = Locked<[HandDriven]>([])
    team.run(
        operations.map { operation -> @Sendable () -> Void in
            { if add(operation) != nil { lost.withLock { $0.append(operation) } } }
        }
            + [{ passing.finish(withResult: 1) }])
    let refused = lost.withLock { $0 }
    var again: [HandDriven] = []
    for operation in refused {
        // No operation waits for a refused one, so adding it again closes no cycle.
        guard let error = add(operation) else { continue }
        if error.code != .full { return "refused again: \(error)" }
        again.append(operation)
    }
    for operation in present { operation.finish(withResult: 1) }
    for operation in operations where !again.contains(operation) {
        let ended = Gate()
        operation.whenEnded { ended.open() }
        if !ended.waits(upTo: .seconds(20)) { return "an operation waits forever" }
    }
    try? queue.waitUntilAllFinished()
    return nil
}
