// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct SuspensionTests {
    @Test func `suspend and resume call their hooks once per change`() {
        let operation = HandDriven.started()
        #expect(operation.suspend())
        #expect(!operation.suspend())
        #expect(Look(operation) == .suspended)
        #expect(operation.resume())
        #expect(!operation.resume())
        #expect(Look(operation) == .executing)
        #expect(operation.suspend())
        #expect(operation.calls.events == ["main", "suspend", "resume", "suspend"])
        #expect(Look(operation) == .suspended)
    }

    @Test func `only an executing operation can be suspended`() {
        let operation = HandDriven()
        #expect(!operation.suspend())
        #expect(!operation.resume())
        operation.startAndFinish(withResult: 1)
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

    @Test func `didSuspend and didResume see the new state`() {
        let states = EventRecorder<OperationState>()
        let operation = HandDriven(
            hooks: .init(suspend: { states.record($0.state) }, resume: { states.record($0.state) }))
        operation.start()
        operation.suspend()
        operation.resume()
        #expect(states.events == [.suspended, .executing])
    }

    @Test func `didSuspend and didResume can call methods of the operation`() {
        let operation = HandDriven(
            hooks: .init(suspend: { #expect($0.resume()) }, resume: { $0.finish(withResult: 1) }))
        operation.start()
        #expect(operation.suspend())
        #expect(operation.outcome == .success(1))
        #expect(operation.calls.events == ["main", "suspend", "resume"])
    }

    @Test func `a resume and suspend inside didSuspend call no further hooks`() {
        let operation = HandDriven(
            hooks: .init(suspend: { operation in
                // During the notification about one suspension, a second suspension follows.
                #expect(operation.resume())
                #expect(operation.suspend())
            }))
        operation.start()
        #expect(operation.suspend())
        #expect(operation.state == .suspended)
        #expect(operation.calls.events == ["main", "suspend"])
    }

    @Test func `a mapped operation is suspended with its original, but only while the original executes`() async {
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
        let operation = HandDriven.started()
        operation.suspend()
        operation.start()
        #expect(operation.state == .executing)
        #expect(operation.calls.events == ["main", "suspend", "resume"])
    }

    @Test func `a suspended operation can be finished with a result`() {
        let operation = HandDriven.started()
        operation.suspend()
        operation.finish(withResult: 2)
        #expect(Look(operation) == .finished)
        #expect(operation.outcome == .success(2))
    }

    /// One thread suspends while another resumes.
    @Test func `a resume during a suspension neither leaves the body suspended nor loses the timeout`() async {
        let operation = HandDriven(), clock = HookClock(), resumed = Gate()
        operation.start(timeout: .seconds(10), on: clock)
        // The clock is read after the state changed and before the body is notified.
        clock.beforeNextNow { [unowned operation] in
            Thread {
                operation.resume()
                resumed.open()
            }.start()
            // A resume that waits until the suspension is done is also correct, so the wait is limited.
            _ = resumed.waits(upTo: .milliseconds(200))
        }
        operation.suspend()
        await resumed.passage()
        #expect(operation.state == .executing)
        #expect(operation.calls.events.last != "suspend", "The operation is executing, but its body is suspended.")
        #expect(clock.pendingCount == 1, "The operation is executing, but its timeout is no longer scheduled.")
        operation.cancel()
    }

    @Test func `a timeout that expires during a suspension without a hook call is not lost`() {
        let clock = ManualClock()
        let operation = HandDriven(
            hooks: .init(resume: { operation in
                // No hook call, because the body is being notified of the resumption.
                #expect(operation.suspend())
                clock.advance(by: .seconds(1_000))
                #expect(operation.state == .suspended)
                #expect(operation.resume())
            }))
        operation.start(timeout: .seconds(10), on: clock)
        operation.suspend()
        operation.resume()
        #expect(operation.calls.events == ["main", "suspend", "resume"])
        #expect(clock.pendingCount == 1, "The operation is executing, but its timeout is no longer scheduled.")
        clock.advance(by: .zero)
        #expect(operation.cancellationCause?.code == .timedOut)
    }

    @Test func `a timeout that begins during didSuspend is paused as well`() async throws {
        let clock = HookClock(), told = Gate(), continues = Gate(), done = Gate()
        let operation = HandDriven(
            hooks: .init(suspend: { operation in
                operation.resume()
                told.open()
                continues.wait()
            }))
        operation.setTimeout(.seconds(10), on: clock)
        // The clock is read while the operation executes and before its timer is scheduled.
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
            continues.open()
            done.wait()
        }
        #expect(operation.state == .suspended)
        #expect(clock.pendingCount == 0, "The operation is suspended, but its timeout is running.")
        clock.expectTenSecondsLeft(for: operation)
    }
}
