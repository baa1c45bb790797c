// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Work that is described once, as a value, and run as often as there are inputs for it.
///
/// ```swift
/// let user = OperationPlan { (id: Int) in TaskOperation { () async throws -> String in "user \(id)" } }
/// let letters = OperationPlan { (name: String) in ClosureOperation { name.count } }
///
/// let plan = user.retry(atMost: 2).then(letters)
/// for id in 1...3 { print(try await plan.operation(for: id).run()) }
/// ```
///
/// Its steps are makers of operations: from an input to a new operation of whatever kind. A group is one, too, with all
/// that groups can be, and so is what a pipeline makes, `then { names in OperationPipeline(names)… .operation() }`. The
/// other way round a stage of a pipeline, or a map, takes a plan: `stage(width: 4) { plan.operation(for: $0) }`.
///
/// A plan runs nothing by itself and holds no operation: ``operation(for:width:on:)`` makes them anew.
public struct OperationPlan<Input: Sendable, Output: Sendable>: Sendable {
    private let body: @Sendable (Input, GroupScope) async throws -> Output

    private init(body: @escaping @Sendable (Input, GroupScope) async throws -> Output) { self.body = body }

    /// Makes a plan of one step.
    ///
    /// - Parameter make: Makes the operation; called on any thread, once for each run.
    public init<Failure>(_ make: @escaping @Sendable (Input) -> TypedOperation<Output, Failure>) {
        body = { input, group in try await group.run(make(input)) }
    }

    /// Makes a group that carries the plan out.
    ///
    /// Where it runs, and how it ends, is as for each ``GroupOperation``: a step that gives no result ends it, with an
    /// error that names the step's operation.
    ///
    /// - Parameters:
    ///   - input: What to carry it out with.
    ///   - width: How many operations may run at once; nil for as many as their queue allows.
    ///   - queue: Where they run; nil for the queue that holds the group.
    public func operation(
        for input: Input, width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<Output, GroupFailure> {
        let body = body
        return GroupOperation(width: width, on: queue) { group in try await body(input, group) }
    }
}

// One after the other.
extension OperationPlan {
    /// The plan with a step behind it, whose operation is made of the result.
    public func then<Next, Failure>(
        _ make: @escaping @Sendable (Output) -> TypedOperation<Next, Failure>
    ) -> OperationPlan<Input, Next> {
        then(OperationPlan<Output, Next>(make))
    }

    /// The plan with another behind it.
    public func then<Next>(_ next: OperationPlan<Output, Next>) -> OperationPlan<Input, Next> {
        let body = body
        return OperationPlan<Input, Next>(body: { input, group in
            try await next.body(try await body(input, group), group)
        })
    }

    /// The plan with a result that is converted; an error that `convert` throws fails it.
    public func mapResult<Converted>(
        _ convert: @escaping @Sendable (Output) throws -> Converted
    ) -> OperationPlan<Input, Converted> {
        let body = body
        return OperationPlan<Input, Converted>(body: { input, group in try convert(try await body(input, group)) })
    }
}

// Side by side.
extension OperationPlan {
    /// Both plans with the same input, at the same time; the first that fails cancels the other.
    public func and<Other>(_ other: OperationPlan<Input, Other>) -> OperationPlan<Input, (Output, Other)> {
        OperationPlan<Input, (Output, Other)> { input in
            GroupOperation.all(operation(for: input), other.operation(for: input))
        }
    }

    /// The first result that one of several plans gives; the others are cancelled then.
    public static func firstSuccess(of plans: [OperationPlan]) -> OperationPlan {
        OperationPlan { input in GroupOperation.firstSuccess(of: plans.map { $0.operation(for: input) }) }
    }
}

extension OperationPlan where Output == Never {
    /// Several plans with the same input, at the same time, as a tuple of their results; the first that fails cancels
    /// the others.
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
                (repeat try ((each group).outcomeInGroup ?? .cancelled(.requested)).get())
            }
        }
    }
}

extension OperationPlan where Output: Sequence, Output.Element: Sendable {
    /// The plan, and then another for each element of its result, so many at a time; the results come in order.
    public func forEach<Value>(
        width: Int, _ plan: OperationPlan<Output.Element, Value>
    ) -> OperationPlan<Input, [Value]> {
        then { elements in GroupOperation.map(elements, width: width) { plan.operation(for: $0) } }
    }

    /// The plan, and then an operation for each element of its result, so many at a time; the results come in order.
    public func forEach<Value, Failure>(
        width: Int, _ make: @escaping @Sendable (Output.Element) -> TypedOperation<Value, Failure>
    ) -> OperationPlan<Input, [Value]> {
        then { elements in GroupOperation.map(elements, width: width, make) }
    }
}

extension OperationPlan where Output: AsyncSequence, Output.Element: Sendable {
    /// The plan, and then another for each element of the asynchronous sequence that is its result, so many at a time,
    /// while the sequence is read; the results come in order.
    public func forEach<Value>(
        width: Int, _ plan: OperationPlan<Output.Element, Value>
    ) -> OperationPlan<Input, [Value]> {
        then { elements in GroupOperation.map(elements, width: width) { plan.operation(for: $0) } }
    }

    /// The plan, and then an operation for each element of the asynchronous sequence that is its result, so many at a
    /// time, while the sequence is read; the results come in order.
    public func forEach<Value, Failure>(
        width: Int, _ make: @escaping @Sendable (Output.Element) -> TypedOperation<Value, Failure>
    ) -> OperationPlan<Input, [Value]> {
        then { elements in GroupOperation.map(elements, width: width, make) }
    }
}

// Where it fails.
extension OperationPlan {
    /// The plan with a way out: `hook` is asked when it gives no result, as in ``GroupOperation/recover(atMost:_:)``.
    public func recover(
        atMost limit: Int = 1,
        _ hook: @escaping @Sendable (FailedChild<Output>, Input) async throws -> ChildRecovery<Output>
    ) -> OperationPlan {
        OperationPlan(body: { input, group in
            try await group.run(operation(for: input), recoveringAtMost: limit) { try await hook($0, input) }
        })
    }

    /// The plan, begun anew so many times where it gives no result, with the same input.
    ///
    /// That is so, too, where something in it was cancelled by itself; cancelled as a whole, it is not begun anew.
    public func retry(atMost limit: Int) -> OperationPlan {
        limit > 0 ? recover(atMost: limit) { _, input in .operation(operation(for: input)) } : self
    }
}

/// On what terms an operation becomes a child.
struct ChildTerms: Sendable {
    /// Who goes on when it has ended.
    var waiter = GroupWaiter.none
    var isShielded = false
    /// What it counts in the group's progress.
    var weight = 1.0
    /// Which one it is of those that the group makes itself.
    var tag: Int32 = -1
    /// What is done if it gives no result.
    var hook: RecoveryHook?

    func with(isShielded: Bool) -> ChildTerms {
        var terms = self
        terms.isShielded = isShielded
        return terms
    }
}

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
        var active: [ManagedOperation] = []
        for (slot, child) in children.enumerated() where machine.isActive(GroupMachine.Slot(slot)) {
            if let operation = child.operation { active.append(operation) }
            if active.count == machine.active { break }
        }
        return active
    }

    mutating func seat(_ child: ManagedOperation, _ terms: ChildTerms, at slot: GroupMachine.Slot) {
        let entry = GroupEngine.Child(operation: child, waiter: terms.waiter)
        if Int(slot) < children.count { children[Int(slot)] = entry } else { children.append(entry) }
        meter.add(slot, weight: terms.weight)
        if let hook = terms.hook { setHook(hook, at: slot) }
    }
}
