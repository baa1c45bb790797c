// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The shell of ``QueueMachine``: applies events under the queue's lock and performs what follows after it.
package final class QueueEngine: Sendable {
    struct State {
        var machine = QueueMachine()
        /// Threads that work for the queue, without those whose bodies wait.
        var workers = 0
        /// How many there may be.
        var workerLimit: Int
        /// Bodies that want to go on and wait for a slot.
        var returning = Fifo<DispatchSemaphore>()
        var totals = EndTotals()
        var drainers: [@Sendable () -> Void] = []
    }

    /// How many entries ended, and how.
    struct EndTotals {
        var finished = 0
        var failed = 0
        var cancelled = 0
    }

    let name: String
    let state: Locked<State>
    private let source: any WorkerSource

    init(name: String, width: Int?, source: any WorkerSource) {
        self.name = name
        self.source = source
        let cores = max(ProcessInfo.processInfo.activeProcessorCount, 1)
        var state = State(workerLimit: min(width ?? cores, cores))
        state.machine.width = width ?? .max
        self.state = Locked(state)
    }
}

// Coming in.
extension QueueEngine {
    func add(_ operation: ManagedOperation) throws(QueueError) {
        let (claim, isToBegin, needsWorker) = state.withLock { state -> (QueueClaim, Bool, Bool) in
            var isToBegin = false
            let slot = state.machine.enter(.operation(operation))
            let claim = operation.claim(for: self, slot)
            switch claim {
            case .refused: _ = state.machine.end(slot)
            case .waits(let level):
                state.machine.relevel(slot, level)
                state.machine.place(slot, .waiting)
            case .ready(let level):
                state.machine.relevel(slot, level)
                state.machine.place(slot, .ready)
            case .held(let level):
                state.machine.relevel(slot, level)
                isToBegin = state.machine.hold(slot)
            case .cancelled:
                state.machine.place(slot, .ending)
                isToBegin = true
            }
            return (claim, isToBegin, Self.takeWorker(&state))
        }
        if needsWorker { provideWorker() }
        if isToBegin { operation.beginHosted() }
        if case .refused(let reason) = claim { throw reason.error(operation, name) }
    }

    func add(closure: @escaping @Sendable () -> Void, level: QueueLevel, isBarrier: Bool = false) {
        let needsWorker = state.withLock { state in
            let slot = state.machine.enter(.closure(closure), level: level, isBarrier: isBarrier)
            state.machine.place(slot, .ready)
            return Self.takeWorker(&state)
        }
        if needsWorker { provideWorker() }
    }

    /// Looks again where an operation stands: something about it changed.
    func reconsider(_ operation: ManagedOperation) {
        if let seat = ThreadNotes.current.seat, seat.engine === self, seat.isConcluding {
            return seat.readied.append(operation)
        }
        let (isToBegin, needsWorker) = state.withLock { state in
            (place(operation, &state), Self.takeWorker(&state))
        }
        if needsWorker { provideWorker() }
        if isToBegin { operation.beginHosted() }
    }

    /// Brings an entry to where it belongs; returns whether the caller has to begin it, outside the lock.
    ///
    /// That is one which was cancelled, and is ended by that, or one which has to ask for its admission.
    private func place(_ operation: ManagedOperation, _ state: inout State) -> Bool {
        guard let place = operation.place(in: self) else { return false }
        let index = Int(place.slot)
        switch state.machine.entries[index].stage {
        case .waiting, .held, .ready: break
        case .free, .entering, .running, .ending: return false
        }
        state.machine.relevel(place.slot, place.level)
        switch place.standing {
        case .cancelled:
            state.machine.place(place.slot, .ending)
            return true
        case .waits: state.machine.place(place.slot, .waiting)
        case .held: return state.machine.hold(place.slot)
        case .ready: state.machine.place(place.slot, .ready)
        }
        return false
    }

    /// An operation of the queue ended.
    func didEnd(_ slot: QueueMachine.Slot, _ ending: LifecycleMachine.Ending) {
        if let seat = ThreadNotes.current.seat, seat.engine === self, seat.slot == slot, seat.isConcluding {
            seat.hasEnded = true
            seat.ending = ending
            return
        }
        let (released, after) = state.withLock { state in (end(slot, ending, &state), takeAfter(&state)) }
        withExtendedLifetime(released) {}
        perform(after)
    }

