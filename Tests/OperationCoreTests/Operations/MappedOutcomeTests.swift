// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// How the outcome of an original operation is converted and delivered.
@Suite(.timeLimit(.minutes(2)))
struct MappedOutcomeTests {
    private let original = HandDriven()

    @Test func `each conversion runs once, before the original is finished`() async throws {
        let conversions = EventRecorder<String>()
        let first = original.mapResult { [unowned original] result in
            conversions.record("first \(original.isFinished)")
            return result + 1
        }
        let second = first.mapResult { result in
            conversions.record("second")
            return result * 10
        }
        let third = first.mapResult { $0 * 100 }
        second.start()
        original.finish(withResult: 1)
        #expect(second.outcome == .success(20) && third.outcome == .success(200) && first.outcome == .success(2))
        #expect(conversions.events == ["first false", "second"])
    }

    @Test func `an operation mapped during a conversion or after the end is converted`() {
        let original = HandDriven(), made = Locked<[AsyncOperation<Int, Flaw>]>([])
        let first = original.mapResult { [unowned original] result in
            let late = original.mapResult { $0 + 10 }
            made.withLock { $0.append(late) }
            return result
        }
        first.start()
        original.finish(withResult: 1)
        let last = first.mapResult { $0 + 20 }
        #expect(made.withLock { $0 }.map(\.outcome) == [.success(11)])
        #expect(last.outcome == .success(21))
        #expect(Look(last) == .finished)
        #expect(Look(first) == .finished)
    }

    @Test func `an operation mapped after an early cancellation ends with its original`() async throws {
        let queue = QueueManager("late")
        original.cancel(because: .requested("early"))
        let mapped = original.mapResult { $0 }
        #expect(Look(mapped) == .cancelledEarly)
        try await queue.addAndDrain([mapped])
        #expect(Look(mapped) == .cancelled)
        #expect(queue.counts.cancelled == 1)
    }

    @Test func `only the mapped operation that was canceled stays canceled, others convert the cancellation`() {
        let mapped: AsyncOperation<String, Never> = original.mapOutcome { .success($0.word) }
        let other: AsyncOperation<String, Never> = original.mapOutcome { .success($0.word) }
        let further: AsyncOperation<String, Never> = mapped.mapOutcome { .success($0.word) }
        mapped.start()
        mapped.cancel()
        #expect(mapped.outcome == .cancelled(.requested))
        #expect(other.outcome == .success("cancelled requested"))
        #expect(further.outcome == .success("cancelled requested"))
    }

    @Test(.comparesObjects)
    func `queues and groups count the outcome of the mapped operation, not of its original`() async throws {
        let queue = QueueManager("counting")
        func broken() -> SyncProbe { SyncProbe { $0.finish(withError: .first) } }
        let saved: AsyncOperation<String, Never> = broken().mapOutcome { .success($0.word) }
        let spoilt: AsyncOperation<Int, Flaw> = SyncProbe { $0.finish(withResult: 1) }
            .mapOutcome { _ in .failure(.second) }
        try await queue.addAndDrain([saved, spoilt])
        #expect(queue.counts.finished == 1 && queue.counts.failed == 1)
        #expect(queue.failures.map { $0.operation === spoilt } == [true])
        let again: AsyncOperation<String, Never> = broken().mapOutcome { .success($0.word) }
        #expect(try await GroupOperation.all([again]).run() == ["failure first"])
    }

    @Test(.comparesObjects)
    func `a mapped child that converts cancellations is still canceled with its group`() async throws {
        let child = HandDriven()
        let mapped: AsyncOperation<String, Never> = child.mapOutcome { .success($0.word) }
        let group = GroupOperation.all([mapped])
        group.startAndKeepAlive()
        _ = await child.calls.events(atLeast: 1)
        group.cancel()
        #expect(mapped.isCancelled && group.isCancelled)
        await group.ended()
    }

    @Test func `rules, inputs and conditions use the converted outcome`() async throws {
        let queue = QueueManager("rules")
        let failing = SyncProbe { $0.finish(withError: .first) }
        let mended = failing.mapOutcome { _ -> OperationOutcome<String, Never> in .success("mended") }
        let received = EventRecorder<String>()
        let after = SyncProbe { $0.finish(withResult: 1) }
        try after.receive(from: mended, otherwise: .cancel) { _, text in received.record(text) }
        after.addCondition(.dependenciesSucceeded)
        let other = SyncProbe { $0.finish(withResult: 2) }
        try other.depend(on: failing, otherwise: .cancel)
        #expect(isMapping || after.dependencies == [mended])
        try await queue.addAndDrain([after, other, mended])
        #expect(after.outcome == .success(1) && received.events == ["mended"])
        #expect(other.cancellationCause?.code == .dependencyFailed)
    }

