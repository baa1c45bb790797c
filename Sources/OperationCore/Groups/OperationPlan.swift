// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A description of work from which you can create any number of operations with different inputs.
///
/// ```swift
/// let user = OperationPlan { (id: Int) in
///     TaskOperation { () async throws -> String in "user \(id)" }
/// }
/// let letters = OperationPlan { (name: String) in
///     ClosureOperation { name.count }
/// }
///
/// let plan = user.retry(atMost: 2).then(letters)
/// for id in 1...3 { print(try await plan.operation(for: id).run()) }
/// ```
///
/// Each step is a closure that creates an operation from an input. The operation may be a group, including a group that
/// a pipeline creates, as in `then { names in OperationPipeline(names)… .operation() }`. Conversely, a stage in a
/// pipeline or a map can run a plan, as in `stage(width: 4) { plan.operation(for: $0) }`.
///
/// A plan does not run or hold any operations. Each call to ``operation(for:width:on:)`` creates new operations.
public struct OperationPlan<Input: Sendable, Output: Sendable>: Sendable {
    private let body: @Sendable (Input, GroupScope) async throws -> Output

    private init(body: @escaping @Sendable (Input, GroupScope) async throws -> Output) { self.body = body }

    /// Creates a plan with one step.
    ///
    /// - Parameter make: The closure that creates the operation. The closure is called on any thread, once each time
    ///   the step runs.
    public init<Failure>(_ make: @escaping @Sendable (Input) -> TypedOperation<Output, Failure>) {
        body = { input, group in try await group.run(make(input)) }
    }

    /// Creates a group that performs the plan with an input.
    ///
    /// If a step's operation fails or is canceled, the group fails. The error of the group names this operation.
    ///
    /// - Parameters:
    ///   - input: The input of the plan.
    ///   - width: The maximum number of operations that run at the same time. The default is `nil`, in which case only
    ///     the width of the operations' queue limits the number.
    ///   - queue: The queue on which the operations run. The default is the queue that holds the group.
    public func operation(
        for input: Input, width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<Output, GroupFailure> {
        let body = body
        return GroupOperation(width: width, on: queue) { group in try await body(input, group) }
    }
}

// Steps one after another.
extension OperationPlan {
    /// Returns a plan with an additional step that uses the result of this plan as its input.
    ///
    /// - Parameter make: The closure that creates the operation. The closure is called on any thread, once each time
    ///   the step runs.
    public func then<Next, Failure>(
        _ make: @escaping @Sendable (Output) -> TypedOperation<Next, Failure>
    ) -> OperationPlan<Input, Next> {
        then(OperationPlan<Output, Next>(make))
    }

    /// Returns a plan that runs this plan and then runs another plan with this plan's result as its input.
    ///
    /// - Parameter next: The plan that receives the result.
    public func then<Next>(_ next: OperationPlan<Output, Next>) -> OperationPlan<Input, Next> {
        let body = body
        return OperationPlan<Input, Next>(body: { input, group in
            try await next.body(try await body(input, group), group)
        })
    }

    /// Returns a plan that converts the result of this plan.
    ///
    /// - Parameter convert: The closure that converts the result. The closure runs in the task of the group that runs
    ///   the plan. If the closure throws an error, the plan fails with that error.
    public func mapResult<Converted>(
        _ convert: @escaping @Sendable (Output) throws -> Converted
    ) -> OperationPlan<Input, Converted> {
        let body = body
        return OperationPlan<Input, Converted>(body: { input, group in try convert(try await body(input, group)) })
    }
}

// Plans at the same time.
extension OperationPlan {
    /// Returns a plan that runs this plan and another plan at the same time with the same input.
    ///
    /// If one plan fails, the other plan is canceled. The result is a tuple of both results.
    ///
    /// - Parameter other: The plan that runs at the same time as this plan.
    public func and<Other>(_ other: OperationPlan<Input, Other>) -> OperationPlan<Input, (Output, Other)> {
        OperationPlan<Input, (Output, Other)> { input in
            GroupOperation.all(operation(for: input), other.operation(for: input))
        }
    }

    /// Returns a plan that runs several plans with the same input at the same time and uses the first result of these
    /// plans.
    ///
    /// When one plan has succeeded, the other plans are canceled. If no plan succeeds, the returned plan fails.
    ///
    /// - Parameter plans: The plans to run.
    public static func firstSuccess(of plans: [OperationPlan]) -> OperationPlan {
        OperationPlan { input in GroupOperation.firstSuccess(of: plans.map { $0.operation(for: input) }) }
    }
}

extension OperationPlan where Output == Never {
    /// Returns a plan that runs several plans with the same input at the same time and combines their results in a
    /// tuple.
    ///
    /// If one plan fails, the other plans are canceled.
    ///
    /// - Parameter plan: The plans to run.
    ///
    /// ```swift
    /// let title = OperationPlan { (id: Int) in ClosureOperation { "title \(id)" } }
    /// let count = OperationPlan { (id: Int) in ClosureOperation { id * 2 } }
    /// let page = OperationPlan.all(title, count)
    /// let (text, number) = try await page.operation(for: 7).run()
    /// ```
    public static func all<each Value: Sendable>(
        _ plan: repeat OperationPlan<Input, each Value>
    ) -> OperationPlan<Input, (repeat each Value)> {
        typealias Group = GroupOperation<(repeat each Value), GroupFailure>
        return OperationPlan<Input, (repeat each Value)> { (input: Input) -> Group in
            let group = (repeat (each plan).operation(for: input))
            var children: [ManagedOperation] = []
            for child in repeat each group { children.append(child) }
            return Group.made(of: children, .failFast, nil, nil) { _ in
                (repeat try (each group).resultInGroup())
            }
        }
    }
}

extension OperationPlan where Output: Sequence, Output.Element: Sendable {
    /// Returns a plan that runs another plan for each element of this plan's result and collects the results in the
    /// order of the elements.
    ///
    /// - Parameters:
    ///   - width: The maximum number of elements for which the other plan runs at the same time.
    ///   - plan: The plan for each element.
    public func forEach<Value>(
        width: Int, _ plan: OperationPlan<Output.Element, Value>
    ) -> OperationPlan<Input, [Value]> {
        then { elements in GroupOperation.map(elements, width: width) { plan.operation(for: $0) } }
    }

