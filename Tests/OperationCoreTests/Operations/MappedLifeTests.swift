// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// A mapped operation behaves like its original, wherever it runs.
@Suite(.timeLimit(.minutes(2)))
struct MappedLifeTests {
    private func work(_ name: String, _ result: Int) -> SyncProbe {
        SyncProbe(name) { $0.finish(withResult: result) }
    }

    /// Two operations, the second of which depends on the first.
    private func pair() throws -> (user: SyncProbe, posts: SyncProbe) {
        let user = work("user", 1), posts = work("posts", 2)
        try posts.depend(on: user, otherwise: .cancel)
        return (user, posts)
    }

    // Slots.

    @Test func `a mapped operation takes no slot while its original waits in a QueueManager`() async throws {
        for width in 1...3 {
            let queue = QueueManager("width", width: width)
            let user = work("user", 1)
            let mapped = try (0..<width).map { number in
                let posts = work("posts", number)
                try posts.depend(on: user, otherwise: .cancel)
                return posts.mapResult { $0 }
            }
            try queue.add(mapped)
            try await queue.addAndDrain([user])
            #expect(mapped.map(\.outcome) == (0..<width).map { .success($0) })
        }
    }

    @Test func `a mapped operation takes no slot while its original waits in a declared group`() async throws {
        let (user, posts) = try pair()
        let group = GroupOperation.all([posts.mapError { $0 }, user.mapError { $0 }], width: 1)
        #expect(try await group.run() == [2, 1])
    }

    @Test func `a mapped operation takes no slot while its original waits in a group with a body`() async throws {
        let (user, posts) = try pair()
        let group = GroupOperation(width: 1) { group in
            async let second = group.run(posts.mapResult { $0 * 10 })
            async let first = group.run(user.mapResult { $0 * 10 })
            return try await [first, second]
        }
        #expect(try await group.run() == [10, 20])
    }

    @Test func `a mapped operation takes no slot while its original waits in an OperationQueue`() async throws {
        for _ in 0..<20 {
            let (user, posts) = try pair()
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
            let mapped = posts.mapResult { $0 }
            queue.addOperation(mapped)
            queue.addOperation(user.mapResult { $0 })
            #expect(try await mapped.value == 2)
            await mapped.ended()
        }
    }

    @Test func `an operation and an operation mapped from it cannot both be added to queues or groups`() throws {
        let queue = QueueManager.suspended("once")
        let original = HandDriven("original")
        let mapped = original.mapResult { $0 }.mapError { $0 }
        try queue.add(mapped)
        #expect(throws: OperationSetupError.self) { try queue.add(original) }
        #expect(throws: OperationSetupError.self) { try queue.add(original.mapResult { $0 }) }
        #expect(throws: OperationSetupError.self) { try GroupOperation().add(original) }
        #expect(queue.engine.operations.count == 1)
        queue.cancelAll()
        queue.isSuspended = false
    }

    @Test func `children of a mapped group count toward the width of its queue`() async throws {
        let queue = QueueManager("narrow", width: 2)
        let running = Tally()
        let groups = (0..<3).map { _ in
            let children = (0..<8).map { number in
                SyncProbe { operation in
                    running.during { for _ in 0..<1000 { sched_yield() } }
                    operation.finish(withResult: number)
                }
            }
            return GroupOperation.all(children).mapError { $0 }
        }
        try await queue.addAndDrain(groups)
        #expect(running.runs == 24)
        #expect(running.peak <= 2)
    }

    @Test func `children of a mapped group do not start while its queue is suspended`() async throws {
        let queue = QueueManager("pausing", width: 1)
        let first = HandDriven("first"), second = work("second", 2)
        let group = GroupOperation.all([first.mapResult { $0 }, second.mapResult { $0 }]).mapError { $0 }
        try queue.add(group)
        _ = await first.calls.events(atLeast: 1)
        queue.isSuspended = true
        await first.finishAndEnd(withResult: 1)
        #expect(second.state == .notStarted)
        #expect(queue.engine.operations.contains { ($0 as? ManagedOperation)?.state == .notStarted })
        queue.isSuspended = false
        #expect(try await group.value == [1, 2])
    }

