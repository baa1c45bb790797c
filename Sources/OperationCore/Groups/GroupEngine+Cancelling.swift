// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// Cancels children with their group. First, all groups inside that have not begun are marked as canceled. Then, the
// children are ended from the bottom up, so that a group that ends immediately ends after its children. The code visits
// each child only once, because a large tree does not fit into the caches of the processor.
extension GroupEngine {
    /// A group that has to cancel its children.
    struct ChildCancellation {
        let engine: GroupEngine
        let place: GroupPlace
        let cause: CancellationCause
        /// The slots of the children to cancel.
        let slots: [GroupMachine.Slot]
        /// The children that are groups.
        let groups: [ManagedOperation]
    }

    /// The number of children that are ended together.
    private static let portion = 64

    /// Cancels the children that end with the group, and ends those that no queue will end.
    func cancelChildren(_ slots: [GroupMachine.Slot]) {
        let cause = causeForChildren
        let place = keepPlace(nil)
        let inside = state.withLock { $0.toCancel(at: slots[...], onlyGroups: true) }
        var cancellations = [ChildCancellation(engine: self, place: place, cause: cause, slots: slots, groups: inside)]
        var groups = cancellations[0].groups.map { (operation: $0, outer: 0) }
        while let (child, outer) = groups.popLast() {
            let inner = child.groupEngine?.cancelBeforeStart(
                child.name, in: cancellations[outer].place, because: cancellations[outer].cause)
            guard let inner else { continue }
            groups += inner.groups.map { ($0, cancellations.count) }
            cancellations.append(inner)
        }
        while let cancellation = cancellations.popLast() { cancellation.engine.finish(cancellation) }
    }

    /// Cancels a group that has not begun, or returns `nil` if it has begun.
    private func cancelBeforeStart(_ name: String?, in outer: GroupPlace, because cause: CancellationCause)
        -> ChildCancellation?
    {
        state.withLock { state in
            guard state.operation == nil, state.machine.phase == .collecting, state.machine.cancel() else { return nil }
            let place = state.place ?? GroupPlace(name, in: outer)
            let ownCause = CancellationCause.groupCancelled(place, because: cause)
            state.place = place
            state.ownCause = cause
            state.silence()
            state.cancellationCauseOfChildren = ownCause
            let slots = state.takeSlotsToCancel()
            let groups = state.toCancel(at: slots[...], onlyGroups: true)
            return ChildCancellation(engine: self, place: place, cause: ownCause, slots: slots, groups: groups)
        }
    }

    /// Ends children after everything inside them was canceled.
    private func finish(_ cancellation: ChildCancellation) {
        var left: [ManagedOperation] = []
        for start in stride(from: 0, to: cancellation.slots.count, by: Self.portion) {
            let slots = cancellation.slots[start..<min(start + Self.portion, cancellation.slots.count)]
            left += endBeforeStart(state.withLock { $0.toCancel(at: slots) }, because: cancellation.cause)
        }
        // A child that runs makes room in the queue when it ends, so it is canceled after the children that wait there.
        let hasBegun = left.map(\.isExecuting)
        let order = left.indices.filter { !hasBegun[$0] } + left.indices.filter { hasBegun[$0] }
        for child in order.lazy.map({ left[$0] }) {
            child.cancelIfUndecided(because: cancellation.cause)
            child.beginInGroup()
        }
        // One of these may have been the last child.
        apply { _ in }
    }

    /// Ends children in one step if possible, and returns those that need all steps.
    private func endBeforeStart(
        _ children: [ManagedOperation], because cause: CancellationCause
    ) -> [ManagedOperation] {
        var left = children
        // Most children are in one queue, or in none.
        for _ in 0..<2 {
            guard let host = left.first.map({ $0.core.withLock { $0.hostEngine } }) else { break }
            let ended =
                host?.endBeforeStart(&left, of: self, because: cause)
                ?? state.withLock { _ in left.takeEnded { $0.endBeforeStart(in: self, heldBy: nil, because: cause) } }
            reportEnds(ended)
            host?.forgetEndedBeforeStart(ended)
            leave(ended)
        }
        return left
    }

    private func reportEnds(_ ended: [ManagedOperation.EndedChild]) {
        let inherited = OperationDefaults.mayInherit ? callbackQueue(ofChildrenIn: nil) : nil
        for child in ended {
            if let inherited { child.operation.setCallbackQueue(inherited, as: .inherited) }
            child.operation.releaseBody()
            child.operation.signalEndBeforeStart()
            if child.tag >= 0 { source?.take(child.operation, tag: child.tag) }
        }
    }

    /// Removes children from the group after all others were notified of their end.
    private func leave(_ ended: [ManagedOperation.EndedChild]) {
        if ended.isEmpty { return }
        let (waiters, hooks, isMeasuring) = state.withLock { state in
            var waiters: [GroupWaiter] = []
            var hooks: [RecoveryHook] = []
            for child in ended {
                let slot = child.slot
                _ = state.machine.ended(slot, .cancelled)
                state.meter.end(slot)
                // The caller keeps the operation, so that it is not freed under the lock.
                let entry = exchange(&state.children[Int(slot)], with: Child())
                if let hook = state.recoveries?.own.removeValue(forKey: slot) { hooks.append(hook) }
                if !entry.waiter.isNone { waiters.append(entry.waiter) }
            }
            return (waiters, hooks, state.meter.isOn)
        }
        withExtendedLifetime(hooks) {}
        if isMeasuring { reportProgress() }
        for waiter in waiters { release(waiter, .ended) }
    }
}

extension GroupEngine.State {
    /// Takes out the slots of the children to cancel, which the caller must then cancel.
    mutating func takeSlotsToCancel() -> [GroupMachine.Slot] {
        meter.freeze()
        return machine.takeChildrenToCancel()
    }

    /// Returns the children that are still in these slots, without shielded ones that got a slot in the meantime.
    ///
    /// The other children are not touched if only groups are wanted.
    fileprivate func toCancel(
        at slots: ArraySlice<GroupMachine.Slot>, onlyGroups: Bool = false
    ) -> [ManagedOperation] {
        // If all children have ended in the meantime, there is no slot left.
        slots.compactMap { slot in
            guard children.indices.contains(Int(slot)), !machine.isShielded(slot),
                !onlyGroups || children[Int(slot)].isGroup
            else { return nil }
            return children[Int(slot)].operation
        }
    }
}

extension ManagedOperation {
    /// Whether a group around the operation is canceling its children, and will reach this operation.
    package final var isCancelledByGroup: Bool {
        var next: ManagedOperation? = self
        while let operation = next {
            let (parent, slot) = operation.core.withLock { ($0.parentEngine, $0.parentSlot) }
            guard let parent else { return false }
            let (isShielded, isCancellingChildren, group) = parent.state.withLock { state in
                let isShielded = state.children.indices.contains(Int(slot)) && state.machine.isShielded(slot)
                return (isShielded, state.machine.isCancellingChildren, state.operation)
            }
            if isShielded { return false }
            if isCancellingChildren { return true }
            next = group
        }
        return false
    }
}
