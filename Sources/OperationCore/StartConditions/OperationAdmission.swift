// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import Synchronization

/// What must let one operation begin after its dependencies ended, and how far it is with that.
struct OperationAdmission {
    var conditions: [OperationCondition] = []
    var categories: [OperationCategory] = []
    var throttle: ThrottleRule?

    var machine = AdmissionMachine()
    /// That of the present round.
    var ticket: AdmissionTicket?
    /// The task that evaluates the conditions.
    var evaluation: Task<Void, Never>?

    var isEmpty: Bool { conditions.isEmpty && categories.isEmpty && throttle == nil }

    var steps: [AdmissionMachine.Step] {
        var steps: [AdmissionMachine.Step] = []
        if !conditions.isEmpty { steps.append(.conditions) }
        if throttle != nil { steps.append(.throttle) }
        if !categories.isEmpty { steps.append(.categories) }
        return steps
    }

    /// Ends the round; returns what is to be given back outside the lock.
    mutating func withdraw() -> AdmissionLeftovers? {
        let steps = machine.withdraw()
        guard let ticket = exchange(&ticket, with: nil), !steps.isEmpty else { return nil }
        return AdmissionLeftovers(
            ticket: ticket, steps: steps, evaluation: exchange(&evaluation, with: nil), throttle: throttle)
    }
}

/// What an operation was given on its way, or still asks for, to be handed back.
struct AdmissionLeftovers {
    let ticket: AdmissionTicket
    let steps: [AdmissionMachine.Step]
    let evaluation: Task<Void, Never>?
    let throttle: ThrottleRule?

    /// Hands it back.
    ///
    /// Called outside every lock: the task and the clock may be the user's.
    func giveBack() {
        evaluation?.cancel()
        if steps.contains(.categories) { CategoryRegistry.leave(ticket) }
        if steps.contains(.throttle), let throttle { throttle.registry.leave(ticket, throttle.key) }
    }
}

extension ManagedOperation.Core {
    /// Whether nothing but its dependencies keeps the body from beginning, or whether the body will never run.
    var isAdmitted: Bool {
        guard let extras, extras.admission != nil, machine.ending == nil else { return true }
        return extras.admission?.isEmpty != false
            || extras.admission?.machine.isGranted(epoch: node?.additions ?? 0) == true
    }

    /// Whether the operation may take a slot, with which it asks for its categories.
    var isCalled: Bool {
        guard let extras, extras.admission != nil, machine.ending == nil else { return false }
        return extras.admission?.machine.isCalled(epoch: node?.additions ?? 0) == true
    }

    /// Whether only the categories are left, which the operation asks for after its delay.
    var isDelayed: Bool {
        guard let extras, extras.admission != nil, machine.ending == nil else { return false }
        return extras.admission?.machine.isDelayed(epoch: node?.additions ?? 0) == true
    }

    /// Whether the body may begin now; if so, it counts as begun.
    mutating func noteBodyBegins() -> Bool {
        guard machine.enterBody() else { return false }
        extras?.admission?.ticket?.noteBodyBegins()
        return true
    }

    /// Ends a round which no longer means anything: a dependency was added since, or the outcome is decided.
    mutating func withdrawOutdatedAdmission() -> AdmissionLeftovers? {
        guard let extras, extras.admission != nil, !machine.isStarted else { return nil }
        let isStale = extras.admission?.machine.isStale(epoch: node?.additions ?? 0) == true
        return isStale || machine.ending != nil ? extras.admission?.withdraw() : nil
    }
}

extension RareOperationState {
    /// The operation ended, or is freed: what it held is the next one's.
    func giveBackAdmission() {
        guard admission != nil else { return }
        admission?.withdraw()?.giveBack()
        admission = nil
    }
}

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

/// One operation on one round of its admission, as those know it whom it asks.
///
/// It does not keep the operation alive. An operation that is freed hands in its ticket.
final class AdmissionTicket: Sendable {
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var reference: ManagedOperation?
    let round: UInt32
    private let begun = Atomic(false)

