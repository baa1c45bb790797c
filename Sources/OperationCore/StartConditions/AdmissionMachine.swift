// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// The conditions, the throttle and the categories of an operation, and the progress of its admission.
final class OperationAdmission: StartGate {
    var conditions: [OperationCondition] = []
    var categories: [OperationCategory] = []
    var throttle: ThrottleRule?

    var machine = AdmissionMachine()
    /// The ticket of the present round.
    var ticket: AdmissionTicket?
    /// The task that evaluates the conditions.
    var evaluation: Task<Void, Never>?

    private var isEmpty: Bool { conditions.isEmpty && categories.isEmpty && throttle == nil }

    var steps: [AdmissionMachine.Step] {
        var steps: [AdmissionMachine.Step] = []
        if !conditions.isEmpty { steps.append(.conditions) }
        if throttle != nil { steps.append(.throttle) }
        if !categories.isEmpty { steps.append(.categories) }
        return steps
    }

    /// Ends the round, and returns what must be given back without holding the lock.
    func withdraw() -> ReleasedAdmission? {
        let steps = machine.withdraw()
        guard let ticket = exchange(&ticket, with: nil), !steps.isEmpty else { return nil }
        return ReleasedAdmission(
            ticket: ticket, steps: steps, evaluation: exchange(&evaluation, with: nil), throttle: throttle)
    }

    override func state(epoch: Int) -> State {
        if isEmpty || machine.isGranted(epoch: epoch) { return .open }
        if machine.isDelayed(epoch: epoch) { return .delayed }
        return machine.isCalled(epoch: epoch) ? .called : .closed
    }

    override func recordBodyBegins() { ticket?.recordBodyBegins() }

    override var retained: StartGate? {
        if throttle == nil, categories.isEmpty { return nil }
        let retained = OperationAdmission()
        (retained.categories, retained.throttle) = (categories, throttle)
        return retained
    }

    override func close() { withdraw()?.giveBack() }

    override func seek(atStartOf operation: ManagedOperation) { operation.seekAdmissionAtStart() }

    override func giveBackIfOutdated(_ operation: ManagedOperation) -> Bool {
        guard let old = operation.core.withLock({ $0.withdrawOutdatedAdmission() }) else { return false }
        old.giveBack()
        return true
    }

    override func needs(of operation: ManagedOperation, atMost most: Int) -> [[ManagedOperation]] {
        switch operation.admissionStanding {
        case .categories(let categories):
            // If there is room, the operation waits for something else.
            categories.filter { $0.limit <= most }.map { ($0.limit, $0.holders) }
                .filter { limit, holders in holders.count >= limit && !holders.contains { $0 === operation } }
                .map { $1 }
        case .throttled(_, _, let runner): runner.map { $0 === operation ? [] : [[$0]] } ?? []
        case .none, .evaluating: []
        }
    }
}

/// The steps that an operation was granted or asked for in a round, to be given back.
struct ReleasedAdmission {
    let ticket: AdmissionTicket
    let steps: [AdmissionMachine.Step]
    let evaluation: Task<Void, Never>?
    let throttle: ThrottleRule?

    /// Gives back the grants, and withdraws the requests.
    ///
    /// Called without holding a lock, because the task and the clock may be user code.
    func giveBack() {
        evaluation?.cancel()
        if steps.contains(.categories) { CategoryRegistry.leave(ticket) }
        if steps.contains(.throttle), let throttle { throttle.registry.leave(ticket, throttle.key) }
    }
}

extension ManagedOperation.Core {
    /// The gate, because there is no other kind.
    var admission: OperationAdmission? { extras?.gate.map { unsafeDowncast($0, to: OperationAdmission.self) } }

    /// Ends a round that no longer counts, because a dependency was added or the outcome was decided.
    mutating func withdrawOutdatedAdmission() -> ReleasedAdmission? {
        guard let admission, !machine.isStarted else { return nil }
        let isStale = admission.machine.isStale(epoch: node?.additions ?? 0)
        return isStale || machine.ending != nil ? admission.withdraw() : nil
    }
}

