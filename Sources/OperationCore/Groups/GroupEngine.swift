// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The shell of ``GroupMachine``, with one instance for each group, which holds its children.
///
/// The engine applies an event under its lock, returns a `Plan` of the following steps, and carries out the plan
/// without holding the lock.
package final class GroupEngine: ParentGroup, @unchecked Sendable {
    // Sendable: its superclass is, and its state is protected by its lock.

    struct Child {
        var operation: ManagedOperation?
        var waiter = GroupWaiter.none
        /// Whether the child is a group.
        var isGroup = false
        /// Whether the task that waited for the child was canceled.
        var isGivenUp = false
    }

    struct State {
        var machine: GroupMachine
        /// The reader of the source's elements, until no further element is needed.
        var reader: (any SourceReader)?
        var children: [Child] = []
        /// The group, from its start to its end.
        var operation: ManagedOperation?
        /// The group that contains this one.
        var outer: GroupEngine?
        /// The queue on which the children run.
        ///
        /// Before the start, it is the queue that was given to the group. The group releases the queue when it has
        /// concluded. A queue keeps the operations that failed in it, so a failed group that kept its queue, too, would
        /// keep it forever.
        var queue: QueueEngine?
        /// Whether the queue accepted the group or the group around it, and with it the children.
        var isPartOfQueue = false
        var waits = GroupWaits()
        var failures: [GroupFailure.Child] = []
        /// The error of the sequence of elements.
        var sourceError: (any Error)?
        /// The children whose results make the result of the group, if not all children count.
        var winners: [ManagedOperation] = []
        var place: GroupPlace?
        /// The settings that the group offers to all operations in it.
        var offers = GroupOffers()
        /// The cause with which children are canceled, once they are.
        var cancellationCauseOfChildren: CancellationCause?
        var bodyTask: Task<Void, Never>?
        var bodyThread: pthread_t?
        /// The cause with which the group was canceled.
        var ownCause: CancellationCause?
        /// Whether the group was canceled, or `cancel` was called on it after its end, so that no handler of a child
        /// begins.
        var isSilent = false
        /// The mark that enqueued handlers of children check, once there are some.
        var mark: CancellationMark?
        /// Waits of the body that are over and continue as soon as there is a slot.
        var returns: [ObjectIdentifier: GroupReturn] = [:]
        var meter = GroupMeter()
        /// The callback queue that was set on the group, which its children inherit.
        var callbackQueue: DispatchQueue?
        /// The object that calls the progress listeners on the callback queue, if there are some.
        var reporter: GroupProgressReporter?
        /// The object that calls the progress listeners on the main actor, if there are some.
        var mainActorReporter: GroupProgressReporter?
        /// The recovery hooks of the group, if there are some.
        var recoveries: GroupRecoveries?
        /// Gives the group the result or error of its body.
        var finish: (@Sendable () -> Void)?
    }

    let state: Locked<State>
    /// The closures that get the group, which has at most one of them.
    ///
    /// Their types are not generic, because each use of a generic type looks up its description, which takes longer
    /// than the end of a child.
    let work = Locked<(begin: GroupBegin?, conclude: GroupEnd?)>((nil, nil))
    let source: (any GroupSource)?

    package init(_ machine: GroupMachine, queue: QueueManager? = nil) {
        state = Locked(State(machine: machine, queue: queue?.engine))
        source = nil
    }

    init(_ machine: GroupMachine, queue: QueueManager?, source: any GroupSource, reader: (any SourceReader)?) {
        var first = State(machine: machine, reader: reader, queue: queue?.engine)
        first.meter.isOpen = true
        state = Locked(first)
        self.source = source
    }

    /// The queue of groups that are in no queue of this package and were given none.
    ///
    /// The queue remembers no failures, because no code can read them.
    static let sharedQueue: QueueManager = {
        let queue = QueueManager("groups")
        queue.failureLimit = 0
        return queue
    }()

    // The part of a group that its operations use.

    override func group(around slot: Int32 = -1) -> ManagedOperation? {
        state.withLock { $0.isShielded(slot) ? nil : $0.operation }
    }

    override func childDidChange(_ child: ManagedOperation, _ slot: Int32) {
        var isToEnd = false
        apply { state in
            guard state.holds(child, at: slot) else { return }
            let (isReady, isDecided) = child.core.withLock { ($0.isReady, $0.machine.ending != nil) }
            if isDecided, state.machine.phase != .collecting {
                isToEnd = state.machine.activateImmediately(slot)
            } else if isReady {
                state.machine.becameReady(slot)
            }
        }
        // A canceled child need not wait for its turn.
        if isToEnd { child.beginInGroup() }
    }

    override func childDidEnd(
        _ child: ManagedOperation, _ slot: Int32, _ tag: Int32, _ ending: LifecycleMachine.Ending
    ) {
        if ending != .success || tag == ParentGroup.replacementTag, recover(child, slot, tag, ending) { return }
        settle(child, slot, tag, ending, ending == .success ? nil : failure(of: child, tag, ending))
    }

    override func silence() { state.withLock { $0.silence() } }

    /// Returns the mark that an enqueued handler of a child checks before it begins.
    ///
    /// The mark is `nil` if the child is shielded from all groups around it, or if the group has not begun.
    override func cancellationMark(forChildAt slot: Int32) -> CancellationMark? {
        // The loop goes outward until a group has its mark, and then back.
        var chain: [GroupEngine] = []
        var known: CancellationMark?
        var next: (engine: GroupEngine, slot: Int32)? = (self, slot)
        while let (engine, slot) = next {
            next = nil
            let (isShielded, mark, operation, isSilent) = engine.state.withLock { state in
                (state.isShielded(slot), state.mark, state.operation, state.isSilent)
            }
            if isShielded { break }
            known = mark
            if known != nil { break }
            // A group that has not begun may still become the child of another one, which its mark would not know. So
            // it gets none, unless it is canceled. No child has reported its outcome yet, so at most a report is
            // enqueued.
            if operation == nil, !isSilent { break }
            chain.append(engine)
            let around = operation?.core.withLock { ($0.parentEngine, $0.parentSlot) }
            if let around, let outer = around.0 { next = (outer, around.1) }
        }
        for engine in chain.reversed() {
            known = engine.state.withLock { state in
                let mark = state.mark ?? CancellationMark(isSet: state.isSilent, in: known)
                state.mark = mark
                return mark
            }
        }
        return known
    }

    override var acceptedBy: HostQueue? { state.withLock { $0.isPartOfQueue ? $0.queue : nil } }

    /// The number of groups around an operation that are searched for a callback queue.
    ///
    /// Each operation of a tree searches for its queue when it ends. Without a limit, the time for a chain of nested
    /// groups would grow with the square of its length.
    private static let mostGroupsAsked = 64

    /// Returns the callback queue of the innermost group that has one, beginning with this group.
    ///
    /// If no group has a callback queue, the method returns the callback queue of the queue that runs the children.
    override func callbackQueue(ofChildrenIn host: HostQueue?) -> DispatchQueue? {
        var runner = host
        var next: GroupEngine? = self
        for _ in 0..<Self.mostGroupsAsked {
            guard let engine = next else { break }
            let (chosen, queue, outer) = engine.state.withLock { ($0.callbackQueue, $0.queue, $0.outer) }
            if let chosen { return chosen }
            if runner == nil { runner = queue }
            next = outer
        }
        return runner?.callbackQueue
    }

    override func takeCallbackQueue(of group: ManagedOperation) {
        state.release { state in
            exchange(&state.callbackQueue, with: group.storage.withLock { $0.callbackQueue })
        }
    }

    package override var presentChildren: [ManagedOperation] { state.withLock { $0.children.compactMap(\.operation) } }

    override func neededChildren(atMost most: Int) -> [ManagedOperation]? {
        state.withLock { state in
            if state.machine.policy.hasWinners { return nil }
            return Array(state.children.lazy.compactMap { $0.operation?.life }.prefix(most))
        }
    }

    override func childrenThatFillWidth(
        before child: ManagedOperation, at slot: Int32, atMost most: Int
    ) -> [ManagedOperation] {
        state.withLock { state in
            guard state.holds(child, at: slot), state.machine.isHeldByWidth(slot), state.machine.active <= most
            else { return [] }
            let active = state.activeChildren.map(\.life)
            return active.count == state.machine.active ? active : []
        }
    }

    override var width: Int { state.withLock { $0.machine.width } }

    override var hasReader: Bool { state.withLock { $0.reader != nil } }

    override func run(_ child: ManagedOperation, forBodyOnThread isOnThread: Bool) -> GroupWaitEnd? {
        // The closures of a group that judge or convert an outcome are not its body.
        guard isOnThread ? isBodyOnThisThread : isRunningBody else { return nil }
        guard child.life.core.withLock({ $0.reasonAgainstAdoption == nil }), !child.isHeldByQueue(isByQueue: false)
        else {
            return nil
        }
        guard isOnThread else { return .refused(.groupRefused(.blocksTask(child))) }
        let isShielded = ThreadNotes.current.shields.contains(ObjectIdentifier(self))
        return perform(child, ChildTerms(isShielded: isShielded))
    }
}

