// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

// The shell of AdmissionMachine, which performs its steps without holding a lock.
extension ManagedOperation {
    /// Asks for admission if nothing else keeps the body from beginning, and returns whether it was granted
    /// immediately.
    ///
    /// A later grant goes through `admissionDidPass`.
    @discardableResult
    final func seekAdmission() -> Bool {
        let (old, pending) = core.withLock {
            core -> (ReleasedAdmission?, (AdmissionMachine.Action, AdmissionTicket)?) in
            guard core.machine.ending == nil, !core.machine.isStarted, core.isReady else { return (nil, nil) }
            let old = core.withdrawOutdatedAdmission()
            guard let admission = core.admission else { return (old, nil) }
            let (epoch, isDelayed) = (core.node?.additions ?? 0, core.hasDelayLeft)
            if !isDelayed, let action = admission.machine.delayEnded(epoch: epoch), let ticket = admission.ticket {
                return (old, (action, ticket))
            }
            guard let action = admission.machine.seek(admission.steps, epoch: epoch, isDelayed: isDelayed) else {
                return (old, nil)
            }
            let ticket = AdmissionTicket(life, round: admission.machine.round)
            admission.ticket = ticket
            return (old, (action, ticket))
        }
        old?.giveBack()
        return pending.map(pursue) ?? false
    }

    /// Takes one step after another, and returns whether all of them were granted immediately.
    private func pursue(_ first: AdmissionMachine.Action, _ ticket: AdmissionTicket) -> Bool {
        var action = first
        while case .take(let step) = action {
            guard take(step, ticket), let next = pass(step, ticket) else { return false }
            action = next
        }
        return true
    }

    /// Takes a step, and returns whether it was granted immediately.
    private func take(_ step: AdmissionMachine.Step, _ ticket: AdmissionTicket) -> Bool {
        switch step {
        case .conditions:
            evaluateConditions(ticket)
            return false
        case .throttle:
            guard let rule = core.withLock({ $0.admission?.throttle }) else { return true }
            let isGranted = askThrottle(rule, ticket)
            // If another thread withdrew the ticket in the meantime, it may have handed in the ticket before it was in
            // use.
            if !isCurrent(ticket) { rule.registry.leave(ticket, rule.key) }
            if !isGranted { cancelIfHeldAround() }
            return isGranted
        case .categories:
            let (categories, host) = core.withLock { ($0.admission?.categories ?? [], $0.host) }
            // An operation in a queue holds nothing yet, and requests its categories when it has a slot.
            if let host { CategoryRegistry.enqueue(ticket, for: categories, in: host) }
            let isGranted = host == nil && CategoryRegistry.ask(ticket, for: categories)
            if !isCurrent(ticket) { CategoryRegistry.leave(ticket) }
            if !isGranted { cancelIfHeldAround() }
            return isGranted
        }
    }

    private func isCurrent(_ ticket: AdmissionTicket) -> Bool {
        core.withLock { $0.admission?.ticket == ticket }
    }

    /// Notes that a step was granted, and returns the next action, or `nil` if the grant no longer counts.
    private func pass(_ step: AdmissionMachine.Step, _ ticket: AdmissionTicket) -> AdmissionMachine.Action? {
        let (old, action) = core.withLock { core -> (ReleasedAdmission?, AdmissionMachine.Action?) in
            guard let admission = core.admission, admission.ticket == ticket else { return (nil, nil) }
            // A dependency was added in the meantime. Its end begins another round.
            if let old = core.withdrawOutdatedAdmission() { return (old, nil) }
            return (nil, admission.machine.passed(step, round: ticket.round))
        }
        old?.giveBack()
        return action
    }

    /// Notes that a step was granted for which the operation waited.
    final func admissionDidPass(_ step: AdmissionMachine.Step, _ ticket: AdmissionTicket) {
        guard let action = pass(step, ticket), pursue(action, ticket) else { return }
        if let action = move({ $0.machine.admitted() }) { return perform(action) }
        core.withLock { $0.host }?.reconsider(self)
    }

    /// Asks for admission on the thread that starts the operation, on which its body may run.
    final func seekAdmissionAtStart() {
        guard seekAdmission() else { return }
        if let action = move({ $0.machine.admittedAtOnce(hasDelay: $0.hasDelayLeft) }) { perform(action) }
    }

