// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension ManagedOperation {
    /// Calls `action` once the operation ended, at once if it has; returns what ``removeEndAction(_:)`` takes back.
    ///
    /// It must be short and is called outside every lock.
    @discardableResult
    package final func whenEnded(_ action: @escaping @Sendable () -> Void) -> UInt64? {
        let id = core.withLock { core -> UInt64? in
            if core.machine.isFinished { return nil }
            let extras = core.need()
            extras.lastObserverID += 1
            extras.endActions.append(action, id: extras.lastObserverID)
            return extras.lastObserverID
        }
        if id == nil { action() }
        return id
    }

    /// Takes an action back that was to be called when the operation ended, unless it is being called.
    package final func removeEndAction(_ id: UInt64) {
        let removed = core.withLock { $0.extras?.endActions.remove(id) }
        withExtendedLifetime(removed) {}
    }

    /// How many actions are stored that wait for the end.
    package final var endActionCount: Int { core.withLock { $0.extras?.endActions.storedCount ?? 0 } }
}
