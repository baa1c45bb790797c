// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import Testing

/// Every event that a lifecycle machine handles.
private enum Event: CaseIterable {
    case startReady, startUnready, startDelayed, startPreparing, startUnadmitted, enterBody
    case dependenciesEnded, turnCame, turnCameDelayed, turnCameUnadmitted, delayEnded
    case admitted, admittedAtOnce, admittedAtOnceDelayed
    case succeed, fail, failByRule, cancel, cancellationNotified
    case bodyReturned, end, suspend, resume
}

@Suite("Every state and every event of the lifecycle machine", .timeLimit(.minutes(3)))
struct LifecycleMachineTests {
    typealias Style = LifecycleMachine.Style

    private static let styles = [Style.atOnce, .afterWindDown, .whenBodyReturns]

    @Test(arguments: styles)
    func `the outcome is decided, reported and ended only once for any sequence of events`(style: Style) {
        for (before, event, after) in transitions(style: style) {
            if let ending = before.ending {
                #expect(after.ending == ending, "\(event) changed \(before) to \(after)")
            }
            if before.isOutcomeReported {
                #expect(after.isOutcomeReported, "\(event) took back a reported outcome: \(before)")
            }
            if before.isFinished { #expect(after == before, "\(event) moved a finished machine: \(after)") }
            if after.isFinished {
                #expect(after.isOutcomeReported && after.isStarted, "\(event) ended \(before) early")
            }
        }
    }

    @Test(arguments: styles)
    func `every reachable state can reach the finished state`(style: Style) {
        for machine in states(style: style) {
            #expect(
                states(after: machine, style: style).contains { $0.isFinished }, "\(machine) can never end")
        }
    }

    @Test(arguments: styles)
    func `canceling reports the outcome immediately, and finishing reports it unless it is kept`(style: Style) {
        for machine in states(style: style) where machine.ending == nil {
            var cancelled = machine
            let action = cancelled.cancel(style: style)
            #expect(action != .refuse && cancelled.isOutcomeReported && cancelled.state == .cancelled)
            var finished = machine
            let finish = finished.finish(.success, style: style)
            #expect(finish == .notifyAndEnd || finish == .keep)
            #expect(finished.isOutcomeReported == (finish == .notifyAndEnd))
        }
    }

    @Test(arguments: styles)
    func `the body runs at most once, and never after the outcome is decided`(style: Style) {
        for (before, event, after) in transitions(style: style) where !before.isExecuting && after.isExecuting {
            #expect(before.ending == nil, "\(event) ran the body of \(before)")
            #expect(!before.isStarted, "\(event) ran the body of \(before) again")
        }
    }

    @Test(arguments: styles)
    func `a start requests a preparation if and only if the body was not entered`(style: Style) {
        let starts: [(inout LifecycleMachine) -> LifecycleMachine.StartAction?] = [
            { $0.start(isReady: true, hasDelay: false) },
            { $0.start(isReady: true, hasDelay: false, prepares: true) },
            { $0.turnCame(hasDelay: false) },
            { $0.admittedAtOnce(hasDelay: false) },
            { $0.delayEnded() },
        ]
        for before in states(style: style) {
            for start in starts {
                var machine = before
                let action = start(&machine)
                guard !before.isExecuting, machine.isExecuting else {
                    #expect(action != .run && action != .prepareBody, "\(before) became \(machine)")
                    continue
                }
                var entered = machine
                let begins = entered.enterBody()
                #expect(begins && action == (entered == machine ? .run : .prepareBody), "\(before) became \(machine)")
            }
        }
    }

    @Test func `an error from a dependency rule ignores other dependencies and waits only for the start`() {
        for (before, event, after) in transitions(style: .atOnce)
        where event == .failByRule && before.ending == nil && !before.isExecuting {
            #expect(after.ending == .failure && after.ignoresDependencies, "\(before) became \(after)")
            #expect(after.isOutcomeReported == before.isStartAwaited, "\(before) became \(after)")
            var started = after
            #expect(after.isOutcomeReported || started.start(isReady: false, hasDelay: false) == .notifyAndEnd)
        }
    }

    @Test func `a synchronous operation never ends while its body runs`() {
        for (before, event, after) in transitions(style: .whenBodyReturns)
        where before.isExecuting && !after.isExecuting {
            #expect(event == .bodyReturned, "\(event) ended the execution of \(before)")
        }
    }

    @Test func `only an operation that was not started accepts dependencies`() {
        for (_, event, after) in transitions(style: .atOnce) where "\(event)".hasPrefix("start") {
            #expect(!after.acceptsDependencies)
        }
        #expect(LifecycleMachine().acceptsDependencies)
    }

    // Walks all reachable states.

    private func states(style: Style) -> [LifecycleMachine] {
        let found = states(after: LifecycleMachine(), style: style)
        #expect(found.count > 12)
        return found
    }

    private func states(after start: LifecycleMachine, style: Style) -> [LifecycleMachine] {
        var found = [start]
        var next = 0
        while next < found.count {
            for event in Event.allCases {
                var machine = found[next]
                apply(event, to: &machine, style: style)
                if !found.contains(machine) { found.append(machine) }
            }
            next += 1
        }
        return found
    }

    private func transitions(style: Style) -> [(LifecycleMachine, Event, LifecycleMachine)] {
        states(style: style).flatMap { before in
            Event.allCases.map { event in
                var after = before
                apply(event, to: &after, style: style)
                return (before, event, after)
            }
        }
    }

    private func apply(_ event: Event, to machine: inout LifecycleMachine, style: Style) {
        switch event {
        case .startReady: _ = machine.start(isReady: true, hasDelay: false)
        case .startUnready: _ = machine.start(isReady: false, hasDelay: false)
        case .startDelayed: _ = machine.start(isReady: true, hasDelay: true)
        case .startPreparing: _ = machine.start(isReady: true, hasDelay: false, prepares: true)
        case .enterBody: _ = machine.enterBody()
        case .startUnadmitted: _ = machine.start(isReady: true, isAdmitted: false, hasDelay: false)
        case .dependenciesEnded: _ = machine.dependenciesEnded()
        case .turnCame: _ = machine.turnCame(hasDelay: false)
        case .turnCameDelayed: _ = machine.turnCame(hasDelay: true)
        case .turnCameUnadmitted: _ = machine.turnCame(isAdmitted: false, hasDelay: false)
        case .admitted: _ = machine.admitted()
        case .admittedAtOnce: _ = machine.admittedAtOnce(hasDelay: false)
        case .admittedAtOnceDelayed: _ = machine.admittedAtOnce(hasDelay: true)
        case .delayEnded: _ = machine.delayEnded()
        case .succeed: _ = machine.finish(.success, style: style)
        case .fail: _ = machine.finish(.failure, style: style)
        case .failByRule: _ = machine.failByRule()
        case .cancel: _ = machine.cancel(style: style)
        case .cancellationNotified: _ = machine.cancellationNotified()
        // Only the body of a synchronous operation reports that it returned.
        case .bodyReturned: if style == .whenBodyReturns { _ = machine.bodyReturned() }
        case .end: _ = machine.end()
        case .suspend: _ = machine.suspend()
        case .resume: _ = machine.resume()
        }
    }
}
