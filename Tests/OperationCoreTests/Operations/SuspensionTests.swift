// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct SuspensionTests {
    @Test func `suspending and resuming call their hooks once for each turn`() {
        let operation = HandDriven()
        operation.start()
        #expect(operation.suspend())
        #expect(!operation.suspend())
        #expect(operation.resume())
        #expect(!operation.resume())
        #expect(operation.suspend())
        #expect(operation.calls.events == ["main", "suspend", "resume", "suspend"])
        #expect(operation.state == .suspended)
    }

    @Test func `only an executing operation can be suspended`() {
        let operation = HandDriven()
        #expect(!operation.suspend())
        #expect(!operation.resume())
        operation.start()
        operation.finish(withResult: 1)
        #expect(!operation.suspend())
        #expect(!operation.resume())
        #expect(operation.calls.events == ["main"])
        let cancelled = HandDriven()
        cancelled.cancel()
        #expect(!cancelled.suspend())
        cancelled.start()
        #expect(!cancelled.suspend())
        #expect(cancelled.calls.events == [])
    }

    @Test func `the hooks see the state they were called for`() {
        let states = EventRecorder<OperationState>()
        let operation = HandDriven(
            hooks: .init(suspend: { states.record($0.state) }, resume: { states.record($0.state) }))
        operation.start()
        operation.suspend()
        operation.resume()
        #expect(states.events == [.suspended, .executing])
    }

    @Test func `the hooks may call back into the operation`() {
        let operation = HandDriven(
            hooks: .init(suspend: { #expect($0.resume()) }, resume: { $0.finish(withResult: 1) }))
        operation.start()
        #expect(operation.suspend())
        #expect(operation.outcome == .success(1))
        #expect(operation.calls.events == ["main", "suspend", "resume"])
    }

    @Test func `what is over before the body can be told of it is left out`() {
        let operation = HandDriven(
            hooks: .init(suspend: { operation in
                // Told of one suspension, and meanwhile in a second.
                #expect(operation.resume())
                #expect(operation.suspend())
            }))
        operation.start()
        #expect(operation.suspend())
        #expect(operation.state == .suspended)
        #expect(operation.calls.events == ["main", "suspend"])
    }

    @Test func `a mapped operation is suspended with its original, once that executes`() async {
        let upstream = HandDriven(), began = Gate()
        let original = HandDriven(hooks: .init(main: { _ in began.open() }))
        original.addDependency(upstream)
        let mapped = original.mapResult { $0 }
        mapped.start()
        #expect(!mapped.suspend())
        UpstreamEnd.succeeds.perform(on: upstream)
        await began.passage()
        #expect(Look(original) == .executing)
        #expect(!mapped.resume())
        #expect(mapped.suspend())
        #expect(Look(original) == .suspended && Look(mapped) == .suspended)
        #expect(original.resume())
        #expect(Look(original) == .executing && Look(mapped) == .executing)
    }

    @Test func `starting a suspended operation resumes it`() {
        let operation = HandDriven()
        operation.start()
        operation.suspend()
        operation.start()
        #expect(operation.state == .executing)
        #expect(operation.calls.events == ["main", "suspend", "resume"])
    }

    @Test func `a suspended operation may still be given its result`() {
        let operation = HandDriven()
        operation.start()
        operation.suspend()
        operation.finish(withResult: 2)
        #expect(Look(operation) == .finished)
        #expect(operation.outcome == .success(2))
    }

    /// One thread suspends while another resumes.
    @Test func `a resume in the middle of a suspension leaves neither the body on hold nor the timeout lost`() async {
        let operation = HandDriven(), clock = HookClock(), resumed = Gate()
        operation.clock = clock
        operation.timeout = .seconds(10)
        operation.start()
        // The clock is asked for the time when the state has changed and the body has not been told.
        clock.beforeNextNow { [unowned operation] in
            Thread {
                operation.resume()
                resumed.open()
            }.start()
            // A resume that waits until the suspension is done is right, too: it is not waited for in vain for long.
            _ = resumed.waits(upTo: .milliseconds(200))
        }
        operation.suspend()
        await resumed.passage()
        #expect(operation.state == .executing)
        #expect(operation.calls.events.last != "suspend", "executing, and its body is on hold")
        #expect(clock.pendingCount == 1, "executing, and nothing limits its time any more")
        operation.cancel()
    }

    @Test func `a timeout that falls due in a suspension of which nobody is told is not lost`() {
        let clock = ManualClock()
        let operation = HandDriven(
            hooks: .init(resume: { operation in
                // Left out, since the body is being told of the resumption.
                #expect(operation.suspend())
                clock.advance(by: .seconds(1_000))
                #expect(operation.state == .suspended)
                #expect(operation.resume())
            }))
        operation.clock = clock
        operation.timeout = .seconds(10)
        operation.start()
        operation.suspend()
        operation.resume()
        #expect(operation.calls.events == ["main", "suspend", "resume"])
        #expect(clock.pendingCount == 1, "executing, and nothing limits its time any more")
        clock.advance(by: .zero)
        #expect(operation.cancellationCause?.code == .timedOut)
    }

    @Test func `a timeout that begins while the body is told of a suspension stands still, too`() async throws {
        let clock = HookClock(), told = Gate(), goesOn = Gate(), done = Gate()
        let operation = HandDriven(
            hooks: .init(suspend: { operation in
                operation.resume()
                told.open()
                goesOn.wait()
            }))
        operation.clock = clock
        operation.timeout = .seconds(10)
        // The clock is asked for the time when the operation executes and its timer has still to be set.
        clock.beforeNextNow { [unowned operation] in
            Thread {
                operation.suspend()
                done.open()
            }.start()
            told.wait()
        }
        try await TestThread.run {
            operation.start()
            #expect(operation.suspend())
            goesOn.open()
            done.wait()
        }
        #expect(operation.state == .suspended)
        #expect(clock.pendingCount == 0, "suspended, and its time goes on")
        clock.expectTenSecondsLeft(for: operation)
    }
}
