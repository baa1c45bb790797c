// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What is to be called when an operation ended, in the order of coming; each can be taken back.
///
/// It holds at most twice as many as have not been taken back, however many come and go.
package struct EndActions {
    private struct Entry {
        let id: UInt64
        /// Nil once it was taken back.
        var action: (@Sendable () -> Void)?
    }

    private var entries: [Entry] = []

    package init() {}

    package var isEmpty: Bool { entries.isEmpty }

    /// How many are stored, taken back or not.
    package var storedCount: Int { entries.count }

    /// Adds an action under a number that is higher than all before.
    package mutating func add(_ id: UInt64, _ action: @escaping @Sendable () -> Void) {
        if entries.count == entries.capacity {
            entries.removeAll { $0.action == nil }
            // Room for as many again, so that the next look for such entries is as far away.
            if entries.count * 2 > entries.capacity { entries.reserveCapacity(max(entries.count * 2, 4)) }
        }
        entries.append(Entry(id: id, action: action))
    }

    /// Takes an action back and returns it, to be let go of outside the lock.
    package mutating func remove(_ id: UInt64) -> (@Sendable () -> Void)? {
        // Numbers rise, so half of what is left can be put aside each time.
        var first = 0
        var end = entries.count
        while first < end {
            let middle = (first + end) / 2
            if entries[middle].id < id { first = middle + 1 } else { end = middle }
        }
        guard first < entries.count, entries[first].id == id else { return nil }
        return exchange(&entries[first].action, with: nil)
    }

    /// Takes all out.
    package mutating func takeAll() -> [@Sendable () -> Void] {
        exchange(&entries, with: []).compactMap(\.action)
    }
}

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
            extras.endActions.add(extras.lastObserverID, action)
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
