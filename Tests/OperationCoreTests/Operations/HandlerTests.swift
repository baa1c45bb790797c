// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct HandlerTests {
    /// Sets all three handlers on an operation and records the handler that is called.
    private func listen(to operation: HandDriven, on queue: DispatchQueue) -> EventRecorder<String> {
        let told = EventRecorder<String>()
        operation.callbackQueue = queue
        operation.successHandler = { told.record("success \($0)") }
        operation.failureHandler = { told.record("failure \($0)") }
        operation.cancellationHandler = { told.record("cancelled \($0.code)") }
        return told
    }

    @Test func `each outcome calls its handler once on the callback queue`() async {
        let ends: [(end: (HandDriven) -> Void, expected: String)] = [
            ({ $0.finish(withResult: 1) }, "success 1"),
            ({ $0.finish(withError: .second) }, "failure second"),
            ({ $0.cancel() }, "cancelled requested"),
        ]
        for (end, expected) in ends {
            let marked = MarkedQueue(), operation = HandDriven(), isOnQueue = EventRecorder<Bool>()
            let told = listen(to: operation, on: marked.queue)
            operation.observe { _ in isOnQueue.record(marked.isCurrent) }
            operation.start()
            end(operation)
            #expect(await told.events(after: marked.queue) == [expected])
            #expect(isOnQueue.events == [true])
        }
    }

    @Test func `the default callback queue is the main queue`() async {
        let main = MarkedQueue(.main), operation = HandDriven(), places = EventRecorder<Bool>()
        #expect(operation.callbackQueue.label == DispatchQueue.main.label)
        operation.failureHandler = { _ in places.record(main.isCurrent) }
        operation.start()
        operation.finish(withError: .first)
        #expect(await places.events(atLeast: 1) == [true])
    }

    @Test func `a handler that is replaced or removed is not called`() async {
        let queue = DispatchQueue(label: "handlers"), operation = HandDriven()
        let told = listen(to: operation, on: queue)
        operation.successHandler = { told.record("new \($0)") }
        #expect(operation.successHandler != nil)
        operation.failureHandler = nil
        #expect(operation.failureHandler == nil)
        operation.startAndFinish(withResult: 1)
        #expect(await told.events(after: queue) == ["new 1"])
    }

    @Test func `all handlers are released before one of them is called`() async {
        let queue = DispatchQueue(label: "handlers"), operation = HandDriven(), left = EventRecorder<Int>()
        operation.callbackQueue = queue
        operation.successHandler = { [weak operation] _ in
            let handlers: [Any?] = [
                operation?.successHandler, operation?.failureHandler, operation?.cancellationHandler,
            ]
            left.record(handlers.count { $0 != nil })
        }
        operation.failureHandler = { _ in }
        operation.cancellationHandler = { _ in }
        operation.startAndFinish(withResult: 1)
        #expect(await left.events(atLeast: 1) == [0])
    }

    @Test func `an operation stays alive until its handler is called`() async {
        let queue = DispatchQueue(label: "held"), census = LiveObjects(), told = EventRecorder<Int>()
        queue.suspend()
        do {
            let operation = census.track(HandDriven())
            operation.callbackQueue = queue
            operation.successHandler = { told.record($0) }
            operation.startAndFinish(withResult: 6)
        }
        #expect(census.count == 1)
        queue.resume()
        #expect(await told.events(after: queue) == [6])
        #expect(census.count == 0)
    }
}
