// Part of OperationKit, released under the MIT license.
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
    }

    /// The number of children that are ended together.
    private static let portion = 64

    /// Cancels the children that end with the group, and ends those that no queue will end.
    func cancelChildren(_ slots: [GroupMachine.Slot]) {
        let cause = causeForChildren
        let place = keepPlace(nil)
        var cancellations = [ChildCancellation(engine: self, place: place, cause: cause, slots: slots)]
        var groups = state.withLock { $0.groupsToCancel(at: slots) }.map { (operation: $0, outer: 0) }
        while let (child, outer) = groups.popLast() {
            let inner = child.groupEngine?.cancelBeforeStart(
                child.name, in: cancellations[outer].place, because: cancellations[outer].cause)
            guard let inner else { continue }
            groups += inner.groups.map { ($0, cancellations.count) }
            cancellations.append(inner.cancellation)
        }
        while let cancellation = cancellations.popLast() { cancellation.engine.finish(cancellation) }
    }

    /// Cancels a group that has not begun, and returns the groups in it, or `nil` if the group has begun.
    private func cancelBeforeStart(
        _ name: String?, in outer: GroupPlace, because cause: CancellationCause
    ) -> (cancellation: ChildCancellation, groups: [ManagedOperation])? {
        state.withLock { state in
            guard state.operation == nil, state.machine.phase == .collecting, state.machine.cancel() else { return nil }
            let place = state.place ?? GroupPlace(name, in: outer)
            let ownCause = CancellationCause.groupCancelled(place, because: cause)
            state.place = place
            state.ownCause = cause
            state.silence()
            state.cancellationCauseOfChildren = ownCause
            let slots = state.takeSlotsToCancel()
            let cancellation = ChildCancellation(engine: self, place: place, cause: ownCause, slots: slots)
            return (cancellation, state.groupsToCancel(at: slots))
        }
    }

    /// Ends children after everything inside them was canceled.
    private func finish(_ cancellation: ChildCancellation) {
        // A group keeps its children for its result, which a canceled group does not make. Without these references,
        // most children are freed as they leave the group.
        let isCancelled = state.withLock { $0.machine.phase == .cancellingChildren(.cancelled) }
        if isCancelled { work.release { exchange(&$0.conclude, with: nil) } }
        var left: [ManagedOperation] = []
        for start in stride(from: 0, to: cancellation.slots.count, by: Self.portion) {
            let slots = cancellation.slots[start..<min(start + Self.portion, cancellation.slots.count)]
            left += endBeforeStart(slots, because: cancellation.cause)
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
        _ slots: ArraySlice<GroupMachine.Slot>, because cause: CancellationCause
    ) -> [ManagedOperation] {
        // Most children are in one queue, or in none.
        var (ended, left) = state.withLock { $0.endBeforeStart(at: slots, in: self, because: cause) }
        leave(&ended)
        guard let host = left.first.flatMap({ $0.core.withLock { $0.hostEngine } }) else { return left }
        ended = host.endBeforeStart(&left, of: self, because: cause)
        // `ended` has references to the children, so these are not the last ones.
        state.withLock { state in for child in ended { state.children[Int(child.slot)].operation = nil } }
        leave(&ended, queue: host)
        return left
    }

    /// Notifies the others of the end of children, and then gives up their reservations and removes them from the group.
    private func leave(_ ended: inout [ManagedOperation.EndedChild], queue: QueueEngine? = nil) {
        if ended.isEmpty { return }
        let inherited = OperationDefaults.mayInherit ? callbackQueue(ofChildrenIn: nil) : nil
        for child in ended {
            if let inherited { child.operation.setCallbackQueue(inherited, as: .inherited) }
            child.operation.releaseBody()
            child.operation.signalEndBeforeStart()
            if child.tag >= 0 { source?.take(child.operation, tag: child.tag) }
        }
        queue?.releaseReservations(ended.count)
        let (waiters, hooks, isMeasuring) = state.withLock { state in
            var waiters: [GroupWaiter] = []
            var hooks: [RecoveryHook] = []
            for child in ended {
                let slot = child.slot
                _ = state.machine.ended(slot, .cancelled)
                state.meter.end(slot)
                let waiter = exchange(&state.children[Int(slot)].waiter, with: .none)
                if !waiter.isNone { waiters.append(waiter) }
                if let hook = state.recoveries?.own.removeValue(forKey: slot) { hooks.append(hook) }
            }
            return (waiters, hooks, state.meter.isOn)
        }
        extendLifetime(hooks)
        if isMeasuring { reportProgress() }
        for waiter in waiters { release(waiter, .ended) }
        // The memory of operations that were created one after another is freed much faster in the reverse order.
        while ended.popLast() != nil {}
    }
}

extension GroupEngine.State {
    /// Takes out the slots of the children to cancel, which the caller must then cancel.
    mutating func takeSlotsToCancel() -> [GroupMachine.Slot] {
        meter.freeze()
        return machine.takeChildrenToCancel()
    }

    /// Returns the groups that are still in these slots, without shielded ones that got a slot in the meantime.
    ///
    /// The other children are not touched.
    fileprivate func groupsToCancel(at slots: [GroupMachine.Slot]) -> [ManagedOperation] {
        slots.compactMap { isToCancel($0) && children[Int($0)].isGroup ? children[Int($0)].operation : nil }
    }

    /// Ends the children in these slots that no queue holds and that can be ended in one step, and returns the others.
    ///
    /// The children keep their slots, so that the group does not end before the others were notified.
    fileprivate mutating func endBeforeStart(
        at slots: ArraySlice<GroupMachine.Slot>, in engine: GroupEngine, because cause: CancellationCause
    ) -> (ended: [ManagedOperation.EndedChild], left: [ManagedOperation]) {
        var (ended, left): ([ManagedOperation.EndedChild], [ManagedOperation]) = ([], [])
        for slot in slots where isToCancel(slot) {
            guard let child = children[Int(slot)].operation else { continue }
            if let over = child.endBeforeStart(in: engine, heldBy: nil, because: cause) {
                if ended.isEmpty { ended.reserveCapacity(slots.count) }
                // This reference is not the last one, so the child is not freed under the lock.
                children[Int(slot)].operation = nil
                ended.append(over)
            } else {
                left.append(child)
            }
        }
        return (ended, left)
    }

    /// Whether the slot still belongs to a child that is not shielded.
    private func isToCancel(_ slot: GroupMachine.Slot) -> Bool {
        // If all children have ended in the meantime, there is no slot left.
        children.indices.contains(Int(slot)) && !machine.isShielded(slot)
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
                (state.isShielded(slot), state.machine.isCancellingChildren, state.operation)
            }
            if isShielded { return false }
            if isCancellingChildren { return true }
            next = group
        }
        return false
    }
}
