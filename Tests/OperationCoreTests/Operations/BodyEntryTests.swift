// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Cancellation after the start and before the body", .timeLimit(.minutes(3)))
struct BodyEntryTests {
    @Test(arguments: [true, false])
    func `canceling in an input closure finishes the operation without its body and without didCancel`(
        windsDown: Bool
    ) throws {
        let source = HandDriven(), operation = HandDriven(windsDown: windsDown)
        let told = EventRecorder<String>()
        try operation.receive(from: source, otherwise: .cancel) { operation, _ in
            operation.cancel(because: .requested("by the input"))
            told.record(operation.cancellationCause?.message ?? "")
        }
        UpstreamEnd.succeeds.perform(on: source)
        operation.start()
        #expect(told.events == ["by the input"])
        #expect(operation.calls.events == [])
        #expect(Look(operation) == .cancelled)
    }

    @Test func `canceling in an input closure finishes a synchronous operation without its body`() throws {
        let source = HandDriven(), operation = SyncProbe { $0.finish(withResult: 1) }
        try operation.receive(from: source, otherwise: .cancel) { operation, _ in operation.cancel() }
        UpstreamEnd.succeeds.perform(on: source)
        operation.start()
        #expect(operation.calls.events == [])
        #expect(Look(operation) == .cancelled)
    }

    @Test func `a synchronous operation canceled before its body ends when start returns`() async throws {
        let source = HandDriven(), operation = SyncProbe { $0.finish(withResult: 1) }
        let isInInput = Gate(), isCancelled = Gate(), looks = EventRecorder<Look>()
        try operation.receive(from: source, otherwise: .cancel) { operation, _ in
            isInInput.open()
            isCancelled.wait()
            looks.record(Look(operation))
        }
        UpstreamEnd.succeeds.perform(on: source)
        DispatchQueue.global().async {
            isInInput.wait()
            operation.cancel()
            isCancelled.open()
        }
        try await TestThread.run { operation.start() }
        #expect(looks.events == [.windingDown])
        #expect(operation.calls.events == [])
        #expect(Look(operation) == .cancelled)
    }

    @Test(arguments: [LifecycleMachine.Style.atOnce, .afterWindDown, .whenBodyReturns], [true, false])
    func `the machine does not stop a body that it prevents from beginning`(
        style: LifecycleMachine.Style, isSuspended: Bool
    ) {
        var machine = begun()
        if isSuspended { _ = machine.suspend() }
        let action = machine.cancel(style: style)
        #expect(action == (style == .atOnce ? .notifyAndEnd : .notify))
        let told = machine.cancellationNotified()
        #expect(told == (style == .atOnce ? .none : .awaitEntry))
        let isEntered = machine.enterBody()
        #expect(!isEntered)
        let returned = machine.bodyReturned()
        #expect(returned == (style == .atOnce ? nil : .end))
        let isEnded = machine.end()
        #expect(isEnded)
    }

    @Test(arguments: [LifecycleMachine.Style.afterWindDown, .whenBodyReturns])
    func `cancellationTold ends the machine if the body was already refused`(style: LifecycleMachine.Style) {
        var machine = begun()
        let action = machine.cancel(style: style)
        let isEntered = machine.enterBody()
        let returned = machine.bodyReturned()
        let told = machine.cancellationNotified()
        #expect(action == .notify && !isEntered && returned == nil && told == .end)
    }

    @Test func `the machine stops a body that has begun`() {
        var machine = begun()
        let isEntered = machine.enterBody()
        let action = machine.cancel(style: .atOnce)
        #expect(isEntered && action == .notifyStopAndEnd)
    }

    /// A started machine that has to prepare before the body.
    private func begun() -> LifecycleMachine {
        var machine = LifecycleMachine()
        _ = machine.start(isReady: true, hasDelay: false, prepares: true)
        return machine
    }
}
