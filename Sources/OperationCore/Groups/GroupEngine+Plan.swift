// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// What follows an event.
extension GroupEngine {
    struct Plan {
        var starts: [ManagedOperation] = []
        /// Children that are to be cancelled with the group: by this thread, before it returns to who cancelled that.
        var doomed: [ManagedOperation] = []
        /// The reader of elements that ends with it.
        var reader: (any SourceReader)?
        /// Recoveries that end with it.
        var abandoned: [GroupRescue] = []
        /// Waits that end because the group was cancelled.
        var released: [GroupWaiter] = []
        /// Waits whose child ended while the group was on hold.
        var unheldWaits: [GroupWaiter] = []
        var returns: [GroupReturn] = []
        /// Children that may begin all the same, since the group was cancelled while it was on hold.
        var unheld: [ManagedOperation] = []
        var isPulling = false
        var over: GroupMachine.Verdict?

        var isEmpty: Bool {
            starts.isEmpty && doomed.isEmpty && reader == nil && abandoned.isEmpty && released.isEmpty
                && unheldWaits.isEmpty && returns.isEmpty && unheld.isEmpty && !isPulling && over == nil
        }
    }

    /// Applies an event and does what follows, until nothing more does.
    func apply(_ event: (inout State) -> Void) {
        var plan = state.withLock { state in
            event(&state)
            return state.takePlan()
        }
        while !plan.isEmpty {
            perform(plan)
            if plan.over != nil { return }
            plan = state.withLock { $0.takePlan() }
        }
    }

    private func perform(_ plan: Plan) {
        if !plan.doomed.isEmpty { doom(plan.doomed) }
        plan.reader?.stop()
        if !plan.unheld.isEmpty { suspendChildren(plan.unheld) }
        for body in plan.returns { body.goOn() }
        for waiter in plan.unheldWaits { release(waiter, .ended) }
        for waiter in plan.released { release(waiter, .refused(causeForChildren)) }
        for rescue in plan.abandoned { abandon(rescue) }
        if !plan.starts.isEmpty { handOver(plan.starts) }
        if plan.isPulling { pull() }
        if let verdict = plan.over { conclude(verdict) }
    }

    /// Gives children to the queue.
    private func handOver(_ children: [ManagedOperation]) {
        let (queue, isPart, operation, isSuspended) = state.withLock {
            ($0.queue, $0.isPartOfQueue, $0.operation, $0.machine.isSuspended)
        }
        let level = operation?.core.withLock { ($0.urgency, $0.isAwaited) }
        guard let queue, let level else { return }
        if queue.addChildren(children, level: level.0, areAwaited: level.1, areAccepted: isPart) {
            // Suspended meanwhile, the group did not find them in the queue.
            if isSuspended != state.withLock({ $0.machine.isSuspended }) { suspendChildren(children) }
            return
        }
        for child in children {
            child.cancelIfUndecided(because: .shutDown(queue.name))
            child.beginInGroup()
        }
    }

    private func pull() {
        guard let source else { return }
        // What makes the child may wait for something, and is the user's.
        WorkerSeat.flushCurrent()
        switch source.next() {
        case .child(let child, let tag):
            if let refusal = adopt(child, ChildTerms(tag: tag)) { fail(child, refusal, tag) }
            state.withLock { $0.machine.endPull(.child) }
        case .nothingNow: state.withLock { $0.machine.endPull(.nothingNow) }
        case .nothingMore:
            let isMeasuring = state.withLock { state in
                state.machine.endPull(.nothingMore)
                state.meter.isOpen = false
                return state.meter.isOn
            }
            if isMeasuring { tellProgress() }
        }
    }

    /// The reader of the elements says what it read.
    func sourceDidTell(_ news: SourceNews) {
        apply { state in
            switch news {
            case .more: state.machine.sourceHasNews()
            case .failed(let error): if state.machine.sourceFailed() { state.sourceError = error }
            }
        }
    }

    private func conclude(_ verdict: GroupMachine.Verdict) {
        let (operation, finish, tellers, left) = state.withLock { state in
            let kept = (
                exchange(&state.offers, with: GroupOffers()), exchange(&state.recoveries, with: nil),
                exchange(&state.reader, with: nil)
            )
            let left = (state.bodyTask, state.children, state.outer, state.queue, kept)
            let tellers = state.takeTellers()
            state.bodyTask = nil
            state.children = []
            state.outer = nil
            state.queue = nil
            return (exchange(&state.operation, with: nil), exchange(&state.finish, with: nil), tellers, left)
        }
        source?.letGo()
        // Not begun, it ends by itself when it is started.
        guard let operation else { return }
        if verdict == .success { completeProgress(tellers) }
        if verdict == .cancelled || operation.isCancelled {
            // Its outcome is known: now it has wound down.
            endCancelled(operation)
        } else if let finish {
            finish()
        } else {
            operation.concludeGroup(verdict)
        }
        withExtendedLifetime((finish, tellers, left)) {}
    }

    /// Ends the group, which was cancelled.
    ///
    /// The group around it cancels what has not begun from the bottom up. Begun meanwhile by a worker, it may come here
    /// before it was told itself.
    func endCancelled(_ operation: ManagedOperation) {
        operation.cancelIfUndecided(because: state.withLock { $0.ownCause } ?? .requested)
        operation.bodyDidReturn()
    }
}

extension GroupEngine.State {
    /// What is to be done now, in portions.
    mutating func takePlan() -> GroupEngine.Plan {
        var plan = GroupEngine.Plan()
        if machine.isDooming {
            let slots = takeDoomedSlots()
            plan.doomed = slots.compactMap { children[Int($0)].operation }
            plan.reader = exchange(&reader, with: nil)
            plan.abandoned = takeRescues(at: slots)
            plan.unheldWaits = waits.takeHeld()
            plan.released = waits.takeAll()
            if machine.isSuspended {
                machine.setSuspended(false)
                plan.unheld = activeChildren
            }
            if !returns.isEmpty { plan.returns = Array(exchange(&returns, with: [:]).values) }
        }
        while plan.starts.count < 256, let slot = machine.takeNext() {
            guard let child = children[Int(slot)].operation else { continue }
            // It may have got a dependency since it was added.
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

    var activeChildren: [ManagedOperation] {
        children.enumerated().compactMap { slot, child in
            machine.isActive(GroupMachine.Slot(slot)) ? child.operation : nil
        }
    }

    mutating func seat(_ child: ManagedOperation, _ terms: ChildTerms, at slot: GroupMachine.Slot) {
        let entry = GroupEngine.Child(operation: child, waiter: terms.waiter)
        if Int(slot) < children.count { children[Int(slot)] = entry } else { children.append(entry) }
        meter.add(slot, weight: terms.weight)
        if let hook = terms.hook { setHook(hook, at: slot) }
    }
}
