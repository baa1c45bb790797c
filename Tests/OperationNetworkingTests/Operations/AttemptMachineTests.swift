// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

@Suite("State machine of attempts")
struct AttemptMachineTests {
    typealias Machine = AttemptMachine

    /// Returns a machine in a phase of its first attempt.
    private func machine(at phase: Machine.Phase) -> Machine {
        var machine = Machine()
        if phase == .idle { return machine }
        _ = machine.start()
        let steps: [(Machine.Phase, (inout Machine) -> Machine.Action)] = [
            (.preparing, { $0.prepared(1) }), (.creating, { $0.created(1) }), (.transferring, { $0.transferred(1) }),
            (.evaluating, { $0.evaluated(1) }),
        ]
        switch phase {
        case .deciding: _ = machine.failed(1)
        case .clearing: _ = machine.prepared(1, isGated: true)
        case .holding:
            _ = machine.prepared(1, isGated: true)
            _ = machine.held(Self.reason, 1)
        case .waiting:
            _ = machine.failed(1)
            _ = machine.decided(.again(after: .seconds(1)), 1)
        case .paused:
            _ = machine.failed(1)
            _ = machine.decided(.pause(Self.reason), 1)
        case .returning:
            _ = machine.prepared(1, isGated: true)
            _ = machine.released(1)
        case .ended: _ = machine.end()
        default:
            for (step, event) in steps where machine.phase == step && phase != step { _ = event(&machine) }
        }
        #expect(machine.phase == phase)
        return machine
    }

    private static let phases: [Machine.Phase] = [
        .idle, .preparing, .clearing, .holding, .creating, .transferring, .evaluating, .deciding, .waiting, .paused,
        .returning, .concluding, .ended,
    ]
    private static let reason = WaitReason(.credential, "waiting for a credential")

    private static let events: [(name: String, event: @Sendable (inout Machine, Int) -> Machine.Action)] = [
        ("prepared", { $0.prepared($1) }), ("prepared, gated", { $0.prepared($1, isGated: true) }),
        ("cleared", { $0.cleared($1) }), ("held", { $0.held(reason, $1) }), ("released", { $0.released($1) }),
        ("refused", { $0.refused($1) }), ("created", { $0.created($1) }), ("transferred", { $0.transferred($1) }),
        ("evaluated", { $0.evaluated($1) }), ("failed", { $0.failed($1) }),
        ("transferFailed", { $0.transferFailed($1) }), ("fail", { $0.decided(.fail, $1) }),
        ("again", { $0.decided(.again(after: .zero), $1) }), ("later", { $0.decided(.again(after: .seconds(1)), $1) }),
        ("replay", { $0.decided(.replay(after: .zero), $1) }), ("pause", { $0.decided(.pause(reason), $1) }),
        ("waited", { $0.waited($1) }), ("returned", { $0.returned($1) }), ("takenBack", { $0.takenBack($1) }),
    ]

