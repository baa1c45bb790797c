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
/// The categories come last, after the delay before the start. In a queue they are asked for twice: first the operation
/// lines up, and is *called* when they seem to be free. With that it waits for a slot, and holds nothing yet. With the
/// slot in hand it asks. If others were faster, it gives up the slot and waits to be called again.
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
        /// The categories are still to be asked for, after the delay before the start.
        case delayed
        /// The categories seem to be free: they are asked for as soon as there is a slot.
        case called
        /// The categories, or the call, are being given back.
        case yielding
        case granted
    }

    private var phase = Phase.idle
    private var steps: [Step] = []
    private var epoch = 0
    /// Whether the delay before the start comes before the categories.
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

    /// Whether the categories are to be asked for as soon as there is a slot.
    package func isCalled(epoch: Int) -> Bool { phase == .called && self.epoch == epoch }

    /// Whether nothing but the categories is left, which come after the delay before the start.
    package func isDelayed(epoch: Int) -> Bool { phase == .delayed && self.epoch == epoch }

    /// Begins a round that takes these steps in their order; nil if one is under way.
    ///
    /// One that `isDelayed` stops before the categories until `delayEnded`.
    package mutating func seek(_ steps: [Step], epoch: Int, isDelayed: Bool = false) -> Action? {
        guard phase == .idle else { return nil }
        self.isDelayed = isDelayed
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

    /// The delay before the start is over; nil if the categories did not wait for that.
    package mutating func delayEnded(epoch: Int) -> Action? {
        guard isDelayed(epoch: epoch) else { return nil }
        isDelayed = false
        return advance(to: .categories)
    }

    /// The categories seem to be free; false if that is not what it waits for.
    package mutating func call(round: UInt32) -> Bool {
        guard round == self.round, phase == .taking(.categories) else { return false }
        phase = .called
        return true
    }

    /// There is a slot, and the categories are asked for; false if they are not to be.
    package mutating func ask(epoch: Int) -> Bool {
        guard isCalled(epoch: epoch) else { return false }
        phase = .taking(.categories)
        return true
    }

    /// Begins to give up the categories, or the call; false if there is neither.
    package mutating func yield() -> Bool {
        guard steps.last == .categories, phase == .granted || phase == .called else { return false }
        phase = .yielding
        return true
    }

    /// They were given up, and may be asked for again.
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
