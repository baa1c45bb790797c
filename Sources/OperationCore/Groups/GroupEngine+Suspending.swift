// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// A group that is put on hold.
extension GroupEngine {
    /// Begins no child, and puts those on hold that can be; or lets all go on.
    func setSuspended(_ isSuspended: Bool) {
        var waiters: [GroupWaiter] = []
        var active: [ManagedOperation] = []
        apply { state in
            state.machine.setSuspended(isSuspended)
            if !isSuspended { waiters = state.waits.takeHeld() }
            active = state.activeChildren
        }
        if let reader = state.withLock({ $0.reader }) {
            // Another thread may change that meanwhile, so the latest state is applied.
            applyLatest({ state.withLock { $0.machine.isSuspended } }, reader.setSuspended)
        }
        // In a loop and not in a recursion: each group beneath follows after this one.
        let children = active
        ThreadWorklist.perform { self.suspendChildren(children) }
        for waiter in waiters { release(waiter, .ended) }
    }

    /// Brings children into line with the group, as it is now.
    func suspendChildren(_ children: [ManagedOperation]) {
        // Another thread may change that meanwhile, so the latest state is applied.
        applyLatest({ state.withLock { $0.machine.isSuspended && !$0.machine.isDooming } }) { isSuspended in
            suspend(children, isSuspended)
        }
    }

    private func suspend(_ children: [ManagedOperation], _ isSuspended: Bool) {
        for child in children {
            let host = child.core.withLock { core -> QueueEngine? in
                guard core.parent === self, core.isHeldByGroup != isSuspended else { return nil }
                core.isHeldByGroup = isSuspended
                return core.host
            }
            host?.reconsider(child)
            if isSuspended { child.suspendExecution() } else { child.resumeExecution() }
        }
    }
}
