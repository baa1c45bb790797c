// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct EndOrderTests {
    @Test func `the outcome is set when the handler is called`() async {
        let queue = DispatchQueue(label: "handlers"), operation = HandDriven(), seen = EventRecorder<String>()
        operation.callbackQueue = queue
        operation.successHandler = { [unowned operation] _ in
            seen.record("\(operation.state) \(operation.outcome?.word ?? "none")")
        }
        operation.startAndFinish(withResult: 1)
        #expect(await seen.events(after: queue) == ["finished success 1"])
    }

    @Test func `the handler is enqueued before dependents start and the completion block runs`() async throws {
        let queue = DispatchQueue(label: "handlers"), order = EventRecorder<String>()
        let operation = HandDriven(), foreignQueue = OperationQueue()
        let dependent = SyncProbe { [unowned operation] dependent in
            #expect(operation.isFinished)
            queue.async { order.record("dependent") }
            dependent.finish(withResult: 0)
        }
        let foreign = BlockOperation { queue.async { order.record("foreign") } }
        try dependent.depend(on: operation, otherwise: .runAnyway)
        foreign.addDependency(operation)
        operation.callbackQueue = queue
        operation.successHandler = { _ in order.record("handler") }
        operation.completionBlock = { [unowned operation, unowned dependent] in
            #expect(operation.isFinished)
            #expect(dependent.isReady)
            queue.async { order.record("completion") }
        }
        dependent.start()
        foreignQueue.addOperation(foreign)
        operation.startAndFinish(withResult: 1)
        let events = await order.events(atLeast: 4)
        #expect(events.first == "handler")
        #expect(Set(events) == ["handler", "dependent", "foreign", "completion"])
    }

    @Test(arguments: StartingWay.allCases)
    func `handlers of a chain run in order on one serial queue`(way: StartingWay) async throws {
        let queue = DispatchQueue(label: "handlers"), order = EventRecorder<Int>()
        let operations = (0..<20).map { number in ClosureOperation { number } }
        for (upstream, downstream) in zip(operations, operations.dropFirst()) {
            try downstream.depend(on: upstream, otherwise: .runAnyway)
        }
        for operation in operations {
            operation.callbackQueue = queue
            operation.successHandler = { order.record($0) }
        }
        let starter = Starter(way)
        for operation in operations.reversed() { try starter.start(operation) }
        #expect(await order.events(atLeast: 20) == Array(0..<20))
    }

    /// Another thread ends the body while this thread is still reporting the cancellation.
    @Test func `a cancellation handler is enqueued before the end even if the body ends meanwhile`() async throws {
        let queue = DispatchQueue(label: "handlers"), order = EventRecorder<String>()
        let operation = HandDriven(windsDown: true), clock = HookClock()
        operation.callbackQueue = queue
        operation.cancellationHandler = { _ in order.record("handler") }
        operation.setTimeout(.seconds(1), on: clock)
        operation.whenEnded { queue.async { order.record("end") } }
        operation.start()
        // The canceling thread is paused here, between its decision and the handler.
        clock.beforeNextTimerCancel { [unowned operation] in
            let done = DispatchSemaphore(value: 0)
            Thread {
                operation.finish(withResult: 1)
                done.signal()
            }.start()
            done.wait()
        }
        try await TestThread.run { operation.cancel() }
        #expect(await order.events(atLeast: 2) == ["handler", "end"])
    }

    /// The same for a synchronous body that returns.
    @Test func `a synchronous operation enqueues its cancellation handler before it ends`() async throws {
        let queue = DispatchQueue(label: "handlers"), order = EventRecorder<String>()
        let began = Gate(), release = Gate(), clock = HookClock()
        let operation = SyncProbe { _ in
            began.open()
            release.wait()
        }
        operation.callbackQueue = queue
        operation.cancellationHandler = { _ in order.record("handler") }
        operation.setTimeout(.seconds(1), on: clock)
        operation.whenEnded { queue.async { order.record("end") } }
        let returned = Gate()
        async let body: Void = TestThread.run {
            operation.start()
            returned.open()
        }
        await began.passage()
        clock.beforeNextTimerCancel {
            release.open()
            // The body's thread must be able to return without waiting for this thread.
            returned.wait()
        }
        try await TestThread.run { operation.cancel() }
        try await body
        #expect(await order.events(atLeast: 2) == ["handler", "end"])
    }

    @Test func `the completion block runs once and is released`() async {
        let runs = EventRecorder<Int>(), witness = Gate()
        let operation = HandDriven()
        do {
            let object = Witness(witness)
            operation.completionBlock = { [operation] in
                withExtendedLifetime((object, operation)) { runs.record(1) }
            }
        }
        #expect(operation.completionBlock != nil)
        operation.startAndFinish(withResult: 1)
        await witness.passage()
        #expect(runs.events == [1])
        #expect(operation.completionBlock == nil)
    }

    @Test func `the completion block of an operation canceled before the start runs after the start`() async {
        let order = EventRecorder<String>(), operation = HandDriven()
        operation.completionBlock = { order.record("completion") }
        operation.cancel()
        order.record("start")
        operation.start()
        #expect(await order.events(atLeast: 2) == ["start", "completion"])
        // A block that is set after the end is called immediately.
        operation.completionBlock = { order.record("late") }
        #expect(await order.events(atLeast: 3) == ["start", "completion", "late"])
        #expect(operation.completionBlock == nil)
    }
}
