// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// Cancels children with their group: many in few steps, level by level. Children that have not begun are ended from the
// bottom up, so that a group that ends immediately ends after its children.
extension GroupEngine {
    /// The children that one group has to cancel.
    struct Doom {
        let engine: GroupEngine
        let place: GroupPlace
        let cause: CancellationCause
        /// Children that were ended in one step, and whose end was not reported yet.
        var ended: [ManagedOperation.EndedChild] = []
        var groups: [ManagedOperation] = []
        /// Children that need all steps, or that a queue holds.
        var others: [ManagedOperation] = []
    }

    /// Cancels the children that end with the group, and ends those that no queue will end.
    func doom(_ children: [ManagedOperation]) {
        let cause = causeForChildren
        let place = keepPlace(nil)
        carryOut(state.withLock { _ in Doom(children, of: self, place, cause) })
    }

    private func carryOut(_ first: Doom) {
        var dooms = [first]
        var next = 0
        while next < dooms.count {
            for child in dooms[next].groups {
                let doom = dooms[next]
                if let beneath = child.groupEngine?.doomUnbegun(child.name, in: doom.place, because: doom.cause) {
                    dooms.append(beneath)
                }
            }
            next += 1
        }
        while let doom = dooms.popLast() { doom.engine.finish(doom) }
    }

    /// Dooms a group that has not begun, and returns its children to cancel, or `nil` if it has begun.
    private func doomUnbegun(_ name: String?, in outer: GroupPlace, because cause: CancellationCause) -> Doom? {
        state.withLock { state in
            guard state.operation == nil, state.machine.phase == .collecting, state.machine.cancel() else { return nil }
            let place = state.place ?? GroupPlace(name, in: outer)
            let ownCause = CancellationCause.groupCancelled(place, because: cause)
            state.place = place
            state.ownCause = cause
            state.silence()
            state.doomCause = ownCause
            let slots = state.takeDoomedSlots()
            return Doom(slots.compactMap { state.children[Int($0)].operation }, of: self, place, ownCause)
        }
    }

    /// Ends children after everything inside them was canceled.
    private func finish(_ doom: Doom) {
        settle(doom.ended)
        endGroups(doom)
        endHeld(doom.others, because: doom.cause)
        // One of these may have been the last child.
        apply { _ in }
    }

    private func endGroups(_ doom: Doom) {
        if doom.groups.isEmpty { return }
        var left: [ManagedOperation] = []
        let over = doom.groups.filter { child in
            let isOver = child.groupEngine?.state.withLock { $0.machine.isOver } ?? true
            if !isOver { left.append(child) }
            return isOver
        }
        let ended = state.withLock { _ in
            over.compactMap { child in
                let ended = child.endUnbegun(in: self, heldBy: nil, because: doom.cause)
                if ended == nil { left.append(child) }
                return ended
            }
        }
        settle(ended)
        endHeld(left, because: doom.cause)
    }

    /// Ends children, together if they are next to each other and in the same queue.
    private func endHeld(_ children: [ManagedOperation], because cause: CancellationCause) {
        var rest = children[...]
        while let first = rest.first {
            let host = first.core.withLock { $0.hostEngine }
            let run = rest.prefix { child in child.core.withLock { $0.host } === host }
            // A queue may have taken in or released the first child in the meantime. That child is handled alone.
            let count = max(run.count, 1)
            var left = Array(rest.prefix(count))
            rest = rest.dropFirst(count)
            if let host {
                let ended = host.endUnbegun(&left, of: self, because: cause)
                tellEnds(ended)
                host.forgetUnbegun(ended.map(\.queueSlot))
                leave(ended)
            }
            for child in left {
                child.cancelIfUndecided(because: cause)
                child.beginInGroup()
            }
        }
    }

    private func settle(_ ended: [ManagedOperation.EndedChild]) {
        tellEnds(ended)
        leave(ended)
    }

    private func tellEnds(_ ended: [ManagedOperation.EndedChild]) {
        let inherited = OperationDefaults.mayInherit ? callbackQueue(ofChildrenIn: nil) : nil
        for child in ended {
            if let inherited { child.operation.setCallbackQueue(inherited, as: .inherited) }
            child.operation.releaseBody()
            child.operation.signalEndOfUnbegun()
            if child.tag >= 0 { source?.take(child.operation, tag: child.tag) }
        }
    }

    /// Removes children from the group after all others were notified of their end.
    private func leave(_ ended: [ManagedOperation.EndedChild]) {
        if ended.isEmpty { return }
        let (waiters, released, isMeasuring) = state.withLock { state in
            var waiters: [GroupWaiter] = []
            var released: [(ManagedOperation?, RecoveryHook?)] = []
            released.reserveCapacity(ended.count)
            for child in ended {
                let slot = child.slot
                _ = state.machine.ended(slot, .cancelled)
                state.meter.end(slot)
                let entry = exchange(&state.children[Int(slot)], with: Child())
                released.append((entry.operation, state.recoveries?.own.removeValue(forKey: slot)))
                if !entry.waiter.isNone { waiters.append(entry.waiter) }
            }
            return (waiters, released, state.meter.isOn)
        }
        withExtendedLifetime(released) {}
        if isMeasuring { tellProgress() }
        for waiter in waiters { release(waiter, .ended) }
    }
}

extension GroupEngine.Doom {
    /// Ends the children that can be ended in one step, under the lock of the group.
    fileprivate init(
        _ children: [ManagedOperation], of engine: GroupEngine, _ place: GroupPlace, _ cause: CancellationCause
    ) {
        self.init(engine: engine, place: place, cause: cause)
        for child in children {
            if child.groupEngine != nil {
                groups.append(child)
            } else if let over = child.endUnbegun(in: engine, heldBy: nil, because: cause) {
                ended.append(over)
            } else {
                others.append(child)
            }
        }
    }
}

extension GroupEngine.State {
    /// Takes out the slots of the children to cancel, which the caller must then cancel.
    mutating func takeDoomedSlots() -> [GroupMachine.Slot] {
        meter.freeze()
        return machine.takeDoomed()
    }
}

extension ManagedOperation {
    /// Whether a group around the operation is canceling its children, and will reach this operation.
    package final var isDoomed: Bool {
        var next: ManagedOperation? = self
        while let operation = next {
            let (parent, slot) = operation.core.withLock { ($0.parentEngine, $0.parentSlot) }
            guard let parent else { return false }
            let (isShielded, isDooming, group) = parent.state.withLock { state in
                let isShielded = state.children.indices.contains(Int(slot)) && state.machine.isShielded(slot)
                return (isShielded, state.machine.isDooming, state.operation)
            }
            if isShielded { return false }
            if isDooming { return true }
            next = group
        }
        return false
    }
}
