// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CancellationTests {
    @Test func `the hook is called once while the operation is cancelled and has not ended`() {
        let looks = EventRecorder<Look>()
        let operation = HandDriven(hooks: .init(cancel: { looks.record(Look($0)) }))
        operation.start()
        operation.cancel()
        operation.cancel()
        #expect(looks.events.count == 1)
        #expect(looks.events.first?.state == .cancelled)
        #expect(looks.events.first?.flags.contains("finished") == false)
        #expect(operation.isFinished)
    }

    @Test func `the hook is given the cause`() {
        let operation = HandDriven()
        operation.start()
        operation.cancel(because: CancellationCause(code: .init("sleepy"), message: "It is late."))
        #expect(operation.calls.events == ["main", "cancel sleepy"])
    }

    @Test func `the hook may call back into the operation`() {
        let operation = HandDriven(
            hooks: .init(cancel: { operation in
                #expect(operation.state == .cancelled)
                #expect(operation.outcome == .cancelled(.requested))
                operation.cancel()
                operation.finish(withResult: 1)
                operation.finish(withError: .first)
                operation.start()
                operation.successHandler = { _ in }
                operation.suspend()
                operation.resume()
            }))
        operation.start()
        operation.cancel()
        #expect(Look(operation) == .cancelled)
        #expect(operation.outcome == .cancelled(.requested))
        #expect(operation.calls.events == ["main", "cancel requested"])
    }

    @Test func `the hook may come while main still runs`() async throws {
        let began = Gate(), stopped = Gate()
        let operation = HandDriven(
            hooks: .init(
                main: { _ in
                    began.open()
                    stopped.wait()
                },
                cancel: { _ in stopped.open() }))
        async let thread: Void = TestThread.run { operation.start() }
        await began.passage()
        operation.cancel()
        try await thread
        #expect(Look(operation) == .cancelled)
        #expect(operation.calls.events == ["main", "cancel requested"])
    }

    @Test func `an operation that winds down may end itself in the hook`() {
        let operation = HandDriven(windsDown: true, hooks: .init(cancel: { $0.finish(withError: .first) }))
        operation.start()
        operation.cancel()
        #expect(Look(operation) == .cancelled)
        #expect(operation.outcome == .cancelled(.requested))
    }

    @Test(arguments: [true, false])
    func `an operation that winds down ends when its body says so and stays cancelled`(succeeds: Bool) throws {
        let operation = HandDriven(windsDown: true), dependent = HandDriven()
        try dependent.depend(on: operation, otherwise: .runAnyway)
        operation.start()
        operation.cancel()
        #expect(Look(operation) == .windingDown)
        #expect(!dependent.isReady)
        succeeds ? operation.finish(withResult: 1) : operation.finish(withError: .first)
        #expect(Look(operation) == .cancelled)
        #expect(operation.outcome == .cancelled(.requested))
        #expect(dependent.isReady)
        operation.finish(withResult: 1)
        #expect(Look(operation) == .cancelled)
    }

    @Test func `an operation that winds down is not held up by it when it has a result`() {
        let operation = HandDriven(windsDown: true)
        operation.start()
        operation.finish(withResult: 1)
        #expect(Look(operation) == .finished)
    }

    @Test func `awaiters of an operation that winds down learn of the cancellation at once`() async {
        let operation = HandDriven(windsDown: true)
        operation.start()
        async let outcome = operation.finalOutcome
        operation.cancel()
        #expect(await outcome == .cancelled(.requested))
        #expect(!operation.isFinished)
        operation.finish(withResult: 1)
    }

    @Test func `cancelled while suspended it is stopped and ends`() {
        let operation = HandDriven()
        operation.start()
        operation.suspend()
        operation.cancel()
        #expect(Look(operation) == .cancelled)
        #expect(!operation.resume())
        #expect(operation.calls.events == ["main", "suspend", "cancel requested"])
    }

    @Test func `a cause says what it is in a line and carries what is beneath it`() {
        let timeout = CancellationCause(code: .timedOut, message: "Too slow.")
        let cause = CancellationCause(code: .dependencyCancelled, message: "Its source.", underlyingCause: timeout)
        #expect("\(cause)" == "[dependencyCancelled] Its source. ← [timedOut] Too slow.")
        #expect(cause.underlyingCause == timeout)
        let failed = CancellationCause(code: .dependencyFailed, message: "Its source.", underlyingError: Flaw.first)
        #expect("\(failed)" == "[dependencyFailed] Its source. ← first")
        #expect(failed != cause)
        #expect(CancellationCause.requested("x") == CancellationCause.requested("x"))
        #expect(CancellationCause.requested("x") != CancellationCause.requested("y"))
    }
}