extension GroupEngine.State {
    func isShielded(_ slot: Int32) -> Bool { children.indices.contains(Int(slot)) && machine.isShielded(slot) }

    /// Returns whether a slot contains an operation or one that is mapped from it, because another child may have the
    /// slot by now.
    func holds(_ child: ManagedOperation, at slot: Int32) -> Bool {
        children.indices.contains(Int(slot)) && children[Int(slot)].operation?.life === child
    }

    /// Returns the objects that call the progress listeners, and removes them.
    mutating func takeReporters() -> [GroupProgressReporter] {
        if reporter == nil, mainActorReporter == nil { return [] }
        defer { (reporter, mainActorReporter) = (nil, nil) }
        return [reporter, mainActorReporter].compactMap { $0 }
    }

    mutating func silence() {
        if !isSilent { mark?.set() }
        isSilent = true
    }
}

// The life of the group.
extension GroupEngine {
    /// Begins the group.
    ///
    /// - Returns: Whether its body is to run.
    @discardableResult
    func begin(_ operation: ManagedOperation, isOnItsThread: Bool = false) -> Bool {
        let (host, outer) = (operation.slotQueue?.engine, operation.core.withLock { $0.parentEngine })
        let around = outer.map { outer in outer.state.withLock { ($0.queue, $0.isPartOfQueue) } }
        let queue = state.withLock { $0.queue } ?? host ?? around?.0 ?? Self.sharedQueue.engine
        var isLate = false
        var hasBody = false
        var reader: (any SourceReader)?
        state.withLock { state in
            isLate = state.machine.isOver
            if isLate { return }
            reader = state.reader
            state.queue = queue
            state.isPartOfQueue = queue === host || queue === around?.0 && around?.1 == true
            state.operation = operation
            if isOnItsThread { state.bodyThread = pthread_self() }
            hasBody = state.machine.hasBody
        }
        // The group was canceled in the meantime, and all of it has ended.
        if isLate {
            endCancelled(operation)
            return false
        }
        // A group without a body needs no slot from now on. Another thread may add the first child at any moment.
        if !hasBody { operation.rest(1, because: .children) }
        var hasStarted = false
        apply { hasStarted = $0.machine.start() }
        if hasStarted { cancelEndlessChildren(of: operation) }
        // A failure of the sequence counts only in a group that has started, so the reader begins here. This thread
        // still has the context of the operation.
        if hasStarted { reader?.begin(for: operation) { [weak self] error in self?.sourceDidUpdate(error) } }
        return hasStarted
    }