    // Winding down.

    @Test func `a canceled group and its dependents wait for a mapped child that winds down`() async throws {
        let child = HandDriven("child", windsDown: true), after = HandDriven("after")
        let group = GroupOperation.all([child.mapError { $0 }.mapResult { $0 }])
        let mapped = group.mapError { $0 }
        after.addDependency(mapped)
        mapped.startAndKeepAlive()
        after.startAndKeepAlive()
        _ = await child.calls.events(atLeast: 1)
        mapped.cancel()
        #expect(mapped.isCancelled && child.isCancelled && group.isCancelled)
        #expect(!mapped.isFinished && !group.isFinished && !child.isFinished)
        #expect(after.state == .notStarted)
        child.finish(withResult: 1)
        _ = await after.calls.events(atLeast: 1)
        #expect(mapped.isFinished && group.isFinished && child.isFinished)
        after.finish(withResult: 0)
    }

    @Test func `the next operation in a queue waits for a mapped operation that winds down`() async throws {
        let queue = QueueManager("one", width: 1)
        let first = HandDriven("first", windsDown: true), second = HandDriven("second")
        let mapped = first.mapResult { $0 }
        try queue.add(mapped)
        try queue.add(second.mapResult { $0 })
        _ = await first.calls.events(atLeast: 1)
        mapped.cancel()
        #expect(mapped.outcome == .cancelled(.requested))
        #expect(queue.counts.running == 1)
        #expect(second.state == .notStarted)
        first.finish(withResult: 1)
        await second.finishOnceBegun(withResult: 2)
        await queue.drained()
    }

    @Test func `a mapped operation leaves its category after its original has wound down`() async throws {
        let category = OperationCategory("one at a time")
        let first = HandDriven("first", windsDown: true), second = HandDriven("second")
        first.categories = [category]
        let mapped = first.mapResult { $0 }, next = second.mapResult { $0 }
        next.categories = [category]
        #expect(second.categories == [category])
        let queue = QueueManager("category")
        try queue.add([mapped, next])
        _ = await first.calls.events(atLeast: 1)
        mapped.cancel()
        #expect(second.state == .notStarted)
        first.finish(withResult: 1)
        await second.finishOnceBegun(withResult: 2)
        await queue.drained()
    }

    @Test func `a mapped group that times out ends after its children end`() async throws {
        let clock = ManualClock()
        let child = HandDriven("child", windsDown: true)
        let mapped = GroupOperation.all([child.mapError { $0 }]).mapError { $0 }
        mapped.clock = clock
        mapped.timeout = .seconds(1)
        mapped.startAndKeepAlive()
        _ = await child.calls.events(atLeast: 1)
        clock.advance(by: .seconds(2))
        #expect(mapped.cancellationCause?.code == .timedOut)
        #expect(!mapped.isFinished)
        child.finish(withResult: 1)
        await mapped.ended()
        #expect(child.isFinished)
    }

    @Test func `a dependent of a mapped operation starts after the original ends`() async throws {
        for _ in 0..<100 {
            let original = work("original", 1)
            let mapped = original.mapResult { $0 }
            let after = SyncProbe { $0.finish(withResult: original.isFinished && mapped.isFinished ? 1 : 0) }
            try after.depend(on: mapped, otherwise: .cancel)
            let queue = QueueManager("order", width: 2)
            try queue.add([after, mapped])
            #expect(try await after.value == 1)
        }
    }

    // Properties of a mapped operation.

