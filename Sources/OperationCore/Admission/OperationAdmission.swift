// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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

extension OperationExtras {
    /// The operation ended, or is freed: what it held is the next one's.
    func giveBackAdmission() {
        guard admission != nil else { return }
        admission?.withdraw()?.giveBack()
        admission = nil
    }
}