    /// Notes that the body returned.
    ///
    /// When all children have ended, `finish` gives the group the result or error of the body.
    func bodyEnded(_ verdict: GroupMachine.Verdict, finish: (@Sendable () -> Void)? = nil) {
        var rest: (operation: ManagedOperation, number: UInt32)?
        apply { state in
            state.bodyThread = nil
            state.finish = finish
            state.machine.bodyEnded(verdict)
            // From now on, the group only waits, and its children may need its slot.
            if state.machine.present > 0, let operation = state.operation {
                rest = (operation, state.waits.nextRest())
            }
        }
        if let rest { rest.operation.rest(rest.number, because: .children) }
    }

    /// Cancels the children if the outcome of the group was decided before they ended.
    func outcomeWasDecided(_ operation: ManagedOperation) {
        let (isOver, hasBegun) = state.withLock { ($0.machine.isOver, $0.operation != nil) }
        if isOver { return }
        let cause = operation.cancellationCause
        if hasBegun {
            // In a loop and not in a recursion, so each group in this one is canceled after it.
            ThreadWorklist.perform { self.cancel(because: cause) }
        } else {
            // A group that has not begun would end before its children if this were deferred.
            let place = keepPlace(operation.name)
            // The rule of a dependency may have made the group fail.
            if operation.failureAsError != nil {
                let failed = CancellationCause.groupFailed(place, nil, nil)
                state.withLock { $0.cancellationCauseOfChildren = $0.cancellationCauseOfChildren ?? failed }
            }
            cancel(because: cause)
        }
    }