    @Test func `a mapped operation uses the callback queue of its original unless it sets one`() async throws {
        let first = DispatchQueue(label: "first"), second = DispatchQueue(label: "second")
        let original = work("original", 1)
        let mapped = original.mapResult { $0 }, other = original.mapResult { $0 }
        let further = other.mapResult { $0 }
        original.callbackQueue = first
        other.callbackQueue = second
        #expect(mapped.callbackQueue === first && further.callbackQueue === second && original.callbackQueue === first)
        let order = EventRecorder<String>()
        for (name, operation) in [("mapped", mapped), ("other", other), ("further", further)] {
            operation.successHandler = { [operation] _ in
                dispatchPrecondition(condition: .onQueue(operation.callbackQueue))
                order.record(name)
            }
        }
        original.successHandler = { _ in order.record("original") }
        mapped.start()
        #expect(Set(await order.events(atLeast: 4)) == ["original", "mapped", "other", "further"])
    }

    @Test func `a mapped operation shares priority, quality of service and name with its original`() throws {
        let original = work("original", 1)
        original.queuePriority = .high
        let mapped = original.mapResult { $0 }.mapError { $0 }
        #expect(mapped.queuePriority == .high && mapped.name == "original")
        mapped.queuePriority = .veryLow
        mapped.qualityOfService = .background
        mapped.name = "mapped"
        #expect(original.queuePriority == .veryLow && original.qualityOfService == .background)
        #expect(original.name == "mapped")
    }

    @Test func `a priority set before or after mapping applies in both kinds of queues`() async throws {
        let order = EventRecorder<String>()
        func recording(_ name: String) -> SyncProbe {
            SyncProbe.recording(name, in: order)
        }
        for isOurs in [true, false] {
            order.forget()
            let ours = QueueManager.suspended("urgency", width: 1), foundation = OperationQueue()
            foundation.maxConcurrentOperationCount = 1
            foundation.isSuspended = true
            let before = recording("before"), after = recording("after"), normal = recording("normal")
            before.queuePriority = .veryHigh
            let mapped = after.mapResult { $0 }.mapResult { $0 }
            after.queuePriority = .high
            for operation in [normal.mapResult { $0 }, mapped, before.mapResult { $0 }] {
                if isOurs { try ours.add(operation) } else { foundation.addOperation(operation) }
            }
            ours.isSuspended = false
            foundation.isSuspended = false
            #expect(await order.events(atLeast: 3) == ["before", "after", "normal"])
        }
    }

    @Test func `the timeout of a mapped operation excludes the dependency wait of its original`() async throws {
        let clock = ManualClock(), upstream = HandDriven()
        let original = HandDriven()
        original.clock = clock
        original.addDependency(upstream)
        let mapped = original.mapResult { $0 }
        mapped.timeout = .seconds(1)
        mapped.startAndKeepAlive()
        clock.advance(by: .seconds(5))
        #expect(mapped.state == .notStarted)
        upstream.startAndFinish(withResult: 0)
        await original.finishOnceBegun(withResult: 1)
        #expect(mapped.outcome == .success(1))
    }

    @Test func `a mapped operation has the states of its original except the last`() async throws {
        let original = HandDriven()
        let mapped: AsyncOperation<String, Never> = original.mapOutcome { .success($0.word) }
        let states = mapped.states.makeAsyncIterator(), others = original.states.makeAsyncIterator()
        mapped.start()
        #expect(mapped.suspend() && original.state == .suspended)
        original.resume()
        #expect(mapped.suspend() && mapped.resume() && original.state == .executing)
        original.cancel()
        var seen: [OperationState] = [], seenOfOriginal: [OperationState] = []
        while let state = await states.next() { seen.append(state) }
        while let state = await others.next() { seenOfOriginal.append(state) }
        let common: [OperationState] = [.notStarted, .executing, .suspended, .executing, .suspended, .executing]
        #expect(seen == common + [.finished] && seenOfOriginal == common + [.cancelled])
        #expect(mapped.state == .finished && original.state == .cancelled)
    }
}
