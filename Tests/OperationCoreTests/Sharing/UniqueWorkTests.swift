// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(1)))
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
