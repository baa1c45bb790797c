// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// Bodies that wait for children.
extension GroupEngine {
    /// Runs a child and waits for its end, without a thread; says why not, if that could not be.
    func run(_ child: ManagedOperation, _ terms: ChildTerms) async -> GroupWaitEnd {
        child.keepTaskContext()
        var wait: BodyWait?
        let end = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                var terms = terms
                terms.waiter = .task(continuation)
                wait = begin(child, terms)
            }
        } onCancel: {
            taskWasCancelled(child, isShielded: terms.isShielded)
        }
        wait?.end()
        if case .elsewhere = end { return await awaitStranger(child, isShielded: terms.isShielded) }
        return end
    }

    private func begin(_ child: ManagedOperation, _ terms: ChildTerms) -> BodyWait? {
        if let error = adopt(child, terms) {
            terms.waiter.goOn(error.isAboutChild ? .elsewhere : .refused(.groupRefused(error)))
            return nil
        }
        rest()
        apply { _ in }
        return noteWait(for: child)
    }

    /// Notes that the body of another operation waits for a child; cancels the child if the wait cannot end.
    ///
    /// The body of this group needs no note, because the group waits for each child.
    private func noteWait(for child: ManagedOperation) -> BodyWait? {
        guard let body = BodyTasks.operation, body.groupEngine !== self,
            let wait = BodyWait.beginInTask(for: child, until: .end)
        else { return nil }
        if let refusal = wait.refusal { refuse(child, refusal) }
        wait.lookAgain { [self] circle in refuse(child, .waitsForItself(circle.map(\.displayName))) }
        return wait
    }

    /// Cancels a child, which ends the wait for it.
    ///
    /// Recovery hooks are not called for this child.
    private func refuse(_ child: ManagedOperation, _ cause: CancellationCause) {
        let slot = child.core.withLock { core in core.parent === self ? core.parentSlot : -1 }
        giveUp(child, at: slot)?.cancelIfUndecided(because: cause)
        child.cancelIfUndecided(because: cause)
    }

    /// The group needs no place while a task of its body waits.
    private func rest() {
        let (operation, number) = state.withLock { ($0.operation, $0.waits.takeNewRest()) }
        if let number { operation?.rest(number, because: .children) }
    }

    /// The task that awaits was cancelled, by the group or by somebody within the body.
    private func taskWasCancelled(_ child: ManagedOperation, isShielded: Bool) {
        let isDooming = state.withLock { $0.machine.isDooming }
        // The group cancels its children itself, but for those that are shielded, and strangers not at all.
        if isDooming, !isShielded { return }
        let (slot, isOurs, isFree) = child.core.withLock { core in
            (core.parentSlot, core.parent === self, core.parent == nil && core.host == nil && !core.isStartUnderWay)
        }
        giveUp(child, at: slot)?.cancelIfUndecided(because: .taskCancelled)
        guard isOurs || isFree && !child.isHeldByQueue(isByQueue: false) else { return }
        child.cancelIfUndecided(because: .taskCancelled)
    }

    /// Waits for the end of an operation that is somebody else's.
    private func awaitStranger(_ other: ManagedOperation, isShielded: Bool) async -> GroupWaitEnd {
        if let inner = other.groupEngine, inner.state.withLock({ $0.operation != nil }), encloses(inner) {
            return .refused(.groupRefused(GroupError(.cycle, other)))
        }
        let wait = BodyWait.beginInTask(for: other, until: .end)
        defer { wait?.end() }
        if let refusal = wait?.refusal { return .refused(refusal) }
        let id = state.withLock { $0.waits.nextStranger() }
        let end = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                waitForStranger(other, id, .task(continuation), isShielded: isShielded)
                wait?.lookAgain { [self] circle in
                    let waiter = state.withLock { $0.waits.endStranger(id) }
                    release(waiter, .refused(.waitsForItself(circle.map(\.displayName))))
                }
            }
        } onCancel: {
            // Where the group is cancelled it ends the wait itself, with its own cause.
            let waiter = state.withLock { state in
                state.machine.isDooming && !isShielded ? .none : state.waits.cancelStranger(id)
            }
            release(waiter, .refused(.taskCancelled))
        }
        state.withLock { $0.waits.forgetStranger(id) }
        return end
    }

    private func waitForStranger(_ other: ManagedOperation, _ id: UInt64, _ waiter: GroupWaiter, isShielded: Bool) {
        if other.isFinished { return waiter.goOn(.elsewhere) }
        var refusal: CancellationCause?
        let isDooming = state.withLock { state in
            // Cancelled, the group waits for nobody else.
            if state.machine.isDooming, !isShielded || state.machine.isOver { return true }
            let begins = state.waits.beginStranger(id, waiter, isShielded: isShielded)
            if !begins { refusal = .taskCancelled }
            return false
        }
        if isDooming { refusal = causeForChildren }
        if let refusal { return waiter.goOn(.refused(refusal)) }
        if waiter.isTask { rest() }
        other.whenEnded { [self] in release(state.withLock { $0.waits.endStranger(id) }, .elsewhere) }
    }

    /// Whether that group is this one or around it.
    private func encloses(_ other: GroupEngine) -> Bool {
        var next: GroupEngine? = self
        while let engine = next {
            if engine === other { return true }
            next = engine.state.withLock { $0.outer }
        }
        return false
    }

    /// Lets a wait end: the last one of a body as soon as the group has a place again.
    func release(_ waiter: GroupWaiter, _ end: GroupWaitEnd) {
        guard waiter.isTask else { return waiter.goOn(end) }
        let (operation, number) = state.withLock { state -> (ManagedOperation?, UInt32) in
            let isLast = state.waits.end()
            // What is cancelled only winds down.
            let needsPlace = isLast && !state.machine.isDooming
            return (needsPlace ? state.operation : nil, state.waits.rest)
        }
        guard let operation else { return waiter.goOn(end) }
        let returning = GroupReturn(waiter, end)
        let isAtOnce = operation.wake(number) { [self] in
            restAgain(operation)
            let kept = state.withLock { $0.returns.removeValue(forKey: ObjectIdentifier(returning)) }
            withExtendedLifetime(kept) { returning.goOn() }
        }
        if isAtOnce {
            restAgain(operation)
            return returning.goOn()
        }
        // Should the group be cancelled, it need not wait for a place.
        let isLate = state.withLock { state in
            if state.machine.isDooming { return true }
            if !returning.isOver { state.returns[ObjectIdentifier(returning)] = returning }
            return false
        }
        if isLate { returning.goOn() }
    }

    /// Others of the body may have begun to wait before the group got its place, for children that need that place.
    private func restAgain(_ operation: ManagedOperation) {
        if let number = state.withLock({ $0.waits.restAgain() }) { operation.rest(number, because: .children) }
    }
}

