// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// No success or failure handler is called after `cancel()` returns on the callback queue.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(3)))
struct SilenceTests {
    private let queue = DispatchQueue(label: "callbacks")
    private let events = EventRecorder<String>()

    /// Runs a closure on the callback queue, so that handlers are enqueued after it, and waits until they are called.
    private func onQueue(_ body: @escaping @Sendable () -> Void) async {
        queue.async(execute: body)
        await queue.drain()
        await queue.drain()
    }

    /// Starts a group, and cancels it on the callback queue when one of its operations has ended.
    private func start(_ group: ManagedOperation, cancelingAfter child: ManagedOperation) async {
        await onQueue {
            group.startAndKeepAlive()
            child.waitUntilFinished()
            group.cancel()
        }
    }

    @discardableResult
    private func listen<Result, Failure>(
        _ operation: TypedOperation<Result, Failure>, _ name: String = "operation"
    ) -> TypedOperation<Result, Failure> {
        operation.callbackQueue = queue
        operation.successHandler = { [events] _ in events.record("\(name) success") }
        operation.failureHandler = { [events] _ in events.record("\(name) failure") }
        operation.cancellationHandler = { [events] _ in events.record("\(name) cancelled") }
        return operation
    }

    @Test func `canceling prevents an enqueued handler from being called and keeps the outcome`() async {
        let succeeded = HandDriven(), failed = HandDriven(), dependent = HandDriven(),
            outcomes = EventRecorder<String>()
        dependent.addDependency(succeeded)
        dependent.startAndKeepAlive()
        for operation in [succeeded, failed] {
            listen(operation)
            operation.observe(on: queue) { outcomes.record($0.word) }
            operation.start()
        }
        await onQueue {
            succeeded.finish(withResult: 1)
            failed.finish(withError: .first)
            succeeded.cancel()
            failed.cancel()
            succeeded.successHandler = { [events] _ in events.record("late success") }
        }
        #expect(events.events == [])
        #expect(succeeded.outcome == .success(1) && failed.outcome == .failure(.first) && !succeeded.isCancelled)
        #expect(outcomes.events == ["success 1", "failure first"])
        // The dependent starts on another thread.
        while dependent.state != .executing { await Task.yield() }
        dependent.finish(withResult: 2)
    }

    @Test func `canceling affects neither a handler that was already called nor handlers of other operations`() async {
        let first = HandDriven(), second = HandDriven()
        for (operation, name) in [(first, "first"), (second, "second")] { listen(operation, name).start() }
        first.finish(withResult: 1)
        await queue.drain()
        await onQueue {
            second.finish(withResult: 2)
            first.cancel()
        }
        #expect(events.events == ["first success", "second success"])
    }

    @Test func `the handler of a result set before the start is not called after cancel`() async {
        let operation = HandDriven()
        listen(operation)
        operation.finish(withResult: 1)
        operation.cancel()
        operation.start()
        #expect(await events.events(after: queue) == [])
        #expect(operation.outcome == .success(1))
    }

    @Test func `canceling a mapped operation silences its original and vice versa`() async {
        for cancelsOriginal in [true, false] {
            let original = HandDriven(), mapped = original.mapResult { "\($0)" }, second = mapped.mapResult { $0 }
            listen(original, "original")
            listen(mapped, "mapped")
            listen(second, "second")
            second.start()
            await onQueue {
                original.finish(withResult: 1)
                if cancelsOriginal { original.cancel() } else { second.cancel() }
            }
            #expect(events.events == [])
            #expect(mapped.outcome?.result == "1")
        }
    }

    @Test func `a mapping that converts a cancellation to a result still calls its success handler`() async {
        let original = HandDriven()
        let mapped: AsyncOperation<Int, Flaw> = original.mapOutcome { outcome in
            outcome.result.map { .success($0) } ?? .success(0)
        }
        listen(mapped)
        mapped.start()
        await onQueue {
            original.cancel()
            original.cancel()
        }
        #expect(events.events == ["operation success"])
    }

