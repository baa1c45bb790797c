// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import Testing

/// A task that counts its suspensions, as those of Foundation do on Apple platforms.
private final class CountingTask: SuspendableTask, Sendable {
    private let count = Locked(0)

    var suspensions: Int { count.withLock { $0 } }

    func suspend() { count.withLock { $0 += 1 } }
    func resume() { count.withLock { $0 -= 1 } }
}

@Suite(.timeLimit(.minutes(1)))
struct CountedSuspensionTests {
    @Test func `a task that is held and then paused resumes at one resume`() {
        let task = CountingTask()
        var (machine, suspension, demands) = (TaskMachine(), CountedSuspension(), TaskDemands())
        // The shell of a session: what the machine asks for is done to the task.
        func follow() {
            if case .brake(let brakes) = machine.apply(demands.take()) { suspension.set(!brakes.isEmpty, on: task) }
        }
        _ = demands.resume(at: 0)
        follow()
        _ = machine.granted()
        machine.connected()
        machine.responded()
        _ = demands.hold(at: 1)
        follow()
        _ = demands.suspend(at: 2)
        follow()
        #expect(task.suspensions == 1)
        _ = demands.proceed(at: 3)
        follow()
        #expect(task.suspensions == 1)
        _ = demands.resume(at: 4)
        follow()
        #expect(task.suspensions == 0)
    }

    @Test func `whatever is asked for, there is at most one suspension, and none in the end`() {
        let task = CountingTask()
        var suspension = CountedSuspension()
        for _ in 0..<1_000 {
            let wanted = Bool.random()
            suspension.set(wanted, on: task)
            #expect(task.suspensions == (wanted ? 1 : 0))
        }
        suspension.set(false, on: task)
        #expect(task.suspensions == 0)
    }
}