// For tests.
extension GroupEngine {
    /// Whether there is a body that has not returned.
    package var isRunningBody: Bool { state.withLock { $0.machine.hasBody } }

    /// How many children have not ended.
    package var presentCount: Int { state.withLock { $0.machine.present } }

    /// How many waits there are for operations that are no children.
    package var strangerCount: Int { state.withLock { $0.waits.strangerCount } }
}

// Bodies on a thread of their own.
extension GroupEngine {
    private static let mostInPlace = 32

    /// Runs a child and blocks the thread of the body until its end; says why not, if that could not be.
    func perform(_ child: ManagedOperation, _ terms: ChildTerms) -> GroupWaitEnd {
        let (thread, isOver) = state.withLock { ($0.bodyThread, $0.machine.isOver) }
        if isOver { return .refused(.groupRefused(GroupError(.ended, child))) }
        guard let thread, pthread_equal(thread, pthread_self()) != 0 else {
            return .refused(.groupRefused(GroupError(.wrongThread, child)))
        }
        let waiter = BlockingWaiter()
        var terms = terms
        terms.waiter = .thread(waiter)
        if let error = adopt(child, terms) {
            guard error.isAboutChild else { return .refused(.groupRefused(error)) }
            return waitOnThread(forStranger: child, waiter, isShielded: terms.isShielded)
        }
        let notes = ThreadNotes.current
        if child.runsInPlace, notes.childrenInPlace < Self.mostInPlace, takeInPlace(child) {
            notes.childrenInPlace += 1
            child.beginInGroup()
            notes.childrenInPlace -= 1
        } else {
            child.keepTaskContext()
            apply { _ in }
        }
        let wait = BodyWait.begin(for: child, until: .end)
        defer { wait?.end() }
        var refusal = wait?.refusal
        if refusal == nil {
            wait?.lookAgain { _ in waiter.wake() }
            let hasWaited = waiter.wait(for: child)
            refusal = child.isFinished ? nil : wait?.refusal
            if hasWaited, refusal == nil { return .ended }
        }
        let cause = refusal ?? .tooManyWaits
        child.cancelIfUndecided(because: cause)
        return .refused(cause)
    }