    @Test func `each event changes only the phases to which it belongs`() {
        let moving: [String: [Machine.Phase: (Machine.Phase, Machine.Action)]] = [
            "prepared": [.preparing: (.creating, .createTask)],
            "prepared, gated": [.preparing: (.clearing, .clear)],
            "cleared": [.clearing: (.creating, .createTask)],
            "held": [.clearing: (.holding, .rest(Self.reason)), .holding: (.holding, .rest(Self.reason))],
            "released": [.clearing: (.returning, .takeSlot), .holding: (.returning, .takeSlot)],
            "refused": [.clearing: (.deciding, .decide), .holding: (.deciding, .decide)],
            "created": [.creating: (.transferring, .resumeOrSuspendTask)],
            "transferred": [.creating: (.evaluating, .evaluate), .transferring: (.evaluating, .evaluate)],
            "evaluated": [.evaluating: (.concluding, .conclude)],
            "failed": [
                .preparing: (.deciding, .decide), .clearing: (.deciding, .decide), .creating: (.deciding, .decide),
                .transferring: (.deciding, .decide), .evaluating: (.deciding, .decide),
            ],
            "transferFailed": [.creating: (.deciding, .decide), .transferring: (.deciding, .decide)],
            "fail": [.deciding: (.concluding, .conclude), .paused: (.concluding, .conclude)],
            "again": [.deciding: (.returning, .takeSlot), .paused: (.returning, .takeSlot)],
            "later": [.deciding: (.waiting, .wait(.seconds(1))), .paused: (.waiting, .wait(.seconds(1)))],
            "replay": [.deciding: (.returning, .takeSlot), .paused: (.returning, .takeSlot)],
            "pause": [.deciding: (.paused, .rest(Self.reason)), .paused: (.paused, .rest(Self.reason))],
            "waited": [.waiting: (.returning, .takeSlot)],
            "returned": [.returning: (.preparing, .prepare)],
            "takenBack": [.creating: (.preparing, .prepare), .transferring: (.preparing, .prepare)],
        ]
        for phase in Self.phases {
            for (name, event) in Self.events {
                var machine = machine(at: phase)
                let action = event(&machine, 1)
                let (next, wanted) = moving[name]?[phase] ?? (phase, .none)
                #expect(machine.phase == next, "\(name) at \(phase)")
                #expect(action == wanted, "\(name) at \(phase)")
            }
        }
    }

    @Test func `a request gets only one task, and a refused response is complete at the time limit`() {
        var machine = machine(at: .creating)
        var steps = [machine.creation(), machine.creation(), machine.created(1)]
        #expect(steps == [.createTask, .none, .resumeOrSuspendTask])
        let refusals = [machine.refusedResponse(2), machine.refusedResponse(1), machine.refusedResponse(1)]
        #expect(refusals == [false, true, false])
        var late = machine
        let end = late.exceededTimeLimit(1)
        #expect(end == .evaluate)
        // The next request has neither a task nor a response.
        steps = [machine.takenBack(1), machine.prepared(2), machine.creation(), machine.exceededTimeLimit(2)]
        #expect(steps == [.prepare, .createTask, .createTask, .decide])
    }

    @Test func `an event of another attempt changes nothing`() {
        for phase in Self.phases {
            for (name, event) in Self.events {
                var machine = machine(at: phase)
                let action = event(&machine, 2)
                #expect(action == .none, "\(name) at \(phase)")
                #expect(machine == self.machine(at: phase))
            }
        }
    }

    @Test func `while suspended, no step begins, and the pending step begins when the operation is resumed`() {
        // A new task is settled immediately, waiting is not a step, and a cleared request is prepared again.
        let isNoStep: Set = ["created", "held", "later", "pause", "cleared"]
        for (name, event) in Self.events where !isNoStep.contains(name) {
            for phase in Self.phases {
                var free = machine(at: phase)
                let wanted = event(&free, 1)
                var machine = machine(at: phase)
                _ = machine.suspend()
                let held = event(&machine, 1)
                #expect(held == .none, "\(name) at \(phase)")
                #expect(machine.phase == free.phase)
                let resumed = machine.resume()
                let isSettling = phase == .transferring && wanted == .none
                #expect(resumed == (isSettling ? .resumeOrSuspendTask : wanted), "\(name) at \(phase)")
                let again = machine.resume()
                #expect(machine.phase == .transferring || again == .none)
            }
        }
    }

    @Test func `a withdrawn request is prepared again as an attempt that does not count`() {
        var machine = machine(at: .transferring)
        let action = machine.takenBack(1)
        #expect(action == .prepare && machine.attempt == 2 && machine.replays == 1)
        // Later reports of its task are ignored.
        let late = machine.transferFailed(1)
        #expect(late == .none && !machine.acceptsEvents(1) && !machine.needsTask(1))
    }

    @Test func `a task that is created during a suspension is settled immediately, and again afterwards`() {
        var machine = machine(at: .creating)
        let got1 = machine.suspend()
        #expect(got1 == .none)
        let got2 = machine.created(1)
        #expect(got2 == .resumeOrSuspendTask)
        #expect(machine.isSuspended)
        let got3 = machine.resume()
        #expect(got3 == .resumeOrSuspendTask)
    }