/// The progress of one operation from its dependencies to its body, as a pure value.
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
/// The categories come last, after the start delay. An operation in a queue asks for them in two steps. First it waits
/// in line, and is *called* when the categories seem to be free. A called operation waits for a slot and holds no
/// category. When it has the slot, it requests the categories. If other operations were faster, it gives up the slot
/// and waits to be called again.
///
/// Steps that the operation does not need are left out. Each pass through the steps is a *round*, and a grant for an
/// earlier round does not count. The *epoch* of a round is the number of dependencies that the operation ever had when
/// the round began. If a dependency was added since then, the grants of the round do not count.
package struct AdmissionMachine: Sendable, Equatable {
    /// The steps between the dependencies and the body, in this order.
    package enum Step: UInt8, Sendable, CaseIterable { case conditions, throttle, categories }

    /// The next action of the shell.
    package enum Action: Sendable, Equatable {
        /// Ask for this step.
        case take(Step)
        /// No step remains.
        case admit
    }

    private enum Phase: Equatable {
        case idle
        case taking(Step)
        /// Everything but the categories is granted, for which the operation asks after the start delay.
        case delayed
        /// The categories seem to be free, and the operation asks for them as soon as it has a slot.
        case called
        /// The operation is giving back its categories, or the call.
        case yielding
        case granted
    }

    private var phase = Phase.idle
    private var steps: [Step] = []
    private var epoch = 0
    /// Whether the operation waits for the start delay before it requests the categories.
    private var isDelayed = false
    /// The number of the present or last round.
    package private(set) var round: UInt32 = 0

    package init() {}

    /// The step for which the operation waits.
    package var currentStep: Step? {
        if case .taking(let step) = phase { step } else { nil }
    }

    /// Whether a round has begun and was not withdrawn.
    package var isUnderWay: Bool { phase != .idle }

    /// Whether all steps were granted, and no dependency was added since the round began.
    package func isGranted(epoch: Int) -> Bool { phase == .granted && self.epoch == epoch }

    /// Whether a dependency was added since the round began.
    package func isStale(epoch: Int) -> Bool { phase != .idle && self.epoch != epoch }

    /// Whether the operation requests its categories as soon as it has a slot.
    package func isCalled(epoch: Int) -> Bool { phase == .called && self.epoch == epoch }

    /// Whether only the categories are left, which the operation asks for after the start delay.
    package func isDelayed(epoch: Int) -> Bool { phase == .delayed && self.epoch == epoch }

    /// Begins a round that takes these steps in order, or returns `nil` if a round is under way.
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

    /// Notes that a step was granted, and returns the next action, or `nil` if the operation does not wait for that
    /// step.
    ///
    /// Categories may also be granted after a call: the notice of the call can come late, while the operation already
    /// asks or waits with its slot.
    package mutating func passed(_ step: Step, round: UInt32) -> Action? {
        guard round == self.round, phase == .taking(step) || step == .categories && phase == .called else { return nil }
        return advance(to: steps.first { $0.rawValue > step.rawValue })
    }

    /// Notes that the start delay is over, and returns the next action, or `nil` if the categories did not wait for it.
    package mutating func delayEnded(epoch: Int) -> Action? {
        guard isDelayed(epoch: epoch) else { return nil }
        isDelayed = false
        return advance(to: .categories)
    }

    /// Notes that the categories seem to be free, and returns whether the operation waits for them.
    package mutating func call(round: UInt32) -> Bool {
        guard round == self.round, phase == .taking(.categories) else { return false }
        phase = .called
        return true
    }

    /// Notes that the operation has a slot, and returns whether it may request its categories.
    package mutating func ask(epoch: Int) -> Bool {
        guard isCalled(epoch: epoch) else { return false }
        phase = .taking(.categories)
        return true
    }

    /// Begins to give up the categories or the call, and returns whether there was either.
    package mutating func yield() -> Bool {
        guard steps.last == .categories, phase == .granted || phase == .called else { return false }
        phase = .yielding
        return true
    }

    /// Notes that the categories or the call were given up, so that the operation may ask again.
    package mutating func yielded(round: UInt32) {
        if round == self.round, phase == .yielding { phase = .delayed }
    }

    /// Ends the round, and returns the steps whose grants or requests must be given back.
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

/// A reference to one operation in one round of its admission.
///
/// The ticket does not keep the operation alive. When the operation is freed, its ticket is handed in.
final class AdmissionTicket: Sendable {
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var reference: ManagedOperation?
    let round: UInt32
    private let begun = Atomic(false)

    init(_ operation: ManagedOperation, round: UInt32) {
        reference = operation
        self.round = round
    }

    /// The operation, or `nil` if it was freed.
    ///
    /// Do not read it under a lock, because the returned reference may be the last one.
    var operation: ManagedOperation? { reference }

    /// Whether the body has begun, so that a throttled key rests when the ticket is handed in.
    var hasBegun: Bool { begun.load(ordering: .acquiring) }

    /// The semaphore of the thread that has a slot for the operation and waits for the categories.
    private let waiter = Locked<DispatchSemaphore?>(nil)

    /// Waits with a slot until the categories are granted, something changes, or the time is over.
    func wait(_ semaphore: DispatchSemaphore, atMost time: Duration) {
        // In nanoseconds, an `Int` of 32 bits would end the wait after two seconds.
        let nanoseconds = time.saturatedNanoseconds
        let milliseconds = nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 > 0 ? 1 : 0)
        _ = semaphore.wait(timeout: .now() + .milliseconds(Int(clamping: milliseconds)))
        waiter.withLock { $0 = nil }
    }

    /// Creates the semaphore on which the thread will wait.
    func prepareToWait() -> DispatchSemaphore {
        let semaphore = DispatchSemaphore(value: 0)
        waiter.withLock { $0 = semaphore }
        return semaphore
    }

    func wakeWaiter() { waiter.withLock { $0 }?.signal() }

    func recordBodyBegins() { begun.store(true, ordering: .releasing) }
}

extension AdmissionTicket: Hashable {
    static func == (left: AdmissionTicket, right: AdmissionTicket) -> Bool { left === right }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The kind of admission for which an operation waits after its dependencies have ended.
package enum AdmissionStanding: Sendable {
    /// The operation needs no admission, does not ask for it yet, or has it.
    case none
    /// The conditions with these names are being evaluated.
    case evaluating([String])
    /// The key may run from that moment, or after the end of the runner.
    case throttled(key: String, until: OperationInstant, runner: ManagedOperation?)
    /// The categories are held by other operations, or operations that came earlier wait for them.
    case categories([OperationCategory])
}

extension ManagedOperation {
    package final var admissionStanding: AdmissionStanding {
        let (step, conditions, throttle, categories) = core.withLock { core in
            let admission = core.admission
            return (
                admission?.machine.currentStep, admission?.conditions ?? [], admission?.throttle,
                admission?.categories ?? []
            )
        }
        switch step {
        case nil: return .none
        case .conditions: return .evaluating(conditions.map(\.name))
        case .throttle:
            guard let throttle else { return .none }
            let until = throttle.registry.nextRun(of: throttle.key) ?? throttle.registry.clock.now
            return .throttled(key: throttle.key, until: until, runner: throttle.registry.runner(of: throttle.key))
        case .categories: return .categories(categories)
        }
    }
}
