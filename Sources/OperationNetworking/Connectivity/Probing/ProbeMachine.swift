// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// When a probe is sent, and what follows from its answer: a pure value, told chance.
///
/// Each probe and each pause has a number. What comes with another than the present one is not heard.
struct ProbeMachine: Sendable, Equatable {
    enum Action: Sendable, Equatable {
        case none
        /// Ask, and say what came of it with this number.
        case ask(Int)
        /// Say with this number that so much time has passed.
        case wait(Duration, Int)
    }

    enum Result: Sendable, Equatable {
        case answer(NetworkProbe.Verdict)
        /// No answer came.
        case failure
    }

    private enum State: Sendable, Equatable {
        /// Not begun, or nobody wants to know.
        case resting
        case asking
        /// The path changed while it asked: what comes of that may be of the past.
        case askingInVain
        case waiting
        case ended
    }

    private var state = State.resting
    private var number = 0
    /// How many probes in a row did not come through.
    private var failures = 0

    /// Asks now: at the beginning, when the path changed, or when the user wants to know.
    mutating func askNow() -> Action {
        switch state {
        case .resting, .waiting: return ask()
        case .asking:
            state = .askingInVain
            return .none
        case .askingInVain, .ended: return .none
        }
    }

    private mutating func ask() -> Action {
        state = .asking
        number += 1
        return .ask(number)
    }

    /// Asks no more until it is told to.
    mutating func rest() {
        if state == .ended { return }
        state = .resting
        number += 1
    }

    /// What is known then, and what is to be done; nil if that does not matter any more.
    mutating func ended(
        _ number: Int, _ result: Result, of probe: NetworkProbe, chance: Double
    ) -> (Connectivity, Action)? {
        guard number == self.number else { return nil }
        switch state {
        case .asking: break
        case .askingInVain: return (connectivity(result), ask())
        case .resting, .waiting, .ended: return nil
        }
        state = .waiting
        let connectivity = connectivity(result)
        failures = connectivity.isOffline ? failures + 1 : 0
        let pause =
            connectivity.isOffline
            ? probe.backoff.pause(after: failures, chance: chance)
            : max(probe.interval, .milliseconds(1)).clamped * (1 + chance / 10)
        return (connectivity, .wait(max(pause, .milliseconds(1)), number))
    }

    private func connectivity(_ result: Result) -> Connectivity {
        switch result {
        case .answer(.reached): return .satisfied
        case .answer(.unclear): return .unknown
        case .failure: return .unsatisfied
        case .answer(.intercepted):
            var connectivity = Connectivity.unsatisfied
            connectivity.isCaptive = true
            return connectivity
        }
    }

    /// Whether that probe, or the pause after it, is under way.
    func isPresent(_ number: Int) -> Bool {
        number == self.number && [.asking, .askingInVain, .waiting].contains(state)
    }

    /// The pause is over.
    mutating func waited(_ number: Int) -> Action {
        state == .waiting && number == self.number ? ask() : .none
    }

    /// It is over.
    mutating func end() { state = .ended }
}
