// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

// Bodies that wait for children.
extension GroupEngine {
    /// Runs a child and waits for its end without a thread, or returns the reason why that is not possible.
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
        if case .elsewhere = end { return await awaitExternal(child, isShielded: terms.isShielded) }
        return end
    }

    private func begin(_ child: ManagedOperation, _ terms: ChildTerms) -> BodyWait? {
        if let error = adopt(child, terms) {
            terms.waiter.resume(error.isAboutChild ? .elsewhere : .refused(.groupRefused(error)))
            return nil
        }
        rest()
        apply { _ in }
        cancelIfEndless(child)
        return recordWait(for: child)
    }

    /// Notes that the body of another operation waits for a child, and cancels the child if the wait cannot end.
    ///
    /// The body of this group needs no note, because the group waits for each child.
    private func recordWait(for child: ManagedOperation) -> BodyWait? {
        guard let body = BodyTasks.operation, body.groupEngine !== self,
            let wait = BodyWait.beginInTask(for: child, until: .end)
        else { return nil }
        if let refusal = wait.refusal { refuse(child, refusal) }
        wait.lookAgain { [self] cycle in refuse(child, .waitsForItself(cycle.map(\.displayName))) }
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

    /// Cancels a child that can begin only after this group or a group around it has ended.
    func cancelIfEndless(_ child: ManagedOperation) {
        let child = child.life
        guard !child.core.withLock({ $0.isReady }), hasDependents, let cycle = BodyWaitCycleSearch.cycle(of: child)
        else { return }
        refuse(child, .waitsForItself(cycle.map(\.displayName)))
    }

    /// Cancels the children that can begin only after this group or a group around it has ended.
    ///
    /// Each search begins at the group, because a search for each child would take too long in a large group.
    func cancelEndlessChildren(of group: ManagedOperation) {
        let children = state.withLock { $0.children.compactMap(\.operation) }
        let waiting = children.filter { child in child.core.withLock { !$0.isReady } }
        // The groups around this one may be many, so they are visited only if a child waits.
        guard !waiting.isEmpty, hasDependents else { return }
        // A search that begins at the group finds no child of a group that needs only some of its children.
        var searchesEach = neededChildren(atMost: 0) == nil
        let most = BodyWaitCycleSearch.manyOperations
        while !searchesEach, let cycle = BodyWaitCycleSearch.cycle(of: group, visiting: most) {
            // The last child in the cycle is the one that waits for the group. Others may only wait for this child.
            let child = cycle.last { operation in
                operation.core.withLock { $0.parent === self && !$0.isReady && $0.machine.ending == nil }
            }
            if let child { refuse(child, .waitsForItself(cycle.map(\.displayName))) }
            // The cycle may lead through a child of a group in this one, which hides other cycles.
            searchesEach = child == nil
        }
        if searchesEach { for child in waiting { cancelIfEndless(child) } }
    }

    /// Whether operations depend on this group or on a group around it, which is rare.
    private var hasDependents: Bool {
        var next: GroupEngine? = self
        while let engine = next {
            let (operation, outer) = engine.state.withLock { ($0.operation, $0.outer) }
            if operation?.nodeIfAny?.hasLiveDownstream == true { return true }
            next = outer
        }
        return false
    }

    /// Gives up the slot of the group while a task of its body waits.
    private func rest() {
        let (operation, number) = state.withLock { ($0.operation, $0.waits.takeNewRest()) }
        if let number { operation?.rest(number, because: .children) }
    }

    /// Reacts to the cancellation of a waiting task, by the group or by code in the body.
    private func taskWasCancelled(_ child: ManagedOperation, isShielded: Bool) {
        let isCancellingChildren = state.withLock { $0.machine.isCancellingChildren }
        // The group itself cancels its children, except shielded ones. The group does not cancel other operations.
        if isCancellingChildren, !isShielded { return }
        let (slot, isOurs, isFree) = child.core.withLock { core in
            let isFree = core.parent == nil && core.host == nil && !core.machine.isStartUnderWay
            return (core.parentSlot, core.parent === self, isFree)
        }
        giveUp(child, at: slot)?.cancelIfUndecided(because: .taskCancelled)
        guard isOurs || isFree && !child.isHeldByQueue(isByQueue: false) else { return }
        child.cancelIfUndecided(because: .taskCancelled)
    }

    /// Waits for the end of an operation that is not a child.
    private func awaitExternal(_ other: ManagedOperation, isShielded: Bool) async -> GroupWaitEnd {
        if let inner = other.groupEngine, inner.state.withLock({ $0.operation != nil }), encloses(inner) {
            return .refused(.groupRefused(OperationSetupError(.cycle, other)))
        }
        let wait = BodyWait.beginInTask(for: other, until: .end)
        defer { wait?.end() }
        if let refusal = wait?.refusal { return .refused(refusal) }
        let id = state.withLock { $0.waits.nextExternalWait() }
        var action: UInt64?
        let end = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                action = waitForExternal(other, id, .task(continuation), isShielded: isShielded)
                wait?.lookAgain { [self] cycle in
                    let waiter = state.withLock { $0.waits.endExternalWait(id) }
                    release(waiter, .refused(.waitsForItself(cycle.map(\.displayName))))
                }
            }
        } onCancel: {
            // If the group is canceled, it ends the wait itself, with its own cause.
            let waiter = state.withLock { state in
                state.machine.isCancellingChildren && !isShielded ? .none : state.waits.cancelExternalWait(id)
            }
            release(waiter, .refused(.taskCancelled))
        }
        state.withLock { $0.waits.forgetExternalWait(id) }
        if let action { other.removeEndAction(action) }
        return end
    }

    /// Begins a wait, and returns the number of the action that ends it with the operation, if it was added.
    private func waitForExternal(
        _ other: ManagedOperation, _ id: UInt64, _ waiter: GroupWaiter, isShielded: Bool
    ) -> UInt64? {
        if other.isFinished {
            waiter.resume(.elsewhere)
            return nil
        }
        var refusal: CancellationCause?
        let isCancellingChildren = state.withLock { state in
            // A canceled group waits for no other operation.
            if state.machine.isCancellingChildren, !isShielded || state.machine.isOver { return true }
            let begins = state.waits.beginExternalWait(id, waiter, isShielded: isShielded)
            if !begins { refusal = .taskCancelled }
            return false
        }
        if isCancellingChildren { refusal = causeForChildren }
        if let refusal {
            waiter.resume(.refused(refusal))
            return nil
        }
        if waiter.isTask { rest() }
        return other.whenEnded { [self] in release(state.withLock { $0.waits.endExternalWait(id) }, .elsewhere) }
    }

    /// Whether the other group is this one or encloses it.
    private func encloses(_ other: GroupEngine) -> Bool {
        var next: GroupEngine? = self
        while let engine = next {
            if engine === other { return true }
            next = engine.state.withLock { $0.outer }
        }
        return false
    }

    /// Ends a wait, but the last wait of a body only when the group has a slot again.
    func release(_ waiter: GroupWaiter, _ end: GroupWaitEnd) {
        guard waiter.isTask else { return waiter.resume(end) }
        let (operation, number) = state.withLock { state -> (ManagedOperation?, UInt32) in
            let isLast = state.waits.end()
            // A canceled group only winds down, and a group whose body has returned only waits for its children.
            let needsSlot = isLast && state.machine.hasBody && !state.machine.isCancellingChildren
            return (needsSlot ? state.operation : nil, state.waits.rest)
        }
        guard let operation else { return waiter.resume(end) }
        let returning = GroupReturn(waiter, end)
        let isAtOnce = operation.wake(number) { [self] in
            restAgain(operation)
            let kept = state.withLock { $0.returns.removeValue(forKey: ObjectIdentifier(returning)) }
            withExtendedLifetime(kept) { returning.resume() }
        }
        if isAtOnce {
            restAgain(operation)
            return returning.resume()
        }
        // If the group is canceled, the wait does not need a slot.
        let isLate = state.withLock { state in
            if state.machine.isCancellingChildren { return true }
            if !returning.isOver { state.returns[ObjectIdentifier(returning)] = returning }
            return false
        }
        if isLate { returning.resume() }
    }

    /// Gives up the slot again if other tasks of the body wait for children that need it, or if the body has returned.
    private func restAgain(_ operation: ManagedOperation) {
        let number = state.withLock { state in
            state.waits.count > 0 || !state.machine.hasBody ? state.waits.nextRest() : nil
        }
        if let number { operation.rest(number, because: .children) }
    }
}