    @Test func `the last order to suspend or resume has the highest number`() {
        var machine = machine(at: .transferring)
        let first = machine.order
        _ = machine.suspend()
        let second = machine.order
        _ = machine.resume()
        let third = machine.order
        #expect(!first.isSuspended && second.isSuspended && !third.isSuspended)
        #expect(first.number < second.number && second.number < third.number)
        // The order does not contain whether the receiver holds the transfer.
        #expect(first.isHeld == nil)
    }

    @Test func `an attempt ends once, and no action follows`() {
        for phase in Self.phases where phase != .ended {
            var machine = machine(at: phase)
            let ends = [machine.end(), machine.end()]
            #expect(ends == [true, false])
            var actions = [machine.start(), machine.suspend(), machine.resume()]
            for (_, event) in Self.events { actions.append(event(&machine, 1)) }
            #expect(actions.allSatisfy { $0 == .none })
        }
    }

    @Test func `a repeated attempt gets the next number after the requested pause`() {
        var machine = machine(at: .deciding)
        let got4 = machine.decided(.again(after: .seconds(3)), 1)
        #expect(got4 == .wait(.seconds(3)))
        let got5 = machine.waited(1)
        #expect(got5 == .takeSlot)
        #expect(machine.attempt == 2)
        let got8 = machine.returned(2)
        #expect(got8 == .prepare)
        let got6 = machine.prepared(1)
        #expect(got6 == .none)
        let got7 = machine.prepared(2)
        #expect(got7 == .createTask)
    }

    @Test func `a paused attempt resumes with another decision, and does not count`() {
        var machine = machine(at: .paused)
        let steps = [machine.decided(.again(after: .zero), 1), machine.returned(2), machine.prepared(2)]
        #expect(steps == [.takeSlot, .prepare, .createTask])
        #expect(machine.attempt == 2 && machine.replays == 1)
        _ = machine.failed(2)
        _ = machine.decided(.replay(after: .seconds(1)), 2)
        #expect(machine.replays == 2)
    }

    @Test func `a held attempt is prepared again, and events of its earlier round are ignored`() {
        var machine = machine(at: .holding)
        let steps = [machine.released(1), machine.released(1), machine.returned(1), machine.prepared(1, isGated: true)]
        #expect(steps == [.takeSlot, .none, .prepare, .clear])
        #expect(machine.attempt == 1 && machine.round == 2)
        let late = [machine.cleared(1), machine.held(Self.reason, 1), machine.released(1), machine.refused(1)]
        #expect(late.allSatisfy { $0 == .none })
        let cleared = machine.cleared(2)
        #expect(cleared == .createTask)
    }

    @Test func `a cleared request that was not sent because of a suspension is prepared again`() {
        var machine = machine(at: .clearing)
        _ = machine.suspend()
        var steps = [machine.cleared(1), machine.resume(), machine.prepared(1, isGated: true), machine.cleared(2)]
        #expect(steps == [.none, .prepare, .clear, .createTask])
        #expect(machine.round == 2 && machine.attempt == 1)
        // The same happens just before the task is created.
        _ = machine.suspend()
        steps = [machine.creation(), machine.resume(), machine.prepared(1, isGated: true), machine.cleared(3)]
        #expect(steps == [.none, .prepare, .clear, .createTask])
        _ = machine.suspend()
        steps = [machine.resume(), machine.creation(), machine.prepared(1, isGated: true), machine.cleared(4)]
        #expect(steps == [.none, .prepare, .clear, .createTask])
        let creation = machine.creation()
        #expect(creation == .createTask)
        // Without a clearance, no credential can be outdated.
        machine = self.machine(at: .creating)
        _ = machine.suspend()
        let plain = machine.creation()
        #expect(plain == .createTask && machine.phase == .creating)
    }
}