    @Test func `a canceled mapped operation does not call the handler of a converted cancellation`() async {
        // The mapped operation is canceled after the conversion, or by the conversion itself.
        for isEarly in [true, false] {
            let original = HandDriven(), kept = Locked<ManagedOperation?>(nil)
            let mapped: AsyncOperation<Int, Flaw> = original.mapOutcome { outcome in
                kept.withLock { exchange(&$0, with: nil) }?.cancel()
                return outcome.result.map { .success($0) } ?? .success(0)
            }
            if isEarly { kept.withLock { $0 = mapped } }
            listen(mapped)
            mapped.start()
            await onQueue {
                original.cancel()
                if !isEarly { mapped.cancel() }
            }
            #expect(events.events == [])
            #expect(mapped.outcome == .success(0))
        }
    }

    @Test func `throwing CancellationError after a result does not prevent the success handler`() async {
        let kept = Locked<ClosureOperation<Int, any Error>?>(nil)
        let operation = ClosureOperation<Int, any Error> {
            kept.withLock { exchange(&$0, with: nil) }?.finish(withResult: 1)
            throw CancellationError()
        }
        kept.withLock { $0 = operation }
        listen(operation)
        operation.start()
        #expect(await events.events(after: queue) == ["operation success"])
        #expect(operation.outcome?.result == 1)
    }

    @Test func `canceling a group silences finished operations at every level of nesting`() async throws {
        let leaf = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
        let inner = GroupOperation.all([listen(leaf, "leaf").mapResult { $0 }]), running = HandDriven()
        listen(inner, "inner")
        let outer = GroupOperation(policy: .collectAll)
        try outer.add(inner)
        try outer.add(listen(running, "running"))
        listen(outer, "outer")
        await start(outer, cancelingAfter: inner)
        await outer.ended()
        await queue.drain()
        #expect(Set(events.events) == ["running cancelled", "outer cancelled"])
        #expect(leaf.outcome == .success(1) && inner.outcome?.result == [1])
    }