    /// Whether the calling thread runs the synchronous body of the group.
    fileprivate var isBodyOnThisThread: Bool {
        guard let thread = state.withLock({ $0.bodyThread }) else { return false }
        return pthread_equal(thread, pthread_self()) != 0
    }

    private func waitOnThread(
        forStranger other: ManagedOperation, _ waiter: BlockingWaiter, isShielded: Bool
    ) -> GroupWaitEnd {
        if let inner = other.groupEngine, inner.state.withLock({ $0.operation != nil }), encloses(inner) {
            return .refused(.groupRefused(GroupError(.cycle, other)))
        }
        let wait = BodyWait.begin(for: other, until: .end)
        defer { wait?.end() }
        if let refusal = wait?.refusal { return .refused(refusal) }
        let id = state.withLock { $0.waits.nextStranger() }
        waitForStranger(other, id, .thread(waiter), isShielded: isShielded)
        wait?.lookAgain { _ in waiter.wake() }
        guard waiter.wait(for: other) else { return .refused(.tooManyWaits) }
        if !other.isFinished, let refusal = wait?.refusal {
            _ = state.withLock { $0.waits.endStranger(id) }
            return .refused(refusal)
        }
        return other.isFinished ? .elsewhere : .refused(causeForChildren)
    }

    /// Whether just this child may begin now, on this thread.
    private func takeInPlace(_ child: ManagedOperation) -> Bool {
        state.withLock { state in
            // Under the one lock: another thread may end the child, and its place be another's.
            let slot = child.core.withLock { core in
                let mayBegin = core.parent === self && core.isReady && core.isAdmitted && !core.hasDelay
                return mayBegin ? core.parentSlot : -1
            }
            guard state.children.indices.contains(Int(slot)),
                state.children[Int(slot)].operation?.life === child.life
            else { return false }
            return state.machine.take(slot)
        }
    }
}

/// A wait that is over, and goes on as soon as there is a place: once.
final class GroupReturn: Sendable {
    private let waiter: Locked<GroupWaiter>
    private let end: GroupWaitEnd

    init(_ waiter: GroupWaiter, _ end: GroupWaitEnd) {
        self.waiter = Locked(waiter)
        self.end = end
    }

    /// Whether it went on.
    var isOver: Bool { waiter.withLock { $0.isNone } }

    func goOn() { waiter.withLock { exchange(&$0, with: .none) }.goOn(end) }
}

extension TypedOperation {
    /// Runs the operation as a child of the group whose synchronous body calls this method, and waits for its end.
    ///
    /// An async body gets a refusal, because the wait would block a thread of Swift's pool.
    ///
    /// - Returns: The outcome; `nil` if the operation is not for a group to start, or if no body of a group calls the method.
    final func outcomeInCallingBody() -> OperationOutcome<ResultType, ErrorType>? {
        let notes = ThreadNotes.current
        // The innermost body counts: that of a child may run on the thread of the group's body.
        let body = notes.bodies.last?.operation.takeUnretainedValue()
        guard let engine = (body ?? BodyTasks.operation)?.groupEngine else { return nil }
        // The closures of a group that judge or convert an outcome are not its body.
        guard body == nil ? engine.isRunningBody : engine.isBodyOnThisThread else { return nil }
        guard life.core.withLock({ $0.reasonAgainstGroup == nil }), !isHeldByQueue(isByQueue: false) else { return nil }
        guard body != nil else { return .cancelled(.groupRefused(.blocksTask(self))) }
        let isShielded = notes.shields.contains(ObjectIdentifier(engine))
        return outcome(after: engine.perform(self, ChildTerms(isShielded: isShielded)))
    }
}
