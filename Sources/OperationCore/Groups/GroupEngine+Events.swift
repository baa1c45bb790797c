// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The terms on which an operation becomes a child.
struct ChildTerms: Sendable {
    /// The task or thread that continues when the child has ended.
    var waiter = GroupWaiter.none
    var isShielded = false
    /// The weight of the child in the group's progress.
    var weight = 1.0
    /// The number that the source of the group gave to the child, or `-1` if it is not from the source.
    var tag: Int32 = -1
    /// The recovery hook of the child, if it has its own.
    var hook: RecoveryHook?
}

// The consequences of an event.
extension GroupEngine {
    struct Plan {
        var starts: [ManagedOperation] = []
        /// The slots of the children to cancel with the group, on this thread and before it returns to the caller that
        /// canceled the group.
        var toCancel: [GroupMachine.Slot] = []
        var chores: RareActions?
        var isPulling = false
        var over: GroupMachine.Verdict?

        /// Whether nothing follows from the plan.
        var isLast: Bool { over != nil || starts.isEmpty && toCancel.isEmpty && !isPulling }
    }

    /// The actions that only the cancellation of some groups needs.
    ///
    /// It is deliberately not `Sendable` and belongs to the thread that applied the event.
    final class RareActions {
        /// The reader of elements, to be stopped.
        var reader: (any SourceReader)?
        /// The recoveries to end.
        var abandoned: [GroupRescue] = []
        /// The waits that end because the group was canceled.
        var released: [GroupWaiter] = []
        /// The waits whose child ended while the group was suspended.
        var resumedWaits: [GroupWaiter] = []
        var returns: [GroupReturn] = []
        /// The children to resume, because the group was canceled while it was suspended.
        var resumed: [ManagedOperation] = []
    }

    /// Applies an event and carries out what follows, until nothing more follows.
    func apply(_ event: (inout State) -> Void) {
        var plan = state.withLock { state in
            event(&state)
            return state.takePlan()
        }
        perform(plan)
        while !plan.isLast {
            plan = state.withLock { $0.takePlan() }
            perform(plan)
        }
    }

    private func perform(_ plan: Plan) {
        if !plan.toCancel.isEmpty { cancelChildren(plan.toCancel) }
        if let chores = plan.chores { perform(chores) }
        if !plan.starts.isEmpty { handOver(plan.starts) }
        if plan.isPulling { pull() }
        if let verdict = plan.over { conclude(verdict) }
    }

    private func perform(_ chores: RareActions) {
        chores.reader?.stop()
        if !chores.resumed.isEmpty { suspendChildren(chores.resumed) }
        for body in chores.returns { body.resume() }
        for waiter in chores.resumedWaits { release(waiter, .ended) }
        for waiter in chores.released { release(waiter, .refused(causeForChildren)) }
        for rescue in chores.abandoned { abandon(rescue) }
    }

    /// Adds children to the queue.
    private func handOver(_ children: [ManagedOperation]) {
        let (queue, isPart, operation, isSuspended) = state.withLock {
            ($0.queue, $0.isPartOfQueue, $0.operation, $0.machine.isSuspended)
        }
        guard let queue, let operation else { return }
        let (level, isAwaited) = operation.core.withLock { ($0.urgency, $0.isAwaited) }
        if queue.addChildren(children, of: operation, level: level, areAwaited: isAwaited, areAccepted: isPart) {
            // If the group was suspended in the meantime, it did not find the children in the queue.
            if isSuspended != state.withLock({ $0.machine.isSuspended }) { suspendChildren(children) }
            return
        }
        // In a loop and not in a recursion, because the end of a child leads to the next children.
        ThreadWorklist.perform {
            for child in children {
                child.cancelIfUndecided(because: .shutDown(queue.name))
                child.beginInGroup()
            }
        }
    }

    private func pull() {
        guard let source else { return }
        // The closure that makes the child is user code, and may wait.
        ThreadNotes.current.worker?.reportChanges()
        if let (child, tag) = ThreadNotes.withoutBeginning({ source.next() }) {
            if let refusal = adopt(child, ChildTerms(tag: tag)) {
                fail(child, refusal, tag)
            } else {
                cancelIfEndless(child)
            }
            return state.withLock { $0.machine.endPull(.child) }
        }
        guard source.isOver else { return state.withLock { $0.machine.endPull(.notNow) } }
        let isMeasuring = state.withLock { state in
            state.machine.endPull(.noMore)
            state.meter.isOpen = false
            return state.meter.isOn
        }
        if isMeasuring { reportProgress() }
    }

