// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// When a probe is sent, and what follows from its answer: a pure value, told the time and chance.
///
/// Each probe and each pause has a number. What comes with another than the present one is not heard. One probe that is
/// not answered may have been lost on the way: what is known stays until the next one, which comes soon.
package struct ProbeMachine: Sendable, Equatable {
    package enum Action: Sendable, Equatable {
        case none
        /// Give up what is under way, ask, and say what came of it with this number.
        case ask(Int)
        /// Say with this number that so much time has passed.
        case wait(Duration, Int)
    }

    package enum Result: Sendable, Equatable {
        case answer(NetworkProbe.Verdict)
        /// No answer came, which may be because the network is gone.
        case silence
        /// No answer came, for a reason that says nothing about the network: what is known stays.
        case nothing
    }

    private enum State: Sendable, Equatable {
        /// Not begun, or nobody wants to know.
        case resting
        case asking
        case waiting
        case ended
    }

    /// What is known.
    package private(set) var known = Connectivity.unknown
    private var state = State.resting
    private var number = 0
    /// How many probes in a row did not come through.
    private var failures = 0
    /// How many of the last probes that said something were not answered.
    private var silences = 0
    private var lastAsked: OperationInstant?

    /// After so many that were not answered there is no network.
    private static let silenceLimit = 2
    /// The least time from a probe to the one for another way out, up to twice of it by chance.
    ///
    /// A probe that is younger is as good as another. The pauses after probes that did not come through are those of the
    /// user's backoff, and may be shorter.
    private static let leastDistance = Duration.seconds(1)

    package init() {}

    /// Asks now: at the beginning, or when the user wants to know.
    ///
    /// A probe that is under way for long may be about what was before, and is given up; one that was sent just now is
    /// as good as another.
    package mutating func askNow(_ now: OperationInstant) -> Action {
        switch state {
        case .resting, .waiting: return ask(now)
        case .asking:
            let isFresh = lastAsked.map { $0.duration(to: now) < Self.leastDistance } ?? false
            return isFresh ? .none : ask(now)
        case .ended: return .none
        }
    }

    /// Asks as soon as it may: there is another way out, which may come and go quickly, on many machines at once.
    package mutating func askSoon(_ now: OperationInstant, chance: Double) -> Action {
        if state == .ended { return .none }
        let distance = Self.leastDistance * (1 + chance.asChance)
        let left = lastAsked.map { now.duration(to: $0.advanced(by: distance)) } ?? .zero
        guard left > .zero else { return ask(now) }
        state = .waiting
        number += 1
        return .wait(left, number)
    }

    /// The same, but what is known stays, and so does a probe that is under way: it is as good as another.
    package mutating func lookAgain(_ now: OperationInstant, chance: Double) -> Action {
        state == .waiting ? askSoon(now, chance: chance) : .none
    }

    private mutating func ask(_ now: OperationInstant) -> Action {
        state = .asking
        number += 1
        lastAsked = now
        return .ask(number)
    }

    /// Asks no more until it is told to, and knows nothing meanwhile.
    package mutating func rest() {
        if state == .ended { return }
        state = .resting
        number += 1
        (failures, silences, known) = (0, 0, .unknown)
    }

    /// What is to be done then; nil if that probe does not matter any more.
    package mutating func ended(
        _ number: Int, _ result: Result, of probe: NetworkProbe, chance: Double
    ) -> Action? {
        guard number == self.number, state == .asking else { return nil }
        state = .waiting
        switch result {
        case .answer(let verdict):
            silences = 0
            known = connectivity(verdict)
        case .silence:
            silences += 1
            if silences >= Self.silenceLimit { known = .unsatisfied }
        case .nothing: break
        }
        failures = known.isOffline || result == .silence ? failures + 1 : 0
        let pause =
            failures > 0
            ? probe.backoff.pause(after: failures, chance: chance)
            : max(probe.interval, .milliseconds(1)).clamped * (1 + chance.asChance / 10)
        return .wait(max(pause, .milliseconds(1)), number)
    }

    private func connectivity(_ verdict: NetworkProbe.Verdict) -> Connectivity {
        switch verdict {
        case .reached: return .satisfied
        case .unclear: return .unknown
        case .intercepted:
            var connectivity = Connectivity.unsatisfied
            connectivity.isCaptive = true
            return connectivity
        }
    }

    /// Whether that probe, or the pause after it, is under way.
    package func isPresent(_ number: Int) -> Bool {
        number == self.number && [.asking, .waiting].contains(state)
    }

    /// The pause is over.
    package mutating func waited(_ number: Int, _ now: OperationInstant) -> Action {
        state == .waiting && number == self.number ? ask(now) : .none
    }

    /// It is over.
    package mutating func end() { state = .ended }
}

extension Double {
    /// The number that a user gave as chance: from 0 to 1, whatever it is.
    var asChance: Double { self >= 0 ? min(self, 1) : 0 }
}
