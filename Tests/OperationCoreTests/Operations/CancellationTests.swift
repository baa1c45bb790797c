// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CancellationTests {
    @Test func `didCancel is called once while the operation is canceled and not finished`() {
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

    @Test func `didCancel can call methods of the operation`() {
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

    @Test func `didCancel can be called while main is running`() async throws {
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

    @Test func `an operation that winds down can finish in didCancel`() {
        let operation = HandDriven(windsDown: true, hooks: .init(cancel: { $0.finish(withError: .first) }))
        operation.start()
        operation.cancel()
        #expect(Look(operation) == .cancelled)
        #expect(operation.outcome == .cancelled(.requested))
    }

    @Test(arguments: [true, false])
    func `an operation that winds down ends when its body finishes and stays canceled`(succeeds: Bool) throws {
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

    @Test func `canceling a suspended operation stops its body and finishes it`() {
        let operation = HandDriven.started()
        operation.suspend()
        operation.cancel()
        #expect(Look(operation) == .cancelled)
        #expect(!operation.resume())
        #expect(operation.calls.events == ["main", "suspend", "cancel requested"])
    }

    @Test func `the description of a cause is one line that includes its underlying cause or error`() {
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