    private func cancel(because cause: CancellationCause?) {
        var bodyTask: Task<Void, Never>?
        apply { state in
            guard state.machine.cancel() else { return }
            state.ownCause = cause
            state.silence()
            bodyTask = state.bodyTask
        }
        // Cancel the body after the children, so that the children have their own cause.
        bodyTask?.cancel()
    }

    /// Keeps the task of the body, to cancel it with the group.
    func keep(_ task: Task<Void, Never>) {
        let isLate = state.withLock { state in
            guard state.machine.hasBody else { return false }
            state.bodyTask = task
            return state.machine.isCancellingChildren
        }
        if isLate { task.cancel() }
    }

    /// Releases everything in a group that is being freed and never ran.
    func tearDown() {
        var left = state.withLock { state in
            Optional(
                (
                    exchange(&state.children, with: []), exchange(&state.outer, with: nil),
                    exchange(&state.recoveries, with: nil), state.takeReporters()
                ))
        }
        if left?.0.isEmpty == true, left?.1 == nil, left?.2 == nil, left?.3.isEmpty == true { return }
        for child in left?.0 ?? [] { child.operation?.leaveGroup() }
        ThreadWorklist.release(exchange(&left, with: nil))
    }
}

// Suspending a group.
extension GroupEngine {
    /// Suspends the group and the children that can be suspended, or resumes all of them.
    ///
    /// A suspended group begins no child.
    func setSuspended(_ isSuspended: Bool) {
        var waiters: [GroupWaiter] = []
        var active: [ManagedOperation] = []
        apply { state in
            state.machine.setSuspended(isSuspended)
            if !isSuspended { waiters = state.waits.takeHeld() }
            active = state.activeChildren
        }
        if let reader = state.withLock({ $0.reader }) {
            // Another thread may change this in the meantime, so the latest state is applied.
            applyLatest({ state.withLock { $0.machine.isSuspended } }, reader.setSuspended)
        }
        // In a loop and not in a recursion, so each group in this one follows after it.
        let children = active
        ThreadWorklist.perform { self.suspendChildren(children) }
        for waiter in waiters { release(waiter, .ended) }
    }

    /// Suspends or resumes children, so that they match the group as it is now.
    func suspendChildren(_ children: [ManagedOperation]) {
        // Another thread may change this in the meantime, so the latest state is applied.
        applyLatest({ state.withLock { $0.machine.isSuspended && !$0.machine.isCancellingChildren } }) { isSuspended in
            suspend(children, isSuspended)
        }
    }

    private func suspend(_ children: [ManagedOperation], _ isSuspended: Bool) {
        for child in children {
            let host = child.core.withLock { core -> HostQueue? in
                guard core.parent === self, core.isHeldByGroup != isSuspended else { return nil }
                core.isHeldByGroup = isSuspended
                return core.host
            }
            host?.reconsider(child)
            if isSuspended { child.suspendExecution() } else { child.resumeExecution() }
        }
    }
}

