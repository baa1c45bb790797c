// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import Testing

private typealias Step = AdmissionMachine.Step

@Suite("Every state and every event of the admission machine", .timeLimit(.minutes(3)))
struct AdmissionMachineTests {
    private static let subsets: [[Step]] = (0..<8).map { bits in Step.allCases.filter { bits & (1 << $0.rawValue) != 0 }
    }

    /// A machine that requests some steps, of which `granted` steps have been granted.
    private static func machine(_ steps: [Step], granted: Int) -> AdmissionMachine {
        var machine = AdmissionMachine()
        _ = machine.seek(steps, epoch: 7)
        for step in steps.prefix(granted) { _ = machine.passed(step, round: machine.round) }
        return machine
    }

    @Test(arguments: subsets)
    fileprivate func `the required steps are taken in order`(steps: [Step]) {
        var machine = AdmissionMachine()
        var action = machine.seek(steps.reversed(), epoch: 7)
        for step in steps {
            #expect(action == .take(step) && machine.currentStep == step)
            #expect(machine.isUnderWay && !machine.isGranted(epoch: 7))
            action = machine.passed(step, round: machine.round)
        }
        #expect(action == .admit && machine.currentStep == nil)
        #expect(machine.isGranted(epoch: 7) && !machine.isGranted(epoch: 8))
        #expect(machine.isStale(epoch: 8) && !machine.isStale(epoch: 7))
    }

    @Test(arguments: subsets)
    fileprivate func `an answer to another step or of another round has no effect`(steps: [Step]) {
        for granted in 0...steps.count {
            let before = Self.machine(steps, granted: granted)
            for step in Step.allCases {
                for round in [before.round &- 1, before.round, before.round &+ 1] {
                    if step == before.currentStep, round == before.round { continue }
                    var machine = before
                    let action = machine.passed(step, round: round)
                    #expect(action == nil && machine == before)
                }
            }
            var machine = before
            let action = machine.seek(Step.allCases, epoch: 9)
            #expect(action == nil && machine == before)
        }
    }

    @Test(arguments: subsets)
    fileprivate func `withdrawing at any step returns all requested steps once`(steps: [Step]) {
        for granted in 0...steps.count {
            var machine = Self.machine(steps, granted: granted)
            let round = machine.round
            let current = machine.currentStep
            let returned = machine.withdraw()
            #expect(returned == Array(steps.prefix(granted + 1)))
            #expect(!machine.isUnderWay && !machine.isStale(epoch: 8) && machine.currentStep == nil)
            let again = machine.withdraw()
            #expect(again == [])
            // A late answer has no effect, even if the next round waits for the same step.
            _ = machine.seek(steps, epoch: 8)
            let late = current.flatMap { machine.passed($0, round: round) }
            #expect(late == nil)
        }
    }

    @Test func `categories are requested after the delay when the machine is called, and can be yielded`() {
        var machine = AdmissionMachine()
        _ = machine.seek(Step.allCases, epoch: 7, isDelayed: true)
        let round = machine.round
        _ = machine.passed(.conditions, round: round)
        let last = machine.passed(.throttle, round: round)
        #expect(last == .admit && machine.isDelayed(epoch: 7) && !machine.isGranted(epoch: 7))
        let early = (machine.call(round: round), machine.ask(epoch: 7), machine.yield())
        #expect(early == (false, false, false))
        let (stale, due) = (machine.delayEnded(epoch: 8), machine.delayEnded(epoch: 7))
        #expect(stale == nil && due == .take(.categories))
        for _ in 0..<3 {
            let (old, isCalled) = (machine.call(round: round &- 1), machine.call(round: round))
            #expect(!old && isCalled && machine.isCalled(epoch: 7) && !machine.isCalled(epoch: 8))
            let (outdated, asks, again) = (machine.ask(epoch: 8), machine.ask(epoch: 7), machine.ask(epoch: 7))
            #expect(!outdated && asks && !again && machine.currentStep == .categories)
        }
        let granted = machine.passed(.categories, round: round)
        #expect(granted == .admit && machine.isGranted(epoch: 7))
        let (isYielding, twice) = (machine.yield(), machine.yield())
        #expect(isYielding && !twice && !machine.isGranted(epoch: 7) && !machine.isDelayed(epoch: 7))
        var withdrawn = machine
        let steps = withdrawn.withdraw()
        #expect(steps == Step.allCases)
        machine.yielded(round: round)
        let next = machine.delayEnded(epoch: 7)
        #expect(next == .take(.categories))
    }

    @Test func `a late call does not hide that the categories were granted`() {
        var machine = AdmissionMachine()
        _ = machine.seek([.categories], epoch: 0)
        let round = machine.round
        let asks = machine.call(round: round) && machine.ask(epoch: 0)
        #expect(asks)
        let late = machine.call(round: round)
        let stale = machine.passed(.categories, round: round &- 1)
        let granted = machine.passed(.categories, round: round)
        #expect(late && stale == nil && granted == .admit && machine.isGranted(epoch: 0))
    }
}
