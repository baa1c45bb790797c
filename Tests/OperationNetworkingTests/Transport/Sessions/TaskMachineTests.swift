// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct TaskMachineTests {
    private func demands(_ calls: ((inout TaskDemands) -> Bool)...) -> TaskDemands {
        var demands = TaskDemands()
        for call in calls { _ = call(&demands) }
        return demands
    }

    private func resume(_ demands: inout TaskDemands) -> Bool { demands.resume(at: 0) }
    private func suspend(_ demands: inout TaskDemands) -> Bool { demands.suspend(at: 0) }
    private func hold(_ demands: inout TaskDemands) -> Bool { demands.hold(at: 0) }
    private func cancel(_ demands: inout TaskDemands) -> Bool { demands.cancel() }

    @Test func `a task moves from the line to a slot and to its end`() {
        var machine = TaskMachine()
        #expect(machine.apply(demands(suspend)) == .none)
        #expect(machine.apply(demands(resume)) == .enterQueue)
        #expect(machine.apply(demands(resume)) == .none)
        let granted = machine.granted()
        #expect(granted && machine.stage == .connecting)
        machine.connected()
        #expect(machine.stage == .sending)
        machine.responded()
        machine.connected()
        #expect(machine.stage == .receiving)
        let told = machine.transferEnded(withFailure: false, isHeldBack: false)
        #expect(told && machine.isEnded && machine.stage == nil)
        #expect(machine.apply(demands(cancel)) == .none)
        let again = machine.transferEnded(withFailure: true, isHeldBack: false)
        #expect(!again)
    }

    @Test func `a task suspended before it sends anything leaves the line or abandons its transfer`() {
        var machine = TaskMachine()
        _ = machine.apply(demands(resume))
        #expect(machine.apply(demands(resume, suspend)) == .leaveQueue)
        let refused = machine.granted()
        #expect(!refused)
        #expect(machine.apply(demands(resume)) == .enterQueue)
        _ = machine.granted()
        #expect(machine.apply(demands(resume, suspend)) == .abandon)
        #expect(machine.apply(demands(resume)) == .enterQueue)
    }

    @Test func `suspend and hold set and release the matching brakes`() {
        var machine = TaskMachine()
        _ = machine.apply(demands(resume))
        _ = machine.granted()
        machine.connected()
        #expect(machine.apply(demands(resume, hold)) == .pause(.receiving))
        #expect(machine.apply(demands(resume, hold)) == .none)
        #expect(machine.apply(demands(resume, hold, suspend)) == .pause([.receiving, .sending]))
        #expect(machine.apply(demands(resume, hold)) == .pause(.receiving))
        #expect(machine.apply(demands(resume)) == .pause([]))
    }

    @Test func `a success is delivered after the release of a hold, and a failure immediately`() {
        var machine = TaskMachine()
        _ = machine.apply(demands(resume))
        _ = machine.granted()
        machine.connected()
        var failing = machine
        let told = machine.transferEnded(withFailure: false, isHeldBack: true)
        #expect(!told && !machine.isEnded)
        #expect(machine.apply(demands(resume, hold)) == .none)
        var cancelled = machine
        #expect(machine.apply(demands(resume)) == .deliverRest)
        // A delayed event caused another hold.
        let early = machine.restDelivered(isHeldBack: true)
        #expect(!early && !machine.isEnded)
        #expect(machine.apply(demands(resume, hold)) == .none)
        #expect(machine.apply(demands(resume)) == .deliverRest)
        let last = machine.restDelivered(isHeldBack: false)
        #expect(last && machine.isEnded)
        let again = machine.restDelivered(isHeldBack: false)
        #expect(!again)
        #expect(cancelled.apply(demands(resume, hold, cancel)) == .cancel)
        let failed = failing.transferEnded(withFailure: true, isHeldBack: true)
        #expect(failed)
    }

    @Test func `a restarted request can be abandoned again, and its brakes are set again`() {
        var machine = TaskMachine()
        machine.restarted()
        #expect(machine.stage == nil)
        _ = machine.apply(demands(resume))
        _ = machine.granted()
        machine.connected()
        #expect(machine.apply(demands(resume, suspend)) == .pause([.receiving, .sending]))
        var held = machine
        machine.restarted()
        #expect(machine.stage == .connecting)
        #expect(machine.apply(demands(resume, suspend)) == .abandon)
        #expect(machine.apply(demands(resume)) == .enterQueue)
        held.restarted()
        #expect(held.apply(demands(resume, hold)) == .pause(.receiving))
    }

    @Test func `canceling a task ends it once, in whatever state it is`() {
        var created = TaskMachine()
        #expect(created.apply(demands(cancel)) == .cancel)
        var waiting = TaskMachine()
        _ = waiting.apply(demands(resume))
        #expect(waiting.apply(demands(resume, cancel)) == .cancel)
        #expect(waiting.apply(demands(resume, cancel)) == .none)
        var running = TaskMachine()
        _ = running.apply(demands(resume))
        _ = running.granted()
        #expect(running.apply(demands(resume, cancel)) == .cancel)
        let granted = running.granted()
        #expect(running.isEnded && !granted)
    }

    @Test func `demands are posted once until they are taken, and not if they change nothing`() {
        var demands = TaskDemands()
        #expect(!demands.suspend(at: 1) && !demands.hold(at: 2) && !demands.proceed(at: 3))
        #expect(demands.resume(at: 4) && !demands.cancel())
        let taken = demands.take()
        #expect(taken.isStarted && !taken.isSuspended && taken.isCancelled)
        #expect(!demands.cancel() && demands.suspend(at: 5))
        _ = demands.take()
        let (end, secondEnd) = (demands.end(), demands.end())
        #expect(end == true && secondEnd == nil && !demands.resume(at: 6))
    }

    @Test func `an order that arrives after a newer one changes nothing`() {
        var demands = TaskDemands()
        let (start, stop) = (
            PauseOrder(number: 1, isSuspended: false, isHeld: false),
            PauseOrder(number: 2, isSuspended: true, isHeld: false)
        )
        let goOn = PauseOrder(number: 3, isSuspended: false, isHeld: true)
        // The session need not know of a task that was never started.
        var hasChanged = [demands.follow(stop, at: 0), demands.follow(start, at: 0)]
        #expect(hasChanged == [false, false] && !demands.isStarted && demands.isSuspended)
        hasChanged = [demands.follow(goOn, at: 0), demands.follow(stop, at: 0)]
        #expect(hasChanged == [true, false] && demands.isStarted && !demands.isSuspended && demands.isHeld)
        // A direct call takes effect immediately, and older orders do not replace it.
        hasChanged = [demands.suspend(at: 0), demands.follow(goOn, at: 0)]
        #expect(hasChanged == [false, false] && demands.isSuspended)
    }

    @Test func `a pause starts when it is requested, not when the session notices it`() {
        var demands = TaskDemands()
        _ = demands.resume(at: 10)
        #expect(demands.pauses.since == nil && demands.pauses.sum(at: 20) == 0)
        _ = demands.hold(at: 20)
        // A second pause neither restarts nor ends the pause.
        _ = demands.suspend(at: 25)
        _ = demands.proceed(at: 30)
        #expect(demands.pauses.since == 20 && demands.pauses.sum(at: 35) == 15)
        _ = demands.take()
        _ = demands.resume(at: 40)
        #expect(demands.pauses.since == nil && demands.pauses.past == 20)
        _ = demands.follow(PauseOrder(number: 2, isSuspended: false, isHeld: true), at: 50)
        _ = demands.follow(PauseOrder(number: 1, isSuspended: false, isHeld: false), at: 55)
        #expect(demands.pauses.since == 50 && demands.pauses.sum(at: 60) == 30)
        // A clock that two threads read may seem to run backward.
        _ = demands.proceed(at: 49)
        #expect(demands.pauses.since == nil && demands.pauses.past == 20)
    }
}
