// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// The children of groups.
extension QueueEngine {
    /// Adds children of a group regardless of the capacity, or returns `false` without any effect if the queue was shut
    /// down.
    ///
    /// A child that has ended in the meantime is not added.
    ///
    /// - Parameters:
    ///   - children: The children to add.
    ///   - group: The operation of the group, which has begun.
    ///   - level: The minimum urgency of the children.
    ///   - areAwaited: Whether a body that blocks a thread waits for the children.
    ///   - areAccepted: Whether the queue accepted the children before it was shut down.
    func addChildren(
        _ children: [ManagedOperation], of group: ManagedOperation, level: QueueLevel, areAwaited: Bool,
        areAccepted: Bool
    ) -> Bool {
        let isTaken = state.withLock { state in
            if state.isClosed, !areAccepted { return false }
            state.reserved += children.count
            return true
        }
        guard isTaken else { return false }
        let claimed = children.filter { child in
            child.core.withLock { core in
                guard core.host == nil, !core.machine.isFinished, !core.machine.isStartUnderWay else { return false }
                core.host = self
                core.slot = -1
                core.raisedLevel = max(core.raisedLevel, level)
                if areAwaited { core.isAwaited = true }
                return true
            }
        }
        if claimed.count < children.count { releaseReservations(children.count - claimed.count) }
        // The end of a child often makes the group add the next one.
        enterClaimed(claimed, for: group, isBorrowed: ThreadNotes.current.mayBegin)
        return true
    }

    /// Ends children of a group that have not begun and can be ended in one step, and leaves the others in `children`.
    ///
    /// Each ended child leaves a reservation, which the caller gives up when it has notified the others of the end. Until
    /// then, the queue accepts no other operations in their place, and no code that waits for the queue to drain
    /// continues. The caller passes few children at a time, so that the threads of the queue do not have to wait for all
    /// of them.
    func endBeforeStart(
        _ children: inout [ManagedOperation], of group: ParentGroup, because cause: CancellationCause
    ) -> [ManagedOperation.EndedChild] {
        applyAfterReclaiming { state, after in
            var ended: [ManagedOperation.EndedChild] = []
            // A recording needs the dependencies and times of each child, and event readers are called after the end.
            if recording.isRecording || state.machine.journal != nil { return ended }
            ended.reserveCapacity(children.count)
            children.removeAll { child in
                guard let slot = child.slot(in: self) else { return false }
                switch state.machine.entries[Int(slot)].stage {
                case .waiting, .held, .ready: break
                case .free, .entering, .assigned, .running, .ending: return false
                }
                guard let over = child.endBeforeStart(in: group, heldBy: self, because: cause) else { return false }
                state.machine.place(slot, .ending)
                // `over` has a reference to the child, so the reference in the entry is not the last one.
                state.machine.entries[Int(slot)].work = .none
                end(slot, .cancelled, &state, &after)
                ended.append(over)
                return true
            }
            state.reserved += ended.count
            return ended
        }
    }
}