    @Test func `a failing rule fails the mapped operation and cancels its original`() async throws {
        let queue = QueueManager("failing")
        let upstream = SyncProbe("upstream") { $0.finish(withError: .first) }
        let original = HandDriven("original")
        let mapped = original.mapError { _ in NewError.converted }.mapError { $0 }
        try mapped.depend(on: upstream, otherwise: .fail { _ in .fromRule })
        try await queue.addAndDrain([mapped, upstream])
        #expect(mapped.outcome == .failure(.fromRule))
        #expect(original.cancellationCause?.code == .dependencyFailed)
        #expect(queue.counts.failed == 2)
        #expect(original.calls.events == [])
    }

    private enum NewError: Error { case converted, fromRule }

    @Test func `a dependency cycle through mapped operations is rejected`() throws {
        let first = HandDriven("first"), second = HandDriven("second")
        try first.depend(on: second.mapResult { $0 }, otherwise: .cancel)
        #expect(throws: OperationSetupError.self) { try second.mapError { $0 }.depend(on: first, otherwise: .cancel) }
        #expect(throws: OperationSetupError.self) { try first.depend(on: first.mapResult { $0 }, otherwise: .cancel) }
        let mapped = second.mapResult { $0 }
        first.removeDependency(mapped)
        #expect(first.isReady)
    }

    @Test func `finishing a mapped operation sets only its own outcome`() {
        let mapped = original.mapResult { $0 }, other = original.mapResult { $0 }
        mapped.finish(withResult: 7)
        #expect(mapped.outcome == .success(7) && original.outcome == nil)
        mapped.start()
        original.finish(withResult: 1)
        #expect(mapped.outcome == .success(7) && other.outcome == .success(1))
        #expect(Look(mapped) == .finished)
    }

    @Test func `canceling a mapped operation that has an outcome changes no outcome`() {
        let mapped = original.mapResult { $0 }
        mapped.startAndFinish(withResult: 7)
        mapped.cancel()
        #expect(original.state == .executing)
        original.finish(withResult: 1)
        #expect(mapped.outcome == .success(7) && original.outcome == .success(1))
    }

    @Test func `canceling a group cancels the original of a mapped child that already has an outcome`() async throws {
        let original = HandDriven(), group = GroupOperation()
        let mapped = original.mapResult { $0 }
        try group.add(mapped)
        group.startAndKeepAlive()
        _ = await original.calls.events(atLeast: 1)
        mapped.finish(withResult: 7)
        await group.cancelAndEnd()
        #expect(original.isCancelled && mapped.outcome == .success(7))
    }

    @Test func `a mapped operation and its original have separate completion blocks and observers`() async throws {
        let calls = EventRecorder<String>()
        let mapped = original.mapResult { $0 }
        original.completionBlock = { calls.record("original") }
        mapped.completionBlock = { calls.record("mapped") }
        mapped.observe(on: .global()) { outcome in calls.record("outcome \(outcome.word)") }
        original.startAndFinish(withResult: 1)
        #expect(Set(await calls.events(atLeast: 3)) == ["original", "mapped", "outcome success 1"])
    }

    @Test func `a mapped operation is freed when unused, and its original does not keep it alive`() async throws {
        let census = LiveObjects(), original = HandDriven()
        for _ in 0..<100 { _ = census.track(original.mapResult { $0 }) }
        #expect(census.count == 0)
        let queue = QueueManager("freed")
        try queue.add(census.track(census.track(SyncProbe { $0.finish(withResult: 1) }).mapResult { $0 }))
        await queue.drained()
        let after = HandDriven()
        do {
            let mapped = census.track(census.track(HandDriven()).mapResult { $0 })
            try after.receive(from: mapped, otherwise: .cancel) { _, _ in }
            after.removeDependency(mapped)
        }
        #expect(try await TestThread.run { census.countAtRest() } == 0)
        original.cancel()
    }
}

/// Mapped operations in an `OperationQueue`, which holds the mapped object and not its original.
@Suite("Foundation's queue: mapped operations", .timeLimit(.minutes(2)))
struct MappedInFoundationTests {
    @Test
    func `a mapped operation in an OperationQueue starts its original when ready and leaves the queue`() async throws {
        for _ in 0..<200 {
            let queue = OperationQueue(), upstream = HandDriven()
            let original = SyncProbe { $0.finish(withResult: OperationQueue.current === queue ? 1 : 0) }
            original.addDependency(upstream)
            let mapped = original.mapResult { $0 }.mapResult { $0 }
            queue.addOperation(mapped as Operation)
            upstream.start()
            DispatchQueue.global().async { upstream.finish(withResult: 0) }
            #expect(try await mapped.value == 1)
            try await emptied(queue)
        }
    }

