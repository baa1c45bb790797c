// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The shell of ``GroupMachine``: one object for each group, which holds its children.
///
/// It applies an event under its lock, takes out what follows (`Plan`), and does that when the lock was given back.
package final class GroupEngine: Sendable {
    struct Child {
        var operation: ManagedOperation?
        var waiter = GroupWaiter.none
    }

    struct State {
        var machine: GroupMachine
        var children: [Child] = []
        /// The group, from its start to its end.
        var operation: ManagedOperation?
        /// The group around it.
        var outer: GroupEngine?
        /// Where its children run.
        var queue: QueueEngine?
        /// Whether what that queue accepted includes the group, and with it its children.
        var isPartOfQueue = false
        var waits = GroupWaits()
        var failures: [GroupFailure.Child] = []
        /// The children whose results make that of the group, if not all do.
        var winners: [ManagedOperation] = []
        var place: GroupPlace?
        /// What it says to all that is beneath it.
        var offers = GroupOffers()
        /// Why children are cancelled, once they are.
        var doomCause: CancellationCause?
        var bodyTask: Task<Void, Never>?
        var bodyThread: pthread_t?
        /// Why the group was cancelled.
        var ownCause: CancellationCause?
        /// Waits of its body that are over, as soon as there is a place.
        var returns: [ObjectIdentifier: GroupReturn] = [:]
        var meter = GroupMeter()
        /// Who tells of its progress, if somebody listens.
        var teller: GroupProgressTeller?
        /// What it has to recover its children with, if it has.
        var recoveries: GroupRecoveries?
        /// Gives the group what its body returned.
        var finish: (@Sendable () -> Void)?
    }

    let state: Locked<State>
    let givenQueue: QueueEngine?
    let source: (any GroupSource)?

    package init(_ machine: GroupMachine, queue: QueueManager? = nil) {
        state = Locked(State(machine: machine))
        givenQueue = queue?.engine
        source = nil
    }

    init(_ machine: GroupMachine, queue: QueueManager?, source: any GroupSource) {
        state = Locked(State(machine: machine))
        givenQueue = queue?.engine
        self.source = source
    }

    /// The queue of groups that no queue of this package holds and that were given none.
    ///
    /// It remembers no failures: nobody could ask it for them.
    static let sharedQueue: QueueManager = {
        let queue = QueueManager("groups")
        queue.failureLimit = 0
        return queue
    }()
}

extension GroupEngine {
    /// The name of the group, as far as it is known: from its start on.
    var displayName: String { state.withLock { $0.operation }?.displayName ?? "a group" }
}

// What follows an event.
extension GroupEngine {
    struct Plan {
        var starts: [ManagedOperation] = []
        var doomed: [ManagedOperation] = []
        /// Waits that end because the group was cancelled.
        var released: [GroupWaiter] = []
        /// Waits whose child ended while the group was on hold.
        var unheldWaits: [GroupWaiter] = []
        /// Recoveries that end because the group was cancelled or has failed.
        var abandoned: [GroupRescue] = []
        var returns: [GroupReturn] = []
        /// Children that may begin all the same, since the group was cancelled while it was on hold.
        var unheld: [ManagedOperation] = []
        var isPulling = false
        var over: GroupMachine.Verdict?

        var isEmpty: Bool {
            starts.isEmpty && doomed.isEmpty && released.isEmpty && unheldWaits.isEmpty && abandoned.isEmpty
                && returns.isEmpty && unheld.isEmpty && !isPulling && over == nil
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
            if let refusal = adopt(child, ChildTerms(tag: tag)) { fail(child, refusal) }
            state.withLock { $0.machine.endPull(.child) }
        case .nothingNow: state.withLock { $0.machine.endPull(.nothingNow) }
        case .nothingMore: state.withLock { $0.machine.endPull(.nothingMore) }
        }
    }

    private func conclude(_ verdict: GroupMachine.Verdict) {
        let (operation, finish, teller, left) = state.withLock { state in
            let told = (exchange(&state.recoveries, with: nil), exchange(&state.offers, with: GroupOffers()))
            let left = (state.bodyTask, state.children, state.outer, told)
            let teller = exchange(&state.teller, with: nil)
            state.bodyTask = nil
            state.children = []
            state.outer = nil
            return (exchange(&state.operation, with: nil), exchange(&state.finish, with: nil), teller, left)
        }
        source?.letGo()
        // Not begun, it ends by itself when it is started.
        guard let operation else { return }
        if verdict == .success { completeProgress(teller) }
        if verdict == .cancelled || operation.isCancelled {
            // Its outcome is known: now it has wound down.
            endCancelled(operation)
        } else if let finish {
            finish()
        } else {
            operation.concludeGroup(verdict)
        }
        withExtendedLifetime((finish, teller, left)) {}
    }