    /// Receives an error from the reader of the elements, or `nil` if it has read a further element or all elements.
    func sourceDidUpdate(_ error: (any Error)?) {
        apply { state in
            guard let error else { return state.machine.sourceDidChange() }
            if state.machine.sourceFailed() { state.sourceError = error }
        }
    }

    private func conclude(_ verdict: GroupMachine.Verdict) {
        let (operation, finish, reporters, left) = state.withLock { state in
            let left = (
                exchange(&state.offers, with: GroupOffers()), exchange(&state.recoveries, with: nil),
                exchange(&state.reader, with: nil), exchange(&state.bodyTask, with: nil),
                exchange(&state.children, with: []), exchange(&state.outer, with: nil),
                exchange(&state.queue, with: nil)
            )
            let reporters = state.takeReporters()
            return (exchange(&state.operation, with: nil), exchange(&state.finish, with: nil), reporters, left)
        }
        source?.release()
        // A group that has not begun ends when it is started.
        guard let operation else { return }
        if verdict == .success { completeProgress(reporters) }
        if verdict == .cancelled || operation.isCancelled {
            // The outcome is known already, and now the group has wound down.
            endCancelled(operation)
        } else if let finish {
            finish()
        } else {
            operation.concludeGroup(verdict)
        }
        extendLifetime((finish, reporters, left))
    }

    /// Ends a group that was canceled.
    ///
    /// The group around it cancels children that have not begun from the bottom up. If a worker began this group in the
    /// meantime, the group may come here before its own cancellation.
    func endCancelled(_ operation: ManagedOperation) {
        operation.cancelIfUndecided(because: state.withLock { $0.ownCause } ?? .requested)
        operation.bodyDidReturn()
    }
}

extension GroupEngine.State {
    /// Takes out what must be done now, in portions.
    mutating func takePlan() -> GroupEngine.Plan {
        var plan = GroupEngine.Plan()
        if machine.isCancellingChildren {
            plan.toCancel = takeSlotsToCancel()
            plan.chores = takeRareActions(cancellingChildren: plan.toCancel)
        }
        while plan.starts.count < 256, let slot = machine.takeNext() {
            guard let child = children[Int(slot)].operation else { continue }
            // The child may have got a dependency since it was added.
            if machine.asksForReadiness, !child.isReadyInGroup {
                machine.block(slot)
            } else {
                plan.starts.append(child)
            }
        }
        if plan.starts.isEmpty { plan.isPulling = machine.beginPull() }
        plan.over = machine.takeOver()
        return plan
    }

    /// Takes out what only some groups need when they are canceled, or returns `nil` if there is certainly nothing.
    private mutating func takeRareActions(cancellingChildren slots: [GroupMachine.Slot]) -> GroupEngine.RareActions? {
        guard reader != nil || recoveries != nil || !waits.isIdle || !returns.isEmpty || machine.isSuspended else {
            return nil
        }
        let chores = GroupEngine.RareActions()
        chores.reader = exchange(&reader, with: nil)
        chores.abandoned = takeRescues(at: slots)
        chores.resumedWaits = waits.takeHeld()
        chores.released = waits.takeAll()
        if machine.isSuspended {
            machine.setSuspended(false)
            chores.resumed = activeChildren
        }
        if !returns.isEmpty { chores.returns = Array(exchange(&returns, with: [:]).values) }
        return chores
    }

    var activeChildren: [ManagedOperation] {
        var active: [ManagedOperation] = []
        for (slot, child) in children.enumerated() where machine.isActive(GroupMachine.Slot(slot)) {
            if let operation = child.operation { active.append(operation) }
            if active.count == machine.active { break }
        }
        return active
    }

    mutating func store(_ child: ManagedOperation, _ terms: ChildTerms, at slot: GroupMachine.Slot) {
        let isGroup = child.ownGroup != nil
        let entry = GroupEngine.Child(operation: child, waiter: terms.waiter, isGroup: isGroup)
        if Int(slot) < children.count { children[Int(slot)] = entry } else { children.append(entry) }
        meter.add(slot, weight: terms.weight)
        if let hook = terms.hook { setHook(hook, at: slot) }
    }
}
