// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// The precedence of callback queues: operation, base operation, groups, queue and process.
///
/// The suite is serialized because one test sets the default of the process.
@Suite(.serialized, .nothingStaysAlive, .timeLimit(.minutes(3)))
struct CallbackQueueTests {
    private let events = EventRecorder<String>()

    /// Creates an operation that ends immediately and records the label of the queue on which its handler is called.
    private func labelled() -> HandDriven {
        let operation = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
        operation.successHandler = { [events] _ in events.record(currentLabel) }
        return operation
    }

    @Test func `an operation prefers its own callback queue, then its base's, then its queue's`() async throws {
        let manager = QueueManager("callbacks")
        manager.callbackQueue = labelledQueue("queue")
        let plain = labelled(), based = labelled(), own = labelled()
        based.setCallbackQueueOfBase(labelledQueue("base"))
        own.callbackQueue = labelledQueue("own")
        own.setCallbackQueueOfBase(labelledQueue("base"))
        for (operation, label) in [(plain, "queue"), (based, "base"), (own, "own")] {
            events.forget()
            try manager.add(operation)
            await operation.ended()
            #expect(await events.events(atLeast: 1) == [label])
            #expect(operation.callbackQueue.label == label)
        }
    }

    @Test func `operations use the callback queue of the innermost group that sets one`() async throws {
        let manager = QueueManager("callbacks")
        manager.callbackQueue = labelledQueue("queue")
        for (outerLabel, innerLabel, expected) in [
            (nil, nil, "queue"), ("outer", nil, "outer"), ("outer", "inner", "inner"), (nil, "inner", "inner"),
        ] as [(String?, String?, String)] {
            events.forget()
            let child = labelled(), late = labelled()
            late.successHandler = nil
            let inner = GroupOperation.all([child, late]), outer = GroupOperation.all([inner])
            if let innerLabel { inner.callbackQueue = labelledQueue(innerLabel) }
            if let outerLabel { outer.callbackQueue = labelledQueue(outerLabel) }
            try manager.add(outer)
            await outer.ended()
            #expect(await events.events(atLeast: 1) == [expected])
            // The inherited queue is kept for handlers that are set after the end.
            late.successHandler = { [events] _ in events.record("late \(currentLabel)") }
            #expect(await events.events(atLeast: 2) == [expected, "late \(expected)"])
        }
    }

    @Test func `a mapped operation uses the callback queue of its original unless it has its own`() async throws {
        let group = GroupOperation(policy: .collectAll),
            original = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
        group.callbackQueue = labelledQueue("group")
        let first = original.mapResult { $0 }, second = first.mapResult { $0 }
        second.callbackQueue = labelledQueue("own")
        for operation in [first, second] { operation.successHandler = { [events] _ in events.record(currentLabel) } }
        try group.add(first)
        group.startAndKeepAlive()
        await group.ended()
        #expect(Set(await events.events(atLeast: 2)) == ["group", "own"])
    }

    @Test func `the default callback queue of the process applies if no other is set`() async {
        #expect(OperationDefaults.callbackQueue.label == DispatchQueue.main.label)
        OperationDefaults.callbackQueue = labelledQueue("process")
        defer { OperationDefaults.callbackQueue = .main }
        let operation = labelled()
        #expect(operation.callbackQueue.label == "process")
        operation.start()
        #expect(await events.events(atLeast: 1) == ["process"])
    }

    @Test func `the callback queue is chosen when the handler is enqueued`() async {
        let operation = HandDriven(), group = GroupOperation.all([operation])
        operation.successHandler = { [events] _ in events.record(currentLabel) }
        group.startAndKeepAlive()
        while !operation.isExecuting { await Task.yield() }
        group.callbackQueue = labelledQueue("late group")
        operation.finish(withResult: 1)
        #expect(await events.events(atLeast: 1) == ["late group"])
    }

    @Test func `a canceled child that never began keeps the callback queue of its group`() async throws {
        let child = HandDriven(), group = GroupOperation(policy: .collectAll, width: 1)
        group.callbackQueue = labelledQueue("group")
        let running = HandDriven()
        try group.add([running, child])
        group.startAndKeepAlive()
        while !running.isExecuting { await Task.yield() }
        await group.cancelAndEnd()
        child.cancellationHandler = { [events] _ in events.record(currentLabel) }
        #expect(await events.events(atLeast: 1) == ["group"])
    }
}

private let labelKey = DispatchSpecificKey<String>()

private func labelledQueue(_ label: String) -> DispatchQueue {
    let queue = DispatchQueue(label: label)
    queue.setSpecific(key: labelKey, value: label)
    return queue
}

/// The label of the queue on which the caller runs.
private var currentLabel: String { DispatchQueue.getSpecific(key: labelKey) ?? "none" }