// For tests.
extension GroupEngine {
    /// Whether there is a body that has not returned.
    package var isRunningBody: Bool { state.withLock { $0.machine.hasBody } }

    /// The number of children that have not ended.
    package var presentCount: Int { state.withLock { $0.machine.present } }

    /// The number of waits for operations that are not children.
    package var externalWaitCount: Int { state.withLock { $0.waits.externalWaitCount } }
}

// Synchronous bodies.
extension GroupEngine {
    private static let mostInPlace = 32

    /// Runs a child and blocks the thread of the body until its end, or returns the reason why that is not possible.
    func perform(_ child: ManagedOperation, _ terms: ChildTerms) -> GroupWaitEnd {
        let (thread, isOver) = state.withLock { ($0.bodyThread, $0.machine.isOver) }
        if isOver { return .refused(.groupRefused(OperationSetupError(.ended, child))) }
        guard let thread, pthread_equal(thread, pthread_self()) != 0 else {
            return .refused(.groupRefused(OperationSetupError(.wrongThread, child)))
        }
        let waiter = BlockingWaiter()
        var terms = terms
        terms.waiter = .thread(waiter)
        if let error = adopt(child, terms) {
            guard error.isAboutChild else { return .refused(.groupRefused(error)) }
            return waitOnThread(forExternal: child, waiter, isShielded: terms.isShielded)
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
    var isBodyOnThisThread: Bool {
        guard let thread = state.withLock({ $0.bodyThread }) else { return false }
        return pthread_equal(thread, pthread_self()) != 0
    }

    private func waitOnThread(
        forExternal other: ManagedOperation, _ waiter: BlockingWaiter, isShielded: Bool
    ) -> GroupWaitEnd {
        if let inner = other.groupEngine, inner.state.withLock({ $0.operation != nil }), encloses(inner) {
            return .refused(.groupRefused(OperationSetupError(.cycle, other)))
        }
        let wait = BodyWait.begin(for: other, until: .end)
        defer { wait?.end() }
        if let refusal = wait?.refusal { return .refused(refusal) }
        let id = state.withLock { $0.waits.nextExternalWait() }
        let action = waitForExternal(other, id, .thread(waiter), isShielded: isShielded)
        defer {
            if let action {
                other.removeEndAction(action)
                // A wait that was refused is still stored.
                _ = state.withLock { $0.waits.endExternalWait(id) }
            }
        }
        wait?.lookAgain { _ in waiter.wake() }
        guard waiter.wait(for: other) else { return .refused(.tooManyWaits) }
        if !other.isFinished, let refusal = wait?.refusal { return .refused(refusal) }
        return other.isFinished ? .elsewhere : .refused(causeForChildren)
    }

    /// Makes this child active if it may begin now on this thread.
    private func takeInPlace(_ child: ManagedOperation) -> Bool {
        state.withLock { state in
            // Under one lock, because another thread may end the child and another child may get its slot.
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

/// A wait that is over, and continues once, as soon as there is a slot.
final class GroupReturn: Sendable {
    private let waiter: Locked<GroupWaiter>
    private let end: GroupWaitEnd

    init(_ waiter: GroupWaiter, _ end: GroupWaitEnd) {
        self.waiter = Locked(waiter)
        self.end = end
    }

    /// Whether the wait has continued.
    var isOver: Bool { waiter.withLock { $0.isNone } }

    func resume() { waiter.withLock { exchange(&$0, with: .none) }.resume(end) }
}