    /// Ends the group, which was cancelled.
    ///
    /// The group around it cancels what has not begun from the bottom up. Begun meanwhile by a worker, it may come here
    /// before it was told itself.
    private func endCancelled(_ operation: ManagedOperation) {
        operation.cancelIfUndecided(because: state.withLock { $0.ownCause } ?? .requested)
        operation.bodyDidReturn()
    }
}

extension GroupEngine.State {
    /// What is to be done now, in portions.
    mutating func takePlan() -> GroupEngine.Plan {
        var plan = GroupEngine.Plan()
        let doomed = machine.takeDoomed()
        if !doomed.isEmpty {
            plan.doomed = doomed.compactMap { children[Int($0)].operation }
            plan.abandoned = takeRescues(at: doomed)
        }
        if machine.isDooming {
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

// The life of the group.
extension GroupEngine {
    /// The group was started.
    ///
    /// - Returns: Whether its body is to run.
    @discardableResult
    func begin(_ operation: ManagedOperation, isOnItsThread: Bool = false) -> Bool {
        let (host, outer) = operation.core.withLock { ($0.host, $0.parent) }
        let around = outer.map { outer in outer.state.withLock { ($0.queue, $0.isPartOfQueue) } }
        let queue = givenQueue ?? host ?? around?.0 ?? Self.sharedQueue.engine
        var isLate = false
        var hasChildren = false
        state.withLock { state in
            state.queue = queue
            state.isPartOfQueue = queue === host || queue === around?.0 && around?.1 == true
            isLate = state.machine.isOver
            if isLate { return }
            state.operation = operation
            if isOnItsThread { state.bodyThread = pthread_self() }
            hasChildren = state.machine.present > 0 || source != nil
        }
        // Cancelled on the way here, all of it has ended.
        if isLate {
            endCancelled(operation)
            return false
        }
        // Without a body it needs no place of its own any more.
        if hasChildren, !state.withLock({ $0.machine.hasBody }) { operation.rest(1, because: .children) }
        var hasStarted = false
        apply { hasStarted = $0.machine.start() }
        return hasStarted
    }

    /// The body returned; `finish` gives the group what it returned, when all children have ended.
    func bodyEnded(_ verdict: GroupMachine.Verdict, finish: (@Sendable () -> Void)? = nil) {
        apply { state in
            state.bodyThread = nil
            state.finish = finish
            state.machine.bodyEnded(verdict)
        }
    }

    /// The outcome of the group is decided: where that was a cancellation, or somebody else's doing, its children go with it.
    func outcomeWasDecided(_ operation: ManagedOperation) {
        let (isOver, hasBegun) = state.withLock { ($0.machine.isOver, $0.operation != nil) }
        if isOver { return }
        let cause = operation.cancellationCause
        if hasBegun {
            // In a loop and not in a recursion: each group beneath is cancelled after this one.
            ThreadWorklist.perform { self.cancel(because: cause) }
        } else {
            // What has not begun would end before its children if this were put off.
            keepPlace(operation.name)
            cancel(because: cause)
        }
    }

    private func cancel(because cause: CancellationCause?) {
        var bodyTask: Task<Void, Never>?
        apply { state in
            guard state.machine.cancel() else { return }
            state.ownCause = cause
            bodyTask = state.bodyTask
        }
        // After its children, so that they have the cause that is theirs.
        bodyTask?.cancel()
    }

    /// Keeps the task of the body, to cancel it with the group.
    func keep(_ task: Task<Void, Never>) {
        let isLate = state.withLock { state in
            guard state.machine.hasBody else { return false }
            state.bodyTask = task
            return state.machine.isDooming
        }
        if isLate { task.cancel() }
    }

    /// Takes everything out, for a group that is being freed and never ran.
    func tearDown() {
        var left = state.withLock { state in
            Optional(
                (
                    exchange(&state.children, with: []), exchange(&state.outer, with: nil),
                    exchange(&state.recoveries, with: nil), exchange(&state.teller, with: nil)
                ))
        }
        if left?.0.isEmpty == true, left?.1 == nil, left?.2 == nil, left?.3 == nil { return }
        for child in left?.0 ?? [] { child.operation?.leaveGroup() }
        ThreadWorklist.letGo(exchange(&left, with: nil))
    }
}
