// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct TaskMachineTests {
    private func wishes(_ calls: ((inout TaskDemands) -> Bool)...) -> TaskDemands {
        var wishes = TaskDemands()
        for call in calls { _ = call(&wishes) }
        return wishes
    }

    private func resume(_ wishes: inout TaskDemands) -> Bool { wishes.resume(at: 0) }
    private func suspend(_ wishes: inout TaskDemands) -> Bool { wishes.suspend(at: 0) }
    private func hold(_ wishes: inout TaskDemands) -> Bool { wishes.hold(at: 0) }
    private func cancel(_ wishes: inout TaskDemands) -> Bool { wishes.cancel() }

    @Test func `a task goes from line to slot to end`() {
        var machine = TaskMachine()
        #expect(machine.wish(wishes(suspend)) == .none)
        #expect(machine.wish(wishes(resume)) == .enterLine)
        #expect(machine.wish(wishes(resume)) == .none)
        let granted = machine.granted()
        #expect(granted && machine.stage == .connecting)
        machine.connected()
        #expect(machine.stage == .sending)
        machine.responded()
        machine.connected()
        #expect(machine.stage == .receiving)
        let told = machine.transferEnded(withFailure: false, isHeldBack: false)
        #expect(told && machine.isEnded && machine.stage == nil)
        #expect(machine.wish(wishes(cancel)) == .none)
        let again = machine.transferEnded(withFailure: true, isHeldBack: false)
        #expect(!again)
    }

    @Test func `suspended before anything is sent it gives back what it has`() {
        var machine = TaskMachine()
        _ = machine.wish(wishes(resume))
        #expect(machine.wish(wishes(resume, suspend)) == .leaveLine)
        let refused = machine.granted()
        #expect(!refused)
        #expect(machine.wish(wishes(resume)) == .enterLine)
        _ = machine.granted()
        #expect(machine.wish(wishes(resume, suspend)) == .abandon)
        #expect(machine.wish(wishes(resume)) == .enterLine)
    }

    @Test func `brakes are set and released`() {
        var machine = TaskMachine()
        _ = machine.wish(wishes(resume))
        _ = machine.granted()
        machine.connected()
        #expect(machine.wish(wishes(resume, hold)) == .brake(.receiving))
        #expect(machine.wish(wishes(resume, hold)) == .none)
        #expect(machine.wish(wishes(resume, hold, suspend)) == .brake([.receiving, .sending]))
        #expect(machine.wish(wishes(resume, hold)) == .brake(.receiving))
        #expect(machine.wish(wishes(resume)) == .brake([]))
    }

    @Test func `a success under a brake is told when it is released, a failure at once`() {
        var machine = TaskMachine()
        _ = machine.wish(wishes(resume))
        _ = machine.granted()
        machine.connected()
        var failing = machine
        let told = machine.transferEnded(withFailure: false, isHeldBack: true)
        #expect(!told && !machine.isEnded)
        #expect(machine.wish(wishes(resume, hold)) == .none)
        var cancelled = machine
        #expect(machine.wish(wishes(resume)) == .tellRest)
        // What was held back set a brake again.
        let early = machine.restTold(isHeldBack: true)
        #expect(!early && !machine.isEnded)
        #expect(machine.wish(wishes(resume, hold)) == .none)
        #expect(machine.wish(wishes(resume)) == .tellRest)
        let last = machine.restTold(isHeldBack: false)
        #expect(last && machine.isEnded)
        let again = machine.restTold(isHeldBack: false)
        #expect(!again)
        #expect(cancelled.wish(wishes(resume, hold, cancel)) == .cancel(.nothing))
        let failed = failing.transferEnded(withFailure: true, isHeldBack: true)
        #expect(failed)
    }

    @Test func `a request that is sent anew can be given up again, and its brakes are set anew`() {
        var machine = TaskMachine()
        machine.restarted()
        #expect(machine.stage == nil)
        _ = machine.wish(wishes(resume))
        _ = machine.granted()
        machine.connected()
        #expect(machine.wish(wishes(resume, suspend)) == .brake([.receiving, .sending]))
        var held = machine
        machine.restarted()
        #expect(machine.stage == .connecting)
        #expect(machine.wish(wishes(resume, suspend)) == .abandon)
        #expect(machine.wish(wishes(resume)) == .enterLine)
        held.restarted()
        #expect(held.wish(wishes(resume, hold)) == .brake(.receiving))
    }

    @Test func `a cancel gives back what the task has`() {
        var created = TaskMachine()
        #expect(created.wish(wishes(cancel)) == .cancel(.nothing))
        var waiting = TaskMachine()
        _ = waiting.wish(wishes(resume))
        #expect(waiting.wish(wishes(resume, cancel)) == .cancel(.place))
        #expect(waiting.wish(wishes(resume, cancel)) == .none)
        var running = TaskMachine()
        _ = running.wish(wishes(resume))
        _ = running.granted()
        #expect(running.wish(wishes(resume, cancel)) == .cancel(.transfer))
        let granted = running.granted()
        #expect(running.isEnded && !granted)
    }

    @Test func `wishes are posted once until they are taken, and not at all when they change nothing`() {
        var wishes = TaskDemands()
        #expect(!wishes.suspend(at: 1) && !wishes.hold(at: 2) && !wishes.proceed(at: 3))
        #expect(wishes.resume(at: 4) && !wishes.cancel())
        let taken = wishes.take()
        #expect(taken.isStarted && !taken.isSuspended && taken.isCancelled)
        #expect(!wishes.cancel() && wishes.suspend(at: 5))
        _ = wishes.take()
        #expect(!wishes.end(asCancelled: false) && wishes.end(asCancelled: true))
        #expect(!wishes.end(asCancelled: true) && !wishes.resume(at: 6))
    }

    @Test func `an order that comes after a newer one changes nothing`() {
        var wishes = TaskDemands()
        let (start, stop) = (
            BrakeOrder(number: 1, isSuspended: false, isHeld: false),
            BrakeOrder(number: 2, isSuspended: true, isHeld: false)
        )
        let goOn = BrakeOrder(number: 3, isSuspended: false, isHeld: true)
        // Of a task that was never started nobody need be told.
        var isNews = [wishes.obey(stop, at: 0), wishes.obey(start, at: 0)]
        #expect(isNews == [false, false] && !wishes.isStarted && wishes.isSuspended)
        isNews = [wishes.obey(goOn, at: 0), wishes.obey(stop, at: 0)]
        #expect(isNews == [true, false] && wishes.isStarted && !wishes.isSuspended && wishes.isHeld)
        // What is not ordered counts as it comes, and is overtaken by nothing older.
        isNews = [wishes.suspend(at: 0), wishes.obey(goOn, at: 0)]
        #expect(isNews == [false, false] && wishes.isSuspended)
    }

    @Test func `the time of a pause counts from when it was asked for, whoever came by meanwhile`() {
        var wishes = TaskDemands()
        _ = wishes.resume(at: 10)
        #expect(wishes.pauses.since == nil && wishes.pauses.sum(at: 20) == 0)
        _ = wishes.hold(at: 20)
        // A second brake neither begins the pause anew nor ends it.
        _ = wishes.suspend(at: 25)
        _ = wishes.proceed(at: 30)
        #expect(wishes.pauses.since == 20 && wishes.pauses.sum(at: 35) == 15)
        _ = wishes.take()
        _ = wishes.resume(at: 40)
        #expect(wishes.pauses.since == nil && wishes.pauses.past == 20)
        _ = wishes.obey(BrakeOrder(number: 2, isSuspended: false, isHeld: true), at: 50)
        _ = wishes.obey(BrakeOrder(number: 1, isSuspended: false, isHeld: false), at: 55)
        #expect(wishes.pauses.since == 50 && wishes.pauses.sum(at: 60) == 30)
        // A clock that two threads read may seem to go back.
        _ = wishes.proceed(at: 49)
        #expect(wishes.pauses.since == nil && wishes.pauses.past == 20)
    }
}
