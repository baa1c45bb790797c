// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// The short way for the many that are cancelled before they begin, and of which nobody is told but their group.
extension ManagedOperation {
    /// Where a child stood that was ended.
    struct GroupSeat {
        var slot: GroupMachine.Slot
        var tag: Int32
        /// Its place in the queue that held it.
        var queueSlot: QueueMachine.Slot
    }

    /// Cancels and ends, in one step, a child that has not begun, that depends on nothing and on which nothing depends,
    /// and that has no handlers; nil, and nothing happened, otherwise.
    ///
    /// To be called under the lock of the queue that holds it, or of the group where no queue does. What follows is for
    /// the caller: `tellEndOfUnbegun`, then the queue, then the group.
    final func endUnbegun(
        in parent: GroupEngine, heldBy host: QueueEngine?, because cause: CancellationCause
    ) -> GroupSeat? {
        guard Self.canEndInOneStep else { return nil }
        return core.withLock { core in
            guard core.parent === parent, core.host === host, !core.hasHandlers, core.extras == nil, core.node == nil,
                core.membership == nil, !core.wasAskedForReadiness,
                // One that stands in for another is not the group's alone.
                core.parentTag != GroupRescue.tag, core.machine.cancelAndEnd()
            else { return nil }
            core.cause = cause
            // Neither is the last that holds it: the caller does.
            core.parent = nil
            core.host = nil
            return GroupSeat(slot: core.parentSlot, tag: core.parentTag, queueSlot: core.slot)
        }
    }

    /// Lets go of the body, and tells Foundation.
    final func tellEndOfUnbegun() {
        releaseBody()
        signalEndOfUnbegun()
    }
}