    @Test(arguments: [false, true])
    func `canceling a group silences finished children whose progress was requested before the start`(
        isAddedLate: Bool
    ) async throws {
        let leaf = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) })), running = HandDriven()
        let innermost = GroupOperation(policy: .collectAll), inner = GroupOperation(policy: .collectAll)
        let outer = GroupOperation(policy: .collectAll)
        innermost.callbackQueue = queue
        try inner.add([innermost, listen(leaf, "leaf")])
        if !isAddedLate { try outer.add(inner) }
        // Enqueues a progress report of a group whose parent group has not started.
        let progress = innermost.progress
        if isAddedLate { try outer.add(inner) }
        try outer.add(running)
        await start(outer, cancelingAfter: leaf)
        await outer.ended()
        #expect(await events.events(after: queue) == [])
        #expect(leaf.outcome == .success(1) && !progress.isCancelled)
    }

    @Test func `canceling a group before its start silences a child that already has a result`() async throws {
        let child = HandDriven(), group = GroupOperation(policy: .collectAll)
        child.finish(withResult: 1)
        try group.add(listen(child, "child"))
        group.cancel()
        await group.startAndEnd()
        #expect(await events.events(after: queue) == [])
        #expect(child.outcome == .success(1))
    }

    @Test func `canceling a finished group silences the group and its children`() async {
        let child = HandDriven(hooks: .init(main: { $0.finish(withError: .first) }))
        let group = GroupOperation.all([listen(child, "child")])
        listen(group, "group")
        await start(group, cancelingAfter: group)
        #expect(events.events == [])
        #expect(group.outcome?.error != nil)
    }

    @Test func `a shielded child of a canceled group and a child of a failed group keep their handlers`() async throws {
        let shielded = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) })),
            running = HandDriven(windsDown: true)
        let group = GroupOperation(policy: .collectAll)
        try group.add(listen(shielded, "shielded"), isShielded: true)
        try group.add(running)
        await start(group, cancelingAfter: shielded)
        #expect(events.events == ["shielded success"])
        running.finish(withResult: 1)
        await group.ended()

        let first = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
        let second = HandDriven(hooks: .init(main: { $0.finish(withError: .first) }))
        second.addDependency(first)
        let failing = GroupOperation.all([listen(first, "first"), second])
        failing.startAndKeepAlive()
        await onQueue { failing.waitUntilFinished() }
        #expect(events.events == ["shielded success", "first success"])
    }

    @Test func `canceling by owner silences handlers of finished operations`() async {
        let screen = Screen()
        let bySelf = HandDriven(), byName = HandDriven(), waiting = HandDriven()
        bySelf.owner = .object(screen)
        byName.owner = "user 4711"
        waiting.owner = "user 4711"
        for operation in [bySelf, byName] { listen(operation).start() }
        await onQueue {
            bySelf.finish(withResult: 1)
            byName.finish(withResult: 1)
            #expect(OperationOwner.cancelOperations(ownedBy: screen) == 0)
            #expect(OperationOwner.cancelOperations(ownedBy: "user 4711") == 1)
        }
        #expect(events.events == [])
        #expect(bySelf.outcome == .success(1) && waiting.isCancelled)
        #expect(OwnerRegistry.shared.entryCount(.object(ObjectIdentifier(screen)), of: screen) == 0)
    }

    @Test func `freeing an owner token silences handlers of finished operations`() async {
        let operation = HandDriven()
        let token = Locked<OperationOwnerToken?>(OperationOwnerToken())
        operation.owner = token.withLock { $0?.owner }
        listen(operation).start()
        await onQueue {
            operation.finish(withResult: 1)
            autoreleasing { withExtendedLifetime(token.withLock { exchange(&$0, with: nil) }) {} }
        }
        #expect(events.events == [])
        #expect(operation.outcome == .success(1))
    }

    @Test func `cancelAll silences finished operations of the queue but not operations added later`() async throws {
        let manager = QueueManager("silent")
        let ended = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
        let later = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
        listen(ended, "ended")
        await onQueue {
            try? manager.add(ended)
            ended.waitUntilFinished()
            manager.cancelAll()
        }
        try manager.add(listen(later, "later"))
        await later.ended()
        #expect(await events.events(after: queue) == ["later success"])
    }

    @Test func `cancelAll silences finished operations that a group's body performed on its thread`() async {
        let manager = QueueManager("silent")
        let child = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) })), inPlace = ClosureOperation { 1 }
        let group = GroupOperation(synchronous: { group in
            try group.perform(child) + group.perform(inPlace)
        })
        listen(child, "child")
        listen(inPlace, "in place")
        await onQueue {
            try? manager.add(group)
            group.waitUntilFinished()
            manager.cancelAll()
        }
        #expect(events.events == [])
        #expect(group.outcome?.result == 2)
    }

    @Test func `shutting a queue down does not silence finished operations`() async throws {
        let manager = QueueManager("shut down")
        let ended = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
        try manager.add(listen(ended, "ended"))
        queue.suspend()
        await ended.ended()
        await manager.shutDown(grace: .seconds(60))
        queue.resume()
        #expect(await events.events(after: queue) == ["ended success"])
    }

    @Test func `a progress report that is enqueued is not delivered after cancel`() async {
        let operation = HandDriven.started()
        await onQueue { [queue, events] in
            operation.enqueueBeforeOutcome(on: queue) { events.record("before") }
            operation.enqueueHandler(on: queue) { events.record("handler") }
            operation.finish(withResult: 1)
            operation.cancel()
        }
        #expect(events.events == [])
        #expect(operation.outcome == .success(1) && !operation.isCancelled)
    }

    @Test func `canceling 2,000 nested groups silences and frees their children`() async throws {
        var outer = GroupOperation(policy: .collectAll)
        try outer.add(listen(HandDriven(hooks: .init(main: { $0.finish(withResult: 1) })), "leaf"))
        let innermost = outer
        for _ in 0..<2_000 {
            let group = GroupOperation(policy: .collectAll)
            try group.add(outer)
            outer = group
        }
        let outermost = outer
        await start(outermost, cancelingAfter: innermost)
        await outermost.ended()
        #expect(events.events == [])
    }
}
