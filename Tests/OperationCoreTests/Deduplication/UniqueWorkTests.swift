// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct UniqueWorkTests {
    private let queue = QueueManager("unique", width: 4)

    @Test func `keep leaves the present one and cancels the new one`() async throws {
        let present = HandDriven("present"), new = HandDriven()
        #expect(try queue.addUnique(present, key: "a", policy: .keep))
        #expect(try !queue.addUnique(new, key: "a", policy: .keep))
        await new.end()
        #expect(new.cancellationCause?.code == .alreadyPresent)
        #expect(new.cancellationCause?.message.contains("present is in queue unique") == true)
        _ = await present.calls.events(atLeast: 1)
        present.finish(withResult: 1)
        await present.end()
        let next = HandDriven()
        #expect(try queue.addUnique(next, key: "a", policy: .keep))
        _ = await next.calls.events(atLeast: 1)
        next.finish(withResult: 1)
        await next.end()
        #expect(new.calls.events.isEmpty)
    }

    @Test func `keep takes the new one where the present one was cancelled and it waits for its end`() async throws {
        let present = HandDriven(windsDown: true), new = HandDriven()
        try queue.addUnique(present, key: "a", policy: .keep)
        _ = await present.calls.events(atLeast: 1)
        present.cancel()
        #expect(try queue.addUnique(new, key: "a", policy: .keep))
        #expect(!new.isReady)
        present.finish(withResult: 1)
        _ = await new.calls.events(atLeast: 1)
        new.finish(withResult: 2)
        await new.end()
    }

    @Test func `replace cancels all that are present and runs after they ended`() async throws {
        let first = HandDriven(windsDown: true), second = HandDriven(), third = HandDriven("third")
        try queue.addUnique(first, key: "a", policy: .append)
        try queue.addUnique(second, key: "a", policy: .append)
        _ = await first.calls.events(atLeast: 1)
        #expect(try queue.addUnique(third, key: "a", policy: .replace))
        #expect(first.cancellationCause?.code == .replaced && second.cancellationCause?.code == .replaced)
        #expect(first.cancellationCause?.message.contains("third") == true)
        await second.end()
        #expect(second.calls.events.isEmpty && third.calls.events.isEmpty && !third.isReady)
        first.finish(withResult: 1)
        _ = await third.calls.events(atLeast: 1)
        third.finish(withResult: 3)
        await third.end()
        #expect(third.outcome == .success(3))
    }

    @Test func `append runs one after another however they end`() async throws {
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
        _ = await blocker.calls.events(atLeast: 1)
        blocker.finish(withResult: 0)
        for operation in operations { await operation.end() }
        #expect(log.events == [0, 1, 2, 3, 5])
    }

    @Test func `other keys and other queues are others`() async throws {
        let operations = (0..<3).map { _ in HandDriven() }
        try queue.addUnique(operations[0], key: "a", policy: .keep)
        try queue.addUnique(operations[1], key: "b", policy: .keep)
        try QueueManager("other").addUnique(operations[2], key: "a", policy: .keep)
        for operation in operations {
            _ = await operation.calls.events(atLeast: 1)
            operation.finish(withResult: 1)
            await operation.end()
        }
    }

    @Test func `an operation that the queue refuses replaces nobody and can be used elsewhere`() async throws {
        let present = HandDriven(), started = HandDriven()
        try queue.addUnique(present, key: "a", policy: .replace)
        started.start()
        #expect(throws: QueueError.self) { try queue.addUnique(started, key: "a", policy: .replace) }
        #expect(throws: QueueError.self) { try queue.addUnique(present, key: "a", policy: .replace) }
        #expect(!present.isCancelled && started.state == .executing)
        started.finish(withResult: 1)
        present.cancel()
        await present.end()
    }

    private func refusal(_ operation: HandDriven, _ policy: UniqueWorkPolicy) -> String? {
        do throws(QueueError) {
            try queue.addUnique(operation, key: "a", policy: policy)
            return nil
        } catch {
            return error.code.description
        }
    }

    @Test func `who the present one waits for is refused behind it, and runs without the key`() async throws {
        let present = HandDriven("present"), new = HandDriven("new")
        present.addDependency(new)
        try queue.addUnique(present, key: "a", policy: .append)
        #expect(refusal(new, .append) == "cycle")
        try queue.add(new)
        _ = await new.calls.events(atLeast: 1)
        new.finish(withResult: 1)
        _ = await present.calls.events(atLeast: 1)
        present.finish(withResult: 1)
        await queue.drained()
        #expect(queue.engine.uniqueWork.count == 0)
    }

    @Test func `who has its result and waits is not waited for by what it waits for`() async throws {
        let present = HandDriven("present"), new = HandDriven("new")
        present.addDependency(new)
        try queue.addUnique(present, key: "a", policy: .append)
        present.finish(withResult: 1)
        #expect(refusal(new, .keep) == "cycle")
        #expect(refusal(new, .replace) == "cycle")
        try queue.add(new)
        _ = await new.calls.events(atLeast: 1)
        new.finish(withResult: 1)
        await present.end()
    }

    @Test func `who waits for the new one is replaced all the same`() async throws {
        let present = HandDriven("present"), new = HandDriven("new")
        present.addDependency(new)
        try queue.addUnique(present, key: "a", policy: .append)
        #expect(refusal(new, .replace) == nil)
        _ = await new.calls.events(atLeast: 1)
        #expect(present.cancellationCause?.code == .replaced)
        new.finish(withResult: 1)
        await queue.drained()
    }

    @Test func `a cycle that comes later is refused too, also where one between has left`() async throws {
        let gate = HandDriven("gate"), first = HandDriven("first"), middle = HandDriven("middle")
        let last = HandDriven("last")
        first.addDependency(gate)
        for operation in [first, middle, last] { try queue.addUnique(operation, key: "a", policy: .append) }
        #expect(throws: DependencyError.self) { try first.depend(on: last, otherwise: .runAnyway) }
        middle.cancel()
        await middle.end()
        #expect(throws: DependencyError.self) { try first.depend(on: last, otherwise: .runAnyway) }
        gate.cancel()
        gate.start()
        for operation in [first, last] {
            _ = await operation.calls.events(atLeast: 1)
            operation.finish(withResult: 1)
        }
        await queue.drained()
    }

    @Test func `those that leave while the first goes on take no memory`() async throws {
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

    @Test func `nothing is left of those that ended`() async throws {
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
}
