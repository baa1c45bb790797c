// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("The events of a queue", .nothingStaysAlive, .timeLimit(.minutes(3)))
struct QueueEventTests {
    @Test func `events starts with the current state, followed by numbered changes without gaps`() async throws {
        let queue = QueueManager("order", width: 1)
        let early = HandDriven("early")
        try await queue.addAndBegin(early)
        let updates = queue.events(keeping: 1_024).makeAsyncIterator()
        let late = HandDriven("late") { $0.finish(withResult: 1) }
        late.addDependency(early)
        try queue.add(late)
        queue.width = 2
        queue.isSuspended = true
        queue.isSuspended = true
        early.finish(withError: .first)
        await queue.resumeAndDrain()
        let begin = try #require(await updates.next()?.snapshot)
        #expect(begin.entries(.running).map(\.name) == ["early"])
        #expect(begin.counts.added == 1)
        var lines: [String] = []
        for _ in 0..<8 { lines.append(try #require(await updates.next()?.event).description) }
        #expect(
            lines == [
                "1 added late, waiting", "2 set the width to 2", "3 suspended the queue", "4 ended early, failure",
                "5 ready late", "6 resumed the queue", "7 started late", "8 ended late, success",
            ])
    }

    @Test func `the next change resumes a reader that awaits an event`() async throws {
        let queue = QueueManager("waking")
        let reader = Task {
            var names: [String] = []
            for await update in queue.events {
                if case .event(let event) = update { names.append(event.description) }
                if update.snapshot != nil { try queue.add(name: "one") {} }
                if names.count == 3 { break }
            }
            return names
        }
        #expect(try await reader.value == ["1 added one, ready", "2 started one", "3 ended one, success"])
    }

    @Test func `a slow reader gets the number of missed events and continues from a fresh snapshot`() async throws {
        let queue = QueueManager.suspended("overflow", width: 1)
        let updates = queue.events(keeping: 4).makeAsyncIterator()
        var state = try #require(await updates.next()?.snapshot)
        for _ in 0..<3 { try queue.add {} }
        for _ in 0..<3 { state.apply(try #require(await updates.next()?.event)) }
        #expect(state == queue.snapshot)
        for _ in 0..<7 { try queue.add {} }
        guard case .missed(let count, let fresh) = try #require(await updates.next())
        else { return unmet("The reader did not learn of the missed events.") }
        #expect(count == 7)
        #expect(fresh == queue.snapshot)
        #expect(fresh.counts.ready == 10)
        try queue.add {}
        #expect(await updates.next()?.event?.number == 11)
        await queue.resumeAndDrain()
    }

    @Test(.comparesObjects)
    func `a reader's loop ends after the queue is freed and its operations ended`() async throws {
        let census = LiveObjects()
        var queue: QueueManager? = QueueManager("lifetime")
        let operation = HandDriven("last")
        try queue?.add(operation)
        if let queue { census.track(queue) }
        guard let events = queue?.events else { return }
        let began = Gate()
        let reader = Task {
            var last: QueueEvent?
            for await update in events {
                began.open()
                if let event = update.event { last = event }
            }
            return last
        }
        await began.passage()
        queue = nil
        #expect(census.count == 0)
        operation.finish(withResult: 1)
        let last = await reader.value
        guard case .ended(let entry, .success)? = last?.change
        else { return unmet("The last event is \(String(describing: last))") }
        #expect(entry.operation === operation)
        // A loop over the events of a freed queue ends immediately.
        for await _ in events { Issue.record("A freed queue sent an event.") }
    }

    @Test func `a reader that missed events gets the last state when the queue is freed`() async throws {
        var queue: QueueManager? = QueueManager("last state")
        let updates = try #require(queue?.events(keeping: 1)).makeAsyncIterator()
        for _ in 0..<10 { try queue?.add {} }
        #expect(await updates.next()?.snapshot?.counts.added == 0)
        await queue?.drained()
        queue = nil
        var last: QueueSnapshot?
        while let update = await updates.next() { last = update.snapshot ?? last }
        #expect(last?.counts.finished == 10)
    }

    @Test func `canceling the task of a reader ends its loop and its subscription`() async throws {
        let queue = QueueManager("cancelling")
        let began = Gate()
        let reader = Task {
            for await _ in queue.events { began.open() }
        }
        await began.passage()
        reader.cancel()
        await reader.value
        #expect(!queue.engine.isFollowed)
        try queue.add {}
        await queue.drained()
        #expect(queue.snapshot.number == 0)
    }

    @Test func `unread events do not keep operations alive after the reader is freed`() async throws {
        let census = LiveObjects()
        let queue = QueueManager("release")
        do {
            let updates = queue.events(keeping: 1_024).makeAsyncIterator()
            try queue.add(census.track(HandDriven("kept") { $0.finish(withResult: 1) }))
            await queue.drained()
            withExtendedLifetime(updates) {}
        }
        let left = try await TestThread.run { census.countAtRest() }
        #expect(left == 0)
    }
}
