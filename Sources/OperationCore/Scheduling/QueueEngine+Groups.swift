// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// Children of groups.
extension QueueEngine {
    /// Adds children of a group, without regard to the capacity; false, and nothing happened, if the queue was shut down.
    ///
    /// They are at least that urgent. Where they `areAccepted`, they are a part of what the queue took before that. One that
    /// was ended meanwhile is left out.
    func addChildren(
        _ children: [ManagedOperation], level: QueueLevel, areAwaited: Bool, areAccepted: Bool
    ) -> Bool {
        let isTaken = state.withLock { state in
            if state.isClosed, !areAccepted { return false }
            state.reserved += children.count
            return true
        }
        guard isTaken else { return false }
        var missing = 0
        var claimed = children
        claimed.removeAll { child in
            let isClaimed = child.core.withLock { core in
                guard core.host == nil, !core.machine.isFinished, !core.isStartUnderWay, !core.machine.isStarted else {
                    return false
                }
                core.host = self
                core.slot = -1
                core.raisedLevel = max(core.raisedLevel, level)
                if areAwaited { core.isAwaited = true }
                return true
            }
            if !isClaimed { missing += 1 }
            return !isClaimed
        }
        if missing > 0 { giveBackPlaces(missing) }
        enterClaimed(claimed)
        return true
    }
}
