// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A task that counts its suspensions, like Foundation's tasks on Apple platforms.
final class CountingTask: SystemTask {
    private let count: Locked<Int>

    init(suspensions: Int = 0) { count = Locked(suspensions) }

    var suspensions: Int { count.withLock { $0 } }

    func suspend() { count.withLock { $0 += 1 } }
    func resume() { count.withLock { $0 -= 1 } }

    var taskIdentifier: Int { 1 }
    var originalRequest: URLRequest? { nil }
    var response: URLResponse? { nil }
    var taskDescription: String? {
        get { nil }
        set {}
    }
    var isUpload: Bool { false }
    var isFinished: Bool { false }
    func cancel() {}
}

@Suite(.timeLimit(.minutes(1)))
struct CountedSuspensionTests {
    @Test func `a task that was held and suspended resumes after one system resume`() {
        let task = CountingTask()
        var (machine, suspension, demands) = (TaskMachine(), CountedSuspension(), TaskDemands())
        // Applies the pauses of the machine to the task, like a session.
        func follow() {
            if case .pause(let pausedDirections) = machine.apply(demands.take()) {
                suspension.set(!pausedDirections.isEmpty, on: task)
            }
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

    @Test func `random changes produce at most one suspension, and none at the end`() {
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

    @Test(arguments: [0, 1], [false, true])
    func `a task of an older hook starts after a suspension, whether or not the hook resumed it`(
        suspensions: Int, twice: Bool
    ) {
        let system = CountingTask(suspensions: suspensions)
        let relay = PauseOrderRelay(FoundationTask(system, isSuspended: suspensions > 0, canPause: true))
        for _ in 0..<(twice ? 2 : 1) { relay.pass(PauseOrder(number: 1, isSuspended: true)) }
        #expect(system.suspensions == 1)
        for _ in 0..<(twice ? 2 : 1) { relay.pass(PauseOrder(number: 2, isSuspended: false)) }
        #expect(system.suspensions == 0)
    }

    @Test func `a running task of an older hook stays running if Foundation cannot pause it`() {
        let system = CountingTask()
        let relay = PauseOrderRelay(FoundationTask(system, isSuspended: false, canPause: false))
        relay.pass(PauseOrder(number: 1, isSuspended: true))
        relay.pass(PauseOrder(number: 2, isSuspended: false))
        #expect(system.suspensions == 0)
    }
}