    private func end(
        _ slot: QueueMachine.Slot, _ ending: LifecycleMachine.Ending, _ state: inout State
    ) -> (QueueMachine.Work, EntryDetails?) {
        switch ending {
        case .success: state.totals.finished += 1
        case .failure: state.totals.failed += 1
        case .cancelled: state.totals.cancelled += 1
        }
        return state.machine.end(slot)
    }
}

// Threads.
extension QueueEngine {
    /// What is to be done after the lock was given back.
    struct After {
        var needsWorker = false
        var grant: DispatchSemaphore?
        /// Those that may ask for their admission now.
        var unasked: [ManagedOperation] = []
        var drainers: [@Sendable () -> Void] = []
    }

    /// Whether one more thread is needed: it is counted as working from now on.
    private static func takeWorker(_ state: inout State) -> Bool {
        guard state.workers < state.workerLimit, state.machine.canStart else { return false }
        state.workers += 1
        return true
    }

    private func takeAfter(_ state: inout State) -> After {
        var after = After()
        if let waiter = state.returning.isEmpty ? nil : grantSlot(&state) {
            after.grant = waiter
        } else {
            after.needsWorker = Self.takeWorker(&state)
        }
        after.unasked = state.machine.takeUnasked()
        if state.machine.live == 0, !state.drainers.isEmpty { after.drainers = exchange(&state.drainers, with: []) }
        return after
    }

    private func grantSlot(_ state: inout State) -> DispatchSemaphore? {
        guard state.machine.resume() else { return nil }
        state.workers += 1
        return state.returning.popFirst()
    }

    func perform(_ after: After) {
        after.grant?.signal()
        if after.needsWorker { provideWorker() }
        for operation in after.unasked { operation.beginHosted() }
        for drainer in after.drainers { drainer() }
    }

    private func provideWorker() {
        guard !source.provide(for: self) else { return }
        state.withLock { $0.workers -= 1 }
    }

    /// Works for the queue on the calling thread until nothing can begin.
    package func work() {
        let notes = ThreadNotes.current
        let seat = WorkerSeat(engine: self, outer: notes.seat)
        notes.seat = seat
        while let (slot, work) = next(for: seat) {
            seat.slot = slot
            run(work, seat)
        }
        notes.seat = seat.outer
    }

    private func run(_ work: QueueMachine.Work, _ seat: WorkerSeat) {
        switch work {
        case .none: break
        case .closure(let body):
            body()
            seat.isConcluding = true
            seat.hasEnded = true
            seat.ending = .success
        case .operation(let operation):
            seat.operation = operation
            if !operation.beginHosted() { putBack(operation, seat.slot) }
        case .foreign: break
        }
    }

    /// An operation that was ready got a dependency just before it began.
    private func putBack(_ operation: ManagedOperation, _ slot: QueueMachine.Slot) {
        let isToBegin = state.withLock { state in
            state.machine.place(slot, .waiting)
            return place(operation, &state)
        }
        if isToBegin { operation.beginHosted() }
    }

    private func next(for seat: WorkerSeat) -> (slot: QueueMachine.Slot, work: QueueMachine.Work)? {
        var released: (QueueMachine.Work, EntryDetails?)?
        var toBegin: [ManagedOperation] = []
        seat.operation = nil
        let (job, after) = state.withLock { state -> ((slot: QueueMachine.Slot, work: QueueMachine.Work)?, After) in
            if seat.hasEnded { released = end(seat.slot, seat.ending, &state) }
            for operation in seat.readied where place(operation, &state) { toBegin.append(operation) }
            let mayGoOn = state.workers <= state.workerLimit
            let job = mayGoOn && state.returning.isEmpty ? state.machine.take() : nil
            if job == nil { state.workers -= 1 }
            return (job, takeAfter(&state))
        }
        seat.slot = -1
        seat.hasEnded = false
        seat.isConcluding = false
        if !seat.readied.isEmpty { seat.readied.removeAll(keepingCapacity: seat.readied.count < 1024) }
        perform(after)
        withExtendedLifetime(released) {}
        for operation in toBegin { operation.beginHosted() }
        return job
    }
}