/// A closure that begins the body of a group.
typealias GroupBegin = @Sendable (ManagedOperation) -> Void

/// A closure that gives a group without a body its result or error.
typealias GroupEnd = @Sendable (ManagedOperation, GroupMachine.Verdict) -> Void

/// The task or thread that continues when a child has ended.
enum GroupWaiter: Sendable {
    case none
    case task(UnsafeContinuation<GroupWaitEnd, Never>)
    case thread(BlockingWaiter)

    var isNone: Bool { if case .none = self { true } else { false } }
    var isTask: Bool { if case .task = self { true } else { false } }

    func resume(_ end: GroupWaitEnd) {
        switch self {
        case .none: break
        case .task(let continuation): continuation.resume(returning: end)
        case .thread(let waiter): waiter.wake()
        }
    }
}

/// The waits of a body, during which the group needs no slot in its queue.
struct GroupWaits {
    /// The number of tasks that wait.
    private(set) var count = 0
    /// The number of the current or last rest of the group, where the first one is that of a group without a body.
    private(set) var rest: UInt32 = 1
    /// The number of the last rest that was taken, because several tasks may begin to wait at the same time.
    private var taken: UInt32 = 1
    /// Waits that are over, and continue when the group is resumed.
    private var held: [GroupWaiter] = []
    /// Waits for operations that are not children.
    private var externalWaits: [UInt64: (waiter: GroupWaiter, isShielded: Bool)] = [:]
    /// Waits whose task was canceled before they began.
    private var cancelledExternalWaits: Set<UInt64> = []
    private var lastExternalWait: UInt64 = 0

    /// Notes that a task waits.
    mutating func begin() {
        count += 1
        if count == 1 { rest += 1 }
    }

    /// Returns the rest that must begin now, but only to the first caller.
    mutating func takeNewRest() -> UInt32? {
        guard count > 0, taken != rest else { return nil }
        taken = rest
        return rest
    }

    /// Notes that a task no longer waits, and returns whether it was the last one.
    mutating func end() -> Bool {
        count -= 1
        return count == 0
    }

    /// Returns the number of a rest that begins now, although the last wait may have ended.
    mutating func nextRest() -> UInt32 {
        rest += 1
        taken = rest
        return rest
    }

    mutating func hold(_ waiter: GroupWaiter) { held.append(waiter) }

    /// Whether no wait is stored.
    var isIdle: Bool { held.isEmpty && externalWaits.isEmpty }

    mutating func takeHeld() -> [GroupWaiter] { exchange(&held, with: []) }

    var externalWaitCount: Int { externalWaits.count }

    /// Returns a number for a wait that is about to begin.
    mutating func nextExternalWait() -> UInt64 {
        lastExternalWait += 1
        return lastExternalWait
    }

    /// Begins a wait, and returns `false` if its task was canceled before.
    mutating func beginExternalWait(_ id: UInt64, _ waiter: GroupWaiter, isShielded: Bool) -> Bool {
        if cancelledExternalWaits.remove(id) != nil { return false }
        externalWaits[id] = (waiter, isShielded)
        if waiter.isTask { begin() }
        return true
    }

    /// Notes that the task of a wait was canceled, perhaps before the wait began.
    mutating func cancelExternalWait(_ id: UInt64) -> GroupWaiter {
        let waiter = endExternalWait(id)
        if waiter.isNone { cancelledExternalWaits.insert(id) }
        return waiter
    }

    /// Removes what is left of a wait that is over.
    mutating func forgetExternalWait(_ id: UInt64) { cancelledExternalWaits.remove(id) }

    mutating func endExternalWait(_ id: UInt64) -> GroupWaiter {
        externalWaits.removeValue(forKey: id)?.waiter ?? .none
    }

    /// Takes out all waits that end with the cancellation of the group, because they are not shielded.
    mutating func takeAll() -> [GroupWaiter] {
        if externalWaits.isEmpty { return [] }
        let over = externalWaits.filter { !$0.value.isShielded }
        for id in over.keys { externalWaits[id] = nil }
        return over.values.map(\.waiter)
    }
}
