// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How far one operation is on the way from its dependencies to its body, as a pure value.
///
/// ```text
///        seek                passed            passed, or delayEnded        passed
/// idle ───────▶ conditions ─────────▶ throttle ─────────────────────▶ categories ───────▶ granted
///   │                                     │ passed                      │   ▲  ▲            │
///   │                                     ▼           delayEnded     call   │  │ yield      │
///   │                                  delayed ────────────────────▶    ▼   │ ask           │
///   │                                                                called ◀───────────────┘
///   ◀────────────────────────────── withdraw, from everywhere ─────────────────────────────────
/// ```
///
/// The categories come last, after the start delay. An operation in a queue asks for them in two steps. First it lines
/// up, and is *called* when the categories seem to be free. A called operation waits for a slot and holds no category.
/// When it has the slot, it asks for the categories. If other operations were faster, it gives up the slot and waits to
/// be called again.
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
        /// Everything but the categories is granted. The operation asks for them after the start delay.
        case delayed
        /// The categories seem to be free. The operation asks for them as soon as it has a slot.
        case called
        /// The operation is giving back its categories, or the call.
        case yielding
        case granted
    }

    private var phase = Phase.idle
    private var steps: [Step] = []
    private var epoch = 0
    /// Whether the operation waits for the start delay before it asks for the categories.
    private var isDelayed = false
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

    /// Whether the operation asks for its categories as soon as it has a slot.
    package func isCalled(epoch: Int) -> Bool { phase == .called && self.epoch == epoch }

    /// Whether only the categories are left, which the operation asks for after the start delay.
    package func isDelayed(epoch: Int) -> Bool { phase == .delayed && self.epoch == epoch }

    /// Begins a round that takes these steps in their order; nil if one is under way.
    ///
    /// If `isDelayed` is true, the round stops before the categories until `delayEnded` is called.
    package mutating func seek(_ steps: [Step], epoch: Int, isDelayed: Bool = false) -> Action? {
        guard phase == .idle else { return nil }
        self.isDelayed = isDelayed
        self.steps = Step.allCases.filter(steps.contains)
        self.epoch = epoch
        round &+= 1
        return advance(to: self.steps.first)
    }

    /// What was asked for in that round was granted; nil if it is not what it waits for.
    ///
    /// Categories may also be granted after a call: the notice of the call can come late, while the operation already
    /// asks or waits with its slot.
    package mutating func passed(_ step: Step, round: UInt32) -> Action? {
        guard round == self.round, phase == .taking(step) || step == .categories && phase == .called else { return nil }
        return advance(to: steps.first { $0.rawValue > step.rawValue })
    }

    /// Notes that the start delay is over; returns nil if the categories did not wait for it.
    package mutating func delayEnded(epoch: Int) -> Action? {
        guard isDelayed(epoch: epoch) else { return nil }
        isDelayed = false
        return advance(to: .categories)
    }

    /// Notes that the categories seem to be free; returns false if the operation does not wait for them.
    package mutating func call(round: UInt32) -> Bool {
        guard round == self.round, phase == .taking(.categories) else { return false }
        phase = .called
        return true
    }

    /// Notes that the operation has a slot and asks for its categories; returns false if it must not ask now.
    package mutating func ask(epoch: Int) -> Bool {
        guard isCalled(epoch: epoch) else { return false }
        phase = .taking(.categories)
        return true
    }

    /// Begins to give up the categories or the call; returns false if there is neither.
    package mutating func yield() -> Bool {
        guard steps.last == .categories, phase == .granted || phase == .called else { return false }
        phase = .yielding
        return true
    }

    /// Notes that the categories or the call were given up, so that the operation may ask again.
    package mutating func yielded(round: UInt32) {
        if round == self.round, phase == .yielding { phase = .delayed }
    }

    /// Ends the round; returns the steps that were asked for, granted or not, whose grants are to be given back.
    package mutating func withdraw() -> [Step] {
        defer { phase = .idle }
        switch phase {
        case .idle: return []
        case .taking(let current): return steps.filter { $0.rawValue <= current.rawValue }
        case .delayed: return steps.filter { $0 != .categories }
        case .called, .yielding, .granted: return steps
        }
    }

    private mutating func advance(to step: Step?) -> Action {
        guard let step else {
            phase = .granted
            return .admit
        }
        if step == .categories, isDelayed {
            phase = .delayed
            return .admit
        }
        phase = .taking(step)
        return .take(step)
    }
}
