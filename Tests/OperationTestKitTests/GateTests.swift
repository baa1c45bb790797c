// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct GateTests {
    @Test func `a gate blocks threads and tasks until it is opened`() async throws {
        let gate = Gate(), passed = EventRecorder<String>()
        async let thread: Void = TestThread.run {
            gate.wait()
            passed.record("thread")
        }
        async let task: Void = {
            await gate.passage()
            passed.record("task")
        }()
        #expect(!gate.isOpen)
        #expect(passed.events == [])
        gate.open()
        try await thread
        await task
        #expect(Set(passed.events) == ["thread", "task"])
        #expect(gate.isOpen)
    }

    @Test func `a gate counts waiting threads and tasks`() async throws {
        let gate = Gate()
        async let thread: Void = TestThread.run { gate.wait() }
        async let task: Void = gate.passage()
        try await TestThread.run {
            // The loop ends only if both are counted.
            while gate.waitingCount < 2 { sched_yield() }
        }
        gate.open()
        #expect(gate.waitingCount == 0)
        try await thread
        await task
    }

    @Test func `a wait with a limit throws if the gate stays closed and leaves no waiter behind`() async throws {
        let gate = Gate()
        let unmet = await #expect(throws: UnmetExpectation.self) { try await gate.passage(within: .milliseconds(5)) }
        #expect(unmet?.expected == "open, within 5 ms" && unmet?.found == "closed")
        #expect(unmet?.place.hasPrefix("GateTests.swift:") == true)
        #expect(gate.waitingCount == 0)
        let test = Task { try await gate.passage(within: .seconds(600)) }
        try await waitUntil("it waits") { gate.waitingCount == 1 }
        test.cancel()
        await #expect(throws: UnmetExpectation.self) { try await test.value }
        #expect(gate.waitingCount == 0)
        async let passing: Void = gate.passage(within: .seconds(600))
        try await waitUntil("it waits") { gate.waitingCount == 1 }
        gate.open()
        try await passing
        try await gate.passage(within: .zero)
        #expect(gate.waitingCount == 0)
    }

    @Test func `a gate stays open after it is opened`() async throws {
        let gate = Gate()
        gate.open()
        gate.open()
        await gate.passage()
        try await TestThread.run { gate.wait() }
        #expect(gate.waitingCount == 0)
    }

    @Test func `threads that arrive while the gate is being opened all pass`() async throws {
        let passed = EventRecorder<Int>()
        try await TestThread.run {
            let team = ThreadTeam(count: 4)
            for round in 0..<500 {
                let gate = Gate()
                let wait: @Sendable () -> Void = {
                    gate.wait()
                    passed.record(round)
                }
                team.run([wait, wait, wait, { gate.open() }])
            }
        }
        #expect(passed.count == 1_500)
    }
}
