// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

@Suite("The state machine of attempts")
struct AttemptMachineTests {
    typealias Machine = AttemptMachine

    /// Brings a machine to a phase of its first attempt.
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
        case .waiting:
            _ = machine.failed(1)
            _ = machine.decided(.again(after: .seconds(1)), 1)
        case .ended: _ = machine.end()
        default:
            for (step, event) in steps where machine.phase == step && phase != step { _ = event(&machine) }
        }
        #expect(machine.phase == phase)
        return machine
    }

    private static let phases: [Machine.Phase] = [
        .idle, .preparing, .creating, .transferring, .evaluating, .deciding, .waiting, .concluding, .ended,
    ]

    private static let events: [(name: String, event: @Sendable (inout Machine, Int) -> Machine.Action)] = [
        ("prepared", { $0.prepared($1) }), ("created", { $0.created($1) }), ("transferred", { $0.transferred($1) }),
        ("evaluated", { $0.evaluated($1) }), ("failed", { $0.failed($1) }),
        ("transferFailed", { $0.transferFailed($1) }), ("fail", { $0.decided(.fail, $1) }),
        ("again", { $0.decided(.again(after: .zero), $1) }), ("waited", { $0.waited($1) }),
    ]

    @Test("Each event moves the phase it belongs to, and no other")
    func table() {
        let moving: [String: [Machine.Phase: (Machine.Phase, Machine.Action)]] = [
            "prepared": [.preparing: (.creating, .createTask)],
            "created": [.creating: (.transferring, .settleTask)],
            "transferred": [.creating: (.evaluating, .evaluate), .transferring: (.evaluating, .evaluate)],
            "evaluated": [.evaluating: (.concluding, .conclude)],
            "failed": [
                .preparing: (.deciding, .decide), .creating: (.deciding, .decide), .transferring: (.deciding, .decide),
                .evaluating: (.deciding, .decide),
            ],
            "transferFailed": [.creating: (.deciding, .decide), .transferring: (.deciding, .decide)],
            "fail": [.deciding: (.concluding, .conclude)],
            "again": [.deciding: (.preparing, .prepare)],
            "waited": [.waiting: (.preparing, .prepare)],
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

    @Test("An event of another attempt moves nothing")
    func strangers() {
        for phase in Self.phases {
            for (name, event) in Self.events {
                var machine = machine(at: phase)
                let action = event(&machine, 2)
                #expect(action == .none, "\(name) at \(phase)")
                #expect(machine == self.machine(at: phase))
            }
        }
    }

    @Test("While it is suspended no step begins, and the one that is due begins with the resumption")
    func suspension() {
        for (name, event) in Self.events where name != "created" {
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
                #expect(resumed == (isSettling ? .settleTask : wanted), "\(name) at \(phase)")
                let again = machine.resume()
                #expect(machine.phase == .transferring || again == .none)
            }
        }
    }

    @Test("A task that was made during a suspension is settled at once, and again afterwards")
    func suspendedCreation() {
        var machine = machine(at: .creating)
        let got1 = machine.suspend()
        #expect(got1 == .none)
        let got2 = machine.created(1)
        #expect(got2 == .settleTask)
        #expect(machine.isSuspended)
        let got3 = machine.resume()
        #expect(got3 == .settleTask)
    }

    @Test("What was said last about the suspension has the largest number")
    func orders() {
        var machine = machine(at: .transferring)
        let first = machine.order
        _ = machine.suspend()
        let second = machine.order
        _ = machine.resume()
        let third = machine.order
        #expect(!first.isSuspended && second.isSuspended && !third.isSuspended)
        #expect(first.number < second.number && second.number < third.number)
        // The brake of the receiver is none of its business.
        #expect(first.isHeld == nil)
    }

    @Test("The end comes once, and nothing after it")
    func end() {
        for phase in Self.phases where phase != .ended {
            var machine = machine(at: phase)
            let ends = [machine.end(), machine.end()]
            #expect(ends == [true, false])
            var actions = [machine.start(), machine.suspend(), machine.resume()]
            for (_, event) in Self.events { actions.append(event(&machine, 1)) }
            #expect(actions.allSatisfy { $0 == .none })
        }
    }

    @Test("An attempt that is repeated has the next number, after the wait that was asked for")
    func again() {
        var machine = machine(at: .deciding)
        let got4 = machine.decided(.again(after: .seconds(3)), 1)
        #expect(got4 == .wait(.seconds(3)))
        let got5 = machine.waited(1)
        #expect(got5 == .prepare)
        #expect(machine.attempt == 2)
        let got6 = machine.prepared(1)
        #expect(got6 == .none)
        let got7 = machine.prepared(2)
        #expect(got7 == .createTask)
    }
}