    init(_ operation: ManagedOperation, round: UInt32) {
        reference = operation
        self.round = round
    }

    /// The operation, unless it is gone.
    ///
    /// Not to be asked for under a lock: the answer may be its last reference.
    var operation: ManagedOperation? { reference }

    /// Whether the body began, so that a throttled key rests when the ticket is handed in.
    var hasBegun: Bool { begun.load(ordering: .acquiring) }

    /// The semaphore of the thread that has a slot for the operation and waits for the categories.
    private let asker = Locked<DispatchSemaphore?>(nil)

    /// Waits with a slot in hand until the categories are granted, something changes, or the time is over.
    func wait(_ semaphore: DispatchSemaphore, atMost time: Duration) {
        _ = semaphore.wait(timeout: .now() + .nanoseconds(Int(clamping: time.saturatedNanoseconds)))
        asker.withLock { $0 = nil }
    }

    /// Creates the semaphore on which the thread is going to wait.
    func prepareToWait() -> DispatchSemaphore {
        let semaphore = DispatchSemaphore(value: 0)
        asker.withLock { $0 = semaphore }
        return semaphore
    }

    func wakeAsker() { asker.withLock { $0 }?.signal() }

    func noteBodyBegins() { begun.store(true, ordering: .releasing) }
}

extension AdmissionTicket: Hashable {
    static func == (left: AdmissionTicket, right: AdmissionTicket) -> Bool { left === right }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// What an operation waits for whose dependencies have ended: for those who explain it to people.
package enum AdmissionStanding: Sendable {
    /// Nothing of the kind: it needs no admission, does not ask for it yet, or has it.
    case none
    /// That these conditions are found out.
    case evaluating([String])
    /// That the key may run: from that moment on, or when this operation has ended.
    case throttled(key: String, until: OperationInstant, runner: ManagedOperation?)
    /// That these categories are given back by those that hold them, or that those before it in line were served.
    case categories([OperationCategory])
}

extension ManagedOperation {
    package final var admissionStanding: AdmissionStanding {
        let (step, admission) = core.withLock { core in
            (core.extras?.admission?.machine.currentStep, core.extras?.admission)
        }
        guard let step, let admission else { return .none }
        switch step {
        case .conditions: return .evaluating(admission.conditions.map(\.name))
        case .throttle:
            guard let rule = admission.throttle else { return .none }
            let until = rule.registry.nextRun(of: rule.key) ?? rule.registry.clock.now
            return .throttled(key: rule.key, until: until, runner: rule.registry.runner(of: rule.key))
        case .categories: return .categories(admission.categories)
        }
    }
}

extension CancellationCause.Code {
    /// A condition of the operation did not hold.
    public static let conditionFailed = Self("conditionFailed")
    /// The operation came before its key might run again, and its rule says that it is dropped.
    public static let throttled = Self("throttled")
    /// Another operation with the same key took its place.
    public static let replaced = Self("replaced")
}

extension CancellationCause {
    static func conditionFailed(_ name: String, _ reason: String) -> CancellationCause {
        CancellationCause(
            code: .conditionFailed,
            message: "The operation was cancelled because its condition \"\(name)\" failed: \(reason).")
    }

    static func throttled(key: String, until end: OperationInstant?, now: OperationInstant) -> CancellationCause {
        let reason =
            end.map { "it may run again at \($0), in \(max(now.duration(to: $0), .zero))" }
            ?? "it is running, and has to rest after that"
        return CancellationCause(
            code: .throttled,
            message: "The operation came too early for its key \"\(key)\": \(reason). "
                + "Make another then, or choose .wait.")
    }

    static func replaced(key: String, by name: String) -> CancellationCause {
        CancellationCause(
            code: .replaced,
            message: "The operation waited for its key \"\(key)\", and \(name) took its place.")
    }
}
