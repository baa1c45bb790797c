// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