    /// Asks for admission when a queue of this package has reached the operation.
    final func seekAdmissionForQueue() {
        if let original { return original.seekAdmissionForQueue() }
        let isGranted = seekAdmission()
        // An operation that has its outcome requests no admission, and its queue has to end it.
        let host = core.withLock { isGranted || $0.machine.ending != nil ? $0.host : nil }
        host?.reconsider(self)
    }

    /// Notes that the operation holds its categories.
    ///
    /// For an operation in a queue, the thread that waits with its slot does the rest. This notice may be late: by now
    /// the operation may have given the categories back and may wait in line again.
    final func categoriesAreHeld(_ ticket: AdmissionTicket) {
        guard core.withLock({ $0.host }) == nil else { return ticket.wakeWaiter() }
        admissionDidPass(.categories, ticket)
    }

    /// Notes that the categories seem to be free, so that the operation asks for them when its queue has a slot for it.
    final func categoriesSeemFree(_ ticket: AdmissionTicket) {
        let host = core.withLock { core -> HostQueue? in
            guard let admission = core.admission, admission.ticket == ticket,
                admission.machine.call(round: ticket.round)
            else { return nil }
            return core.host
        }
        host?.reconsider(self)
    }

    /// Asks for the categories of an operation that has a slot, and returns whether the operation holds them.
    final func askForCategories(in host: HostQueue) -> Bool {
        let (ticket, categories) = core.withLock { core -> (AdmissionTicket?, [OperationCategory]) in
            guard core.machine.ending == nil, !core.machine.isStarted, let admission = core.admission,
                admission.machine.ask(epoch: core.node?.additions ?? 0)
            else { return (nil, []) }
            return (admission.ticket, admission.categories)
        }
        guard let ticket else { return false }
        var isGranted = CategoryRegistry.ask(ticket, for: categories, in: host)
        // The wait needs a thread, and the source may not have enough.
        if !isGranted, let time = CategoryRegistry.slotWaitLimit(of: ticket), host.beginRest() {
            isGranted = waitWithSlot(ticket, time)
            host.endRest()
        }
        if !isCurrent(ticket) { CategoryRegistry.leave(ticket) }
        guard isGranted else { return false }
        _ = pass(.categories, ticket)
        return core.withLock { $0.isAdmitted }
    }

    /// Waits for the categories for a limited time, and returns whether the operation holds them.
    ///
    /// Other operations were faster too often, so this one keeps its slot in the meantime.
    private func waitWithSlot(_ ticket: AdmissionTicket, _ time: Duration) -> Bool {
        let semaphore = ticket.prepareToWait()
        CategoryRegistry.beginWaitingWithSlot(ticket)
        let isWanted = core.withLock { $0.machine.ending == nil && $0.admission?.ticket == ticket }
        if isWanted { ticket.wait(semaphore, atMost: time) }
        return CategoryRegistry.endWaitingWithSlot(ticket)
    }

    /// Gives back the categories or the call, because the body cannot begin now.
    ///
    /// The operation requests admission again when it can.
    final func yieldCategories() {
        let ticket = core.withLock { core -> AdmissionTicket? in
            guard !core.machine.isStarted, let admission = core.admission, admission.machine.yield() else { return nil }
            return admission.ticket
        }
        guard let ticket else { return }
        // The operation must not request admission again before this call, which would withdraw the new request.
        CategoryRegistry.leave(ticket)
        core.withLock { core in
            if let admission = core.admission, admission.ticket == ticket {
                admission.machine.yielded(round: ticket.round)
            }
        }
    }

    /// Wakes a thread that waits for the categories, because something about the operation changed.
    final func wakeWaiter() { core.withLock { $0.admission?.ticket }?.wakeWaiter() }

    /// Cancels a child of a group if every holder of the category or throttle key for which it waits needs its end.
    ///
    /// A group that contains the child is such a holder.
    private func cancelIfHeldAround() {
        guard core.withLock({ $0.parent != nil }), let cycle = BodyWaitCycleSearch.cycle(of: self) else { return }
        cancelIfUndecided(because: .waitsForItself(cycle.map(\.displayName)))
    }
}