    /// Returns a plan that runs an operation for each element of this plan's result and collects the results in the
    /// order of the elements.
    ///
    /// - Parameters:
    ///   - width: The maximum number of operations that run at the same time.
    ///   - make: The closure that creates the operation for an element. The closure is called on any thread.
    public func forEach<Value, Failure>(
        width: Int, _ make: @escaping @Sendable (Output.Element) -> TypedOperation<Value, Failure>
    ) -> OperationPlan<Input, [Value]> {
        then { elements in GroupOperation.map(elements, width: width, make) }
    }
}

extension OperationPlan where Output: AsyncSequence, Output.Element: Sendable {
    /// Returns a plan that runs another plan for each element of this plan's asynchronous sequence and collects the
    /// results.
    ///
    /// The results are in the order of the elements. The plan runs for the first elements while the group still reads
    /// the sequence.
    ///
    /// - Parameters:
    ///   - width: The maximum number of elements for which the other plan runs at the same time.
    ///   - plan: The plan for each element.
    public func forEach<Value>(
        width: Int, _ plan: OperationPlan<Output.Element, Value>
    ) -> OperationPlan<Input, [Value]> {
        then { elements in GroupOperation.map(elements, width: width) { plan.operation(for: $0) } }
    }

    /// Returns a plan that runs an operation for each element of this plan's asynchronous sequence and collects the
    /// results.
    ///
    /// The results are in the order of the elements. The first operations run while the group still reads the sequence.
    ///
    /// - Parameters:
    ///   - width: The maximum number of operations that run at the same time.
    ///   - make: The closure that creates the operation for an element. The closure is called on any thread.
    public func forEach<Value, Failure>(
        width: Int, _ make: @escaping @Sendable (Output.Element) -> TypedOperation<Value, Failure>
    ) -> OperationPlan<Input, [Value]> {
        then { elements in GroupOperation.map(elements, width: width, make) }
    }
}

// Plans that fail or are canceled.
extension OperationPlan {
    /// Returns a plan that calls a closure if this plan fails or is canceled.
    ///
    /// The closure works as in ``GroupOperation/recover(atMost:_:)``.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of calls each time that the plan runs. The default is `1`.
    ///   - hook: The closure that decides how the plan continues. The closure receives information about the failed or
    ///     canceled operation and the input of the plan. The closure runs in its own task.
    public func recover(
        atMost limit: Int = 1,
        _ hook: @escaping @Sendable (FailedChild<Output>, Input) async throws -> ChildRecovery<Output>
    ) -> OperationPlan {
        OperationPlan(body: { input, group in
            try await group.run(operation(for: input), recoveringAtMost: limit) { try await hook($0, input) }
        })
    }

    /// Returns a plan that runs this plan again with the same input if this plan fails or is canceled.
    ///
    /// If only a part of the plan was canceled, the plan runs again. If the whole plan was canceled, the plan does not
    /// run again.
    ///
    /// - Parameter limit: The maximum number of times that the plan runs again. If the value is zero or less, the
    ///   method returns this plan.
    public func retry(atMost limit: Int) -> OperationPlan {
        limit > 0 ? recover(atMost: limit) { _, input in .operation(operation(for: input)) } : self
    }
}

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

    func with(isShielded: Bool) -> ChildTerms {
        var terms = self
        terms.isShielded = isShielded
        return terms
    }
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
    /// The value is deliberately not `Sendable` and belongs to the thread that applied the event.
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
        let level = operation?.core.withLock { ($0.urgency, $0.isAwaited) }
        guard let queue, let level else { return }
        if queue.addChildren(children, level: level.0, areAwaited: level.1, areAccepted: isPart) {
            // If the group was suspended in the meantime, it did not find the children in the queue.
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
        // The closure that makes the child is user code, and may wait.
        ThreadNotes.current.worker?.reportChanges()
        switch source.next() {
        case .child(let child, let tag):
            if let refusal = adopt(child, ChildTerms(tag: tag)) { fail(child, refusal, tag) }
            state.withLock { $0.machine.endPull(.child) }
        case .notNow: state.withLock { $0.machine.endPull(.notNow) }
        case .noMore:
            let isMeasuring = state.withLock { state in
                state.machine.endPull(.noMore)
                state.meter.isOpen = false
                return state.meter.isOn
            }
            if isMeasuring { reportProgress() }
        }
    }

    /// Receives news from the reader of the elements.
    func sourceDidUpdate(_ update: SourceUpdate) {
        apply { state in
            switch update {
            case .more: state.machine.sourceDidChange()
            case .failed(let error): if state.machine.sourceFailed() { state.sourceError = error }
            }
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
        withExtendedLifetime((finish, reporters, left)) {}
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
