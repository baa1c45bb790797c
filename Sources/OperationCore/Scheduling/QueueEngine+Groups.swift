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

    /// Ends children of a group that have not begun, and that can be ended in one step; the others stay in `children`.
    ///
    /// They are not forgotten before `forgetUnbegun`.
    func endUnbegun(
        _ children: inout [ManagedOperation], of group: GroupEngine, because cause: CancellationCause
    ) -> [GroupEngine.EndedChild] {
        // A recording asks for what each of them depended on, and when.
        if recording.isRecording { return [] }
        var ended: [GroupEngine.EndedChild] = []
        var left: [ManagedOperation] = []
        inPortions(children) { portion, state, _ in
            for child in portion {
                if let seat = endUnbegun(child, of: group, because: cause, &state) {
                    ended.append(GroupEngine.EndedChild(operation: child, seat: seat))
                } else {
                    left.append(child)
                }
            }
        }
        children = left
        return ended
    }

    private func endUnbegun(
        _ child: ManagedOperation, of group: GroupEngine, because cause: CancellationCause, _ state: inout State
    ) -> ManagedOperation.GroupSeat? {
        guard let slot = child.slot(in: self) else { return nil }
        switch state.machine.entries[Int(slot)].stage {
        case .waiting, .held, .ready: break
        case .free, .entering, .dealt, .running, .ending: return nil
        }
        guard let seat = child.endUnbegun(in: group, heldBy: self, because: cause) else { return nil }
        state.machine.place(slot, .ending)
        return seat
    }

    /// Forgets entries that `endUnbegun` ended.
    func forgetUnbegun(_ slots: [QueueMachine.Slot]) {
        inPortions(slots) { portion, state, after in
            for slot in portion { end(slot, .cancelled, &state, &after) }
        }
    }

    /// So that the threads of the queue need not wait for all of it.
    private func inPortions<Item>(_ items: [Item], _ work: (ArraySlice<Item>, inout State, inout After) -> Void) {
        var rest = items[...]
        while !rest.isEmpty {
            let portion = rest.prefix(64)
            rest = rest.dropFirst(64)
            applySettled { state, after in work(portion, &state, &after) }
        }
    }
}

// Those who wait until a queue that is full has room for them.
extension QueueEngine {
    /// Adds by `add` as soon as there is room; `add` is told whether so many places were kept, which are gone after it.
    func whenThereIsRoom<Added>(
        for count: Int, toAdd what: @autoclosure () -> String, _ add: (_ hasPlaces: Bool) throws(QueueError) -> Added
    ) async throws(QueueError) -> Added {
        var hasPlaces = false
        while true {
            do throws(QueueError) {
                return try add(hasPlaces)
            } catch {
                // More than it may ever have at once will not get in by waiting.
                guard error.code == .full, count <= state.withLock({ $0.capacity }) else { throw error }
            }
            hasPlaces = await QueueWait.run(places: count) { wait in waitForRoom(wait) }
            if Task.isCancelled {
                // Even if there were none: what was put aside for this one is the next one's.
                giveBackPlaces(hasPlaces ? count : 0)
                throw .cancelled(what(), queue: name)
            }
        }
    }

    /// Ends the wait when there is room, which is kept for who waited.
    private func waitForRoom(_ wait: QueueWait) {
        apply { state, _ in state.roomWaiters.append(wait) }
    }

    /// Lets those go on for whom there is room, in their order.
    ///
    /// Where there is less than the first of them needs, it is put aside for that one, so that others who need less do
    /// not keep it waiting for ever.
    func giveRoom(_ state: inout State, _ after: inout After) {
        while let wait = state.roomWaiters.first() {
            if !state.isClosed {
                guard wait.places <= state.capacity else {
                    state.roomWaiters.popFirst()
                    after.need().told.append { wait.end(isByEvent: false) }
                    continue
                }
                let free = state.capacity - state.machine.live - state.reserved - state.gathered
                state.gathered += max(min(free, wait.places - state.gathered), 0)
                guard state.gathered >= wait.places else { return }
            }
            state.roomWaiters.popFirst()
            state.gathered -= min(state.gathered, wait.places)
            state.reserved += wait.places
            after.need().roomy.append(wait)
        }
        state.gathered = 0
    }

    /// How many wait for room, or did until their task was cancelled.
    package var roomWaiterCount: Int { state.withLock { $0.roomWaiters.count } }
}