// The implementation of the public members below.
extension ManagedOperation {
    package final var conditions: [OperationCondition] { core.withLock { $0.admission?.conditions ?? [] } }

    package final var categories: [OperationCategory] {
        get { core.withLock { $0.admission?.categories ?? [] } }
        set {
            var seen: Set<OperationCategory> = []
            let unique = newValue.filter { seen.insert($0).inserted }
            setAdmission("categories") { exchange(&$0.categories, with: unique) }
        }
    }

    package final var throttle: ThrottleRule? {
        get { core.withLock { $0.admission?.throttle } }
        set { setAdmission("throttle") { exchange(&$0.throttle, with: newValue) } }
    }

    package final func addCondition(_ condition: OperationCondition) {
        setAdmission("condition \"\(condition.name)\"") { $0.conditions.append(condition) }
    }

    /// Changes a setting that only counts until the operation requests admission.
    ///
    /// - Parameter change: Makes the change and returns what it replaced, which is released without holding the lock.
    private func setAdmission<Replaced>(
        _ name: @autoclosure () -> String, _ change: (OperationAdmission) -> Replaced
    ) {
        let replaced = core.withLock { core -> Replaced? in
            guard !core.machine.isStartUnderWay, core.machine.ending == nil else { return nil }
            let admission = core.admission ?? OperationAdmission()
            core.need().gate = admission
            return admission.machine.isUnderWay ? nil : change(admission)
        }
        if replaced == nil {
            OperationDiagnostics.report(
                .admission, by: self,
                "The \(name()) was set after the start or during the admission, and has no effect. "
                    + "Set it before you start the operation or add it to a queue.")
        }
    }
}

extension CommonOperationMembers {
    private var operation: ManagedOperation { self }

    /// The conditions that must be satisfied before the body runs, in the order in which they are evaluated.
    ///
    /// The default is an empty array.
    public var conditions: [OperationCondition] { operation.conditions }

    /// Adds a condition to the end of the operation's list of conditions.
    ///
    /// OperationKit evaluates the conditions one after another when the dependencies have ended. Add a condition before
    /// the operation is started or added to a queue. If the operation was started or already checks its conditions, the
    /// call has no effect, and OperationKit reports a notice of the kind `admission`.
    ///
    /// - Parameter condition: The condition to add.
    public func addCondition(_ condition: OperationCondition) { operation.addCondition(condition) }

    /// Adds a condition that a closure checks.
    ///
    /// Add a condition before the operation is started or added to a queue. If the operation was started or already
    /// checks its conditions, the call has no effect, and OperationKit reports a notice of the kind `admission`.
    ///
    /// - Parameters:
    ///   - name: A short description of the requirement that the condition checks.
    ///   - evaluate: The closure that checks the condition. The closure runs in a task that is canceled with the
    ///     operation.
    public func addCondition(
        _ name: String,
        _ evaluate: @escaping @Sendable (OperationCondition.Context) async -> OperationCondition.Verdict
    ) {
        operation.addCondition(OperationCondition(name, evaluate))
    }

    /// The categories that the operation holds while it runs.
    ///
    /// The operation waits until it can hold all categories. The default is an empty array. Set this property before
    /// the operation is started or added to a queue. If a category occurs more than once in the array, it counts only
    /// once.
    public var categories: [OperationCategory] {
        get { operation.categories }
        set { operation.categories = newValue }
    }

    /// The rule for the minimum time between operations with the same key.
    ///
    /// The default is `nil`, which disables throttling. Set this property before the operation is started or added to a
    /// queue.
    public var throttle: ThrottleRule? {
        get { operation.throttle }
        set { operation.throttle = newValue }
    }

    /// The moment at which an operation with the key of ``throttle`` may begin next, or `nil` if it may begin now.
    ///
    /// The moment is a time on the clock of the rule's ``OperationThrottle``. While an operation with the key runs,
    /// the value is ``OperationInstant/distantFuture``. The value is also `nil` if the operation has no throttle rule.
    public var nextRun: OperationInstant? { operation.throttle.flatMap { $0.registry.nextRun(of: $0.key) } }
}