    @Test func `operations mapped from one original in two queues run it once and leave both queues`() async throws {
        for _ in 0..<50 {
            let queues = [OperationQueue(), OperationQueue()], areAdded = Gate()
            let original = SyncProbe { operation in
                areAdded.wait()
                operation.finish(withResult: 1)
            }
            let mapped = queues.map { _ in original.mapResult { $0 } }
            queues[1].isSuspended = true
            for (queue, operation) in zip(queues, mapped) { queue.addOperation(operation as Operation) }
            areAdded.open()
            #expect(try await mapped[1].value == 1)
            await original.ended()
            queues[1].isSuspended = false
            for queue in queues { try await emptied(queue) }
            #expect(original.calls.events == ["main"])
        }
    }

    @Test("While an OperationQueue holds a mapped operation, its original cannot be started or added elsewhere")
    func held() async throws {
        NoticeHub.install()
        let queue = OperationQueue(), other = QueueManager("other")
        queue.isSuspended = true
        let original = SyncProbe { $0.finish(withResult: 1) }
        let mapped = original.mapResult { $0 }
        queue.addOperation(mapped as Operation)
        original.start()
        mapped.start()
        #expect(original.state == .notStarted)
        #expect(throws: OperationSetupError.self) { try other.add(original) }
        #expect(throws: OperationSetupError.self) { try GroupOperation().add(mapped) }
        queue.isSuspended = false
        #expect(try await mapped.value == 1)
        try await emptied(queue)
    }

    #if !canImport(ObjectiveC)
        @Test func `a mapped operation that is added after its original ended leaves the queue`() async throws {
            let queue = OperationQueue(), original = HandDriven()
            let mapped = original.mapResult { $0 }
            original.startAndFinish(withResult: 1)
            queue.addOperation(mapped as Operation)
            queue.addOperation(original.mapResult { $0 } as Operation)
            try await emptied(queue)
            #expect(mapped.outcome == .success(1))
        }
    #endif

    @Test func `a mapped operation canceled in a suspended queue ends when the queue resumes`() async throws {
        let queue = OperationQueue()
        queue.isSuspended = true
        let upstream = HandDriven(), original = HandDriven()
        original.addDependency(upstream)
        let mapped = original.mapResult { $0 }
        queue.addOperation(mapped as Operation)
        original.cancel()
        #expect(mapped.isCancelled && !mapped.isFinished)
        queue.isSuspended = false
        await mapped.ended()
        try await emptied(queue)
    }

    @Test func `a plain operation that depends on a mapped operation starts after both ended`() async throws {
        let original = HandDriven()
        let mapped = original.mapResult { $0 }
        let result = EventRecorder<Bool>()
        let after = BlockOperation { result.record(original.isFinished && mapped.isFinished) }
        after.addDependency(mapped)
        let queue = OperationQueue()
        queue.addOperation(after)
        queue.addOperation(mapped as Operation)
        await original.finishOnceBegun(withResult: 1)
        #expect(await result.events(atLeast: 1) == [true])
    }

    /// The object that starts a mapped operation.
    enum Host: CaseIterable, Sendable { case queueManager, group, caller }

    @Test(
        "A plain operation starts after its mapped dependency for each way of starting it", .comparesObjects,
        arguments: Host.allCases, [true, false])
    func dependentsOfHosted(_ host: Host, isInFoundation: Bool) async throws {
        let original = SyncProbe { $0.finish(withResult: 1) }
        let mapped = original.mapResult { $0 }, manager = QueueManager("hosted"), group = GroupOperation()
        let hasRun = EventRecorder<Bool>()
        let after = BlockOperation { hasRun.record(mapped.isFinished) }
        // Without the cast, the overload of the package would be called.
        after.addDependency(mapped as Operation)
        if isInFoundation { OperationQueue().addOperation(after) } else { try manager.add(after) }
        switch host {
        case .queueManager: try manager.add(mapped)
        case .group:
            try group.add(mapped)
            group.startAndKeepAlive()
        case .caller: mapped.start()
        }
        #expect(await hasRun.events(atLeast: 1) == [true])
    }

    private func emptied(_ queue: OperationQueue) async throws {
        let count = try await TestThread.run {
            queue.waitUntilAllOperationsAreFinished()
            return queue.operationCount
        }
        #expect(count == 0)
    }
}
