// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How far one operation is on the way from its dependencies to its body, as a pure value.
///
/// ```text
///        seek                 passed                   passed                     passed
/// idle ───────▶ conditions ───────────▶ throttle ───────────────▶ categories ─────────────▶ granted
///   ◀────────────────────────────── withdraw, from everywhere ─────────────────────────────────│
/// ```
///
/// Steps that the operation has no need of are left out. Each way is a *round*: an answer that comes for an earlier
/// round means nothing any more. A round begins with a count of the dependencies that were ever added, its *epoch*: where
/// one was added since, what was found out does not count.
package struct AdmissionMachine: Sendable, Equatable {
    /// What stands between the dependencies and the body, in this order.
    package enum Step: UInt8, Sendable, CaseIterable { case conditions, throttle, categories }

    /// What the shell does next.
    package enum Action: Sendable, Equatable {
        /// Ask for this.
        case take(Step)
        /// Nothing more stands in the way.
        case admit
    }

    private enum Phase: Equatable {
        case idle
        case taking(Step)
        case granted
    }

    private var phase = Phase.idle
    private var steps: [Step] = []
    private var epoch = 0
    /// The number of the present or last round.
    package private(set) var round: UInt32 = 0

    package init() {}

    /// The step for whose answer it waits.
    package var currentStep: Step? {
        if case .taking(let step) = phase { step } else { nil }
    }

    /// Whether a round began and was not withdrawn.
    package var isUnderWay: Bool { phase != .idle }

    /// Whether all was granted, and no dependency was added since the round began.
    package func isGranted(epoch: Int) -> Bool { phase == .granted && self.epoch == epoch }

    /// Whether a dependency was added since the round began.
    package func isStale(epoch: Int) -> Bool { phase != .idle && self.epoch != epoch }

    /// Begins a round that takes these steps in their order; nil if one is under way.
    package mutating func seek(_ steps: [Step], epoch: Int) -> Action? {
        guard phase == .idle else { return nil }
        self.steps = Step.allCases.filter(steps.contains)
        self.epoch = epoch
        round &+= 1
        return advance(to: self.steps.first)
    }

    /// What was asked for in that round was granted; nil if it is not what it waits for.
    package mutating func passed(_ step: Step, round: UInt32) -> Action? {
        guard round == self.round, phase == .taking(step) else { return nil }
        return advance(to: steps.first { $0.rawValue > step.rawValue })
    }

    /// Ends the round; returns the steps that were asked for, granted or not, whose grants are to be given back.
    package mutating func withdraw() -> [Step] {
        defer { phase = .idle }
        switch phase {
        case .idle: return []
        case .taking(let current): return steps.filter { $0.rawValue <= current.rawValue }
        case .granted: return steps
        }
    }

    private mutating func advance(to step: Step?) -> Action {
        guard let step else {
            phase = .granted
            return .admit
        }
        phase = .taking(step)
        return .take(step)
    }
}
