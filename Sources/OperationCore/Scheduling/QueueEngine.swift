// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The engine of a queue, which applies events of ``QueueMachine`` under the queue's lock and performs the actions
/// later.
package final class QueueEngine: HostQueue, @unchecked Sendable {
    // Sendable: its superclass is, and its state is protected by its lock.

    struct State {
        var machine = QueueMachine()
        var threads: QueueThreads
        /// The entries that were assigned to threads in advance.
        var batches: [(batch: AssignedEntries, since: UInt64)] = []
        /// The bodies that wait for a slot to resume, in their order.
        var returning = ReturningBodies()
        var totals = (finished: 0, failed: 0, cancelled: 0)
        /// The waits for an empty queue.
        var drainWaiters = WaitList()
        var capacity = Int.max
        /// The number of reserved slots, for waiting callers that were notified and for operations that are being
        /// added.
        var reserved = 0
        /// The callers that wait for room, in their order.
        var roomWaiters = WaitList()
        /// The number of slots that are collected for the first of these callers, which needs more slots than are free.
        var gathered = 0
        /// The closures to call when no accepted operations are still to be added.
        var acceptanceWaiters: [@Sendable () -> Void] = []
        var isClosed = false
        /// Whether the grace period of the shutdown is over, so that the remaining operations are canceled.
        var isGraceOver = false
        /// The reasons for which the queue is suspended.
        var suspension = QueueSuspension()
        /// Whether the pool had no thread for the queue, and will offer one later.
        var isStarving = false
        /// The plain operations whose readiness is read regularly while they wait.
        var poll = PlainOperationPoll()
        /// The readers of the queue's events, once there is one.
        var hub: QueueEventHub?
        var meter: QueueProgressMeter?
        var failures = FailureList()
    }

    let state: Locked<State>
    let source: any WorkerSource
    let recording = RecordingSwitch()
    package let uniqueWork = UniqueWork()

    /// - Parameter leastSlots: The number of slots that are always kept. See ``EntryTable``.
    package init(
        name: String, width: Int?, source: any WorkerSource = WorkerPool.shared,
        leastSlots: Int? = nil
    ) {
        self.source = source
        var state = State(threads: QueueThreads(width: width))
        state.machine.width = width ?? .max
        if let leastSlots { state.machine.entries = EntryTable(least: leastSlots) }
        self.state = Locked(state)
        super.init(name: name)
        #if DEBUG
            LifetimeProbe.note?(self)
        #endif
    }

    deinit { endReaders() }

    // The part of the queue that its operations use.

    override func reconsider(_ operation: ManagedOperation) {
        if let worker = WorkerContext.of(.current), worker.engine === self, worker.isConcluding {
            return worker.readied.append(operation)
        }
        apply { state, after in place(operation, &state, &after) }
    }

    override func didEnd(_ slot: Int32, _ ending: LifecycleMachine.Ending) {
        let notes = ThreadNotes.current
        if let worker = WorkerContext.of(notes), worker.engine === self, worker.key?.slot == slot, worker.isConcluding {
            worker.ending = ending
            return
        }
        apply(isBorrowed: notes.mayBegin) { state, after in
            // The entry's work and stage may be in the list of a thread.
            if case .none = state.machine.entries[Int(slot)].work { reclaimAssigned(&state, &after) }
            end(slot, ending, &state, &after)
        }
    }

    override func operationsBeforeBarriers(of operation: ManagedOperation, atMost most: Int) -> [ManagedOperation] {
        state.withLock { state in
            operation.slot(in: self).map { state.machine.operationsBeforeBarriers(of: $0, atMost: most) } ?? []
        }
    }

    /// Prevents entries from beginning until `release()`.
    ///
    /// So while several operations are canceled, none begins because another one was canceled.
    override func hold() { applyAfterReclaiming { state, _ in state.machine.holds += 1 } }

    /// Ends a hold.
    ///
    /// Entries begin again unless another caller holds the queue.
    override func release() { apply { state, _ in state.machine.holds -= 1 } }

    override func beginRest() -> Bool { source.beginRest() }

    override func endRest() { source.endRest() }

    override func hookWillWait(of operation: ManagedOperation) -> (() -> Void)? {
        let key = applyAfterReclaiming { state, _ -> QueueMachine.Key? in
            guard let place = operation.place(in: self) else { return nil }
            let key = state.machine.entries.key(of: place.slot)
            guard !state.machine.isResting(key) else { return nil }
            state.machine.rest(key)
            return state.machine.isResting(key) ? key : nil
        }
        return key.map { key in { [self] in hookDidWait(key) } }
    }

    override func recordHandler(at slot: Int32) -> (@Sendable () -> Void)? {
        guard let recorder = recording.recorder, let number = recorder.recordHandler(slot) else { return nil }
        return { recorder.handlerBegins(number) }
    }
}

// The actions that follow an event, performed after the lock is released.
extension QueueEngine {
    struct After {
        /// The help for entries that are ready.
        enum Help {
            /// Another thread begins one of them.
            case worker
            /// The queue checks later whether one of them has begun.
            case watch
        }

        /// Whether the thread is borrowed.
        ///
        /// See ``BorrowedThread``.
        let isBorrowed: Bool
        var help: Help?
        /// The entry that a borrowed thread took and is about to begin.
        var brief: QueueMachine.Job?
        /// A body that resumes.
        var grant: ReturningBody?
        /// The contents of an ended entry, to be released.
        private(set) var released: (QueueMachine.Work, EntryDetails?)?
        private(set) var rareActions: RareActions?

        /// Returns the rare actions, and creates them if there are none.
        mutating func need() -> RareActions {
            if let rareActions { return rareActions }
            let made = RareActions()
            rareActions = made
            return made
        }

        mutating func release(_ ended: (QueueMachine.Work, EntryDetails?)) {
            // The thread of an assigned entry has already released its contents.
            if case (.none, nil) = ended { return }
            if released == nil { released = ended } else { need().released.append(ended) }
        }
    }

    /// The actions that rarely follow an event.
    ///
    /// The value is deliberately not `Sendable` and belongs to the thread that applied the event.
    final class RareActions {
        var callbacks: [@Sendable () -> Void] = []
        var drained: [QueueWait] = []
        /// Further bodies that resume.
        var grants: [ReturningBody] = []
        /// The waiting callers for which there is room now, and for which slots are reserved.
        var roomWaits: [QueueWait] = []
        var toEnd: [ManagedOperation] = []
        /// The operations that may request their admission now.
        var toAdmit: [ManagedOperation] = []
        var toDelay: [ManagedOperation] = []
        /// The operations that are next for their categories, but cannot begin.
        var toYield: [ManagedOperation] = []
        /// The calls that wake the observers of the queue.
        var calls: [@Sendable () -> Void] = []
        var released: [(QueueMachine.Work, EntryDetails?)] = []
    }

    /// Applies an event and performs the actions that follow.
    ///
    /// If `isBorrowed` is `true`, the calling thread may begin an entry. See ``BorrowedThread``.
    @discardableResult
    func apply<Result>(isBorrowed: Bool = false, _ event: (inout State, inout After) -> Result) -> Result {
        var after = After(isBorrowed: isBorrowed)
        let passTime = recording.recorder?.passTime()
        let result = state.withLock { state in
            passTime?()
            let result = event(&state, &after)
            conclude(&state, &after)
            return result
        }
        perform(after)
        return result
    }

    /// Collects the consequences of an event, such as a body that resumes, another thread, or a wait that ends.
    func conclude(_ state: inout State, _ after: inout After, reserving: Int = 0) {
        // A more urgent entry must not wait for assigned entries, and a less urgent one gets its turn by its age.
        if state.machine.counts.assigned > 0, state.machine.isAssignedLevelContested { reclaimAssigned(&state, &after) }
        while let body = state.returning.first, state.machine.resume(body.key) {
            state.returning.removeFirst()
            if body.hasThread { state.threads.workers += 1 }
            if after.grant == nil { after.grant = body } else { after.need().grants.append(body) }
        }
        callThread(&state, &after, reserving: reserving)
        collectRareActions(&state, &after)
    }

    /// Requests another thread if it has an entry to run.
    ///
    /// That thread then requests the next one itself. `reserving` entries are left for the calling thread, unless it
    /// takes too long.
    func callThread(_ state: inout State, _ after: inout After, reserving: Int = 0) {
        if after.isBorrowed, after.brief == nil, state.returning.isEmpty { after.brief = state.machine.takeBrief() }
        let needsWorker: Bool
        if state.machine.canStart, state.returning.isEmpty {
            needsWorker = state.machine.counts.readyInFront > reserving
        } else if state.machine.counts.assigned > 0, state.machine.couldStart {
            needsWorker = true
        } else {
            return
        }
        if needsWorker, state.threads.join() {
            after.help = .worker
        } else if state.threads.beginWatch() {
            after.help = .watch
        }
    }

    /// Collects the callers and operations to notify.
    func collectRareActions(_ state: inout State, _ after: inout After) {
        if state.machine.hasAwaitingAdmission { after.need().toAdmit += state.machine.takeAwaitingAdmission() }
        if state.reserved == 0 {
            if !state.acceptanceWaiters.isEmpty {
                after.need().callbacks += exchange(&state.acceptanceWaiters, with: [])
            }
            if !state.drainWaiters.isEmpty, state.machine.live == 0 {
                after.need().drained += state.drainWaiters.takeAll()
            }
        }
        if !state.roomWaiters.isEmpty { giveRoom(&state, &after) }
        if let calls = state.machine.journal?.takeCalls(), !calls.isEmpty { after.need().calls += calls }
    }

    func perform(_ after: After) {
        after.grant?.resume()
        switch after.help {
        case .worker: provideWorker()
        case .watch: watchForStall()
        case nil: break
        }
        // Begin this entry before other actions, which may take long, because the entry has already been taken.
        if let brief = after.brief { beginBriefly(brief) }
        if let rareActions = after.rareActions { perform(rareActions) }
        extendLifetime(after)
    }

    private func perform(_ rareActions: RareActions) {
        for body in rareActions.grants { body.resume() }
        for notify in rareActions.callbacks { notify() }
        for wait in rareActions.drained { wait.end() }
        // A caller whose task was just canceled leaves its room to the next caller.
        for wait in rareActions.roomWaits where !wait.end() { releaseReservations(wait.places) }
        for operation in rareActions.toEnd {
            recording.recorder?.recordLinks(of: operation)
            operation.beginHosted()
        }
        // A refused request for admission ends the operation. If the operation is a barrier, its end lets the next
        // barrier request admission on this thread. The whole loop is one step, because the order of the requests
        // counts.
        let toAdmit = rareActions.toAdmit
        if !toAdmit.isEmpty {
            ThreadNotes.atBoundedDepth { for operation in toAdmit { operation.seekAdmissionForQueue() } }
        }
        for operation in rareActions.toDelay { operation.beginHostedDelay() }
        for operation in rareActions.toYield {
            operation.yieldCategories()
            reconsider(operation)
        }
        for call in rareActions.calls { call() }
    }
}

// The stage of an operation.
extension QueueEngine {
    /// Moves an entry to the stage in which it belongs.
    func place(_ operation: ManagedOperation, _ state: inout State, _ after: inout After) {
        guard let place = operation.place(in: self) else { return }
        put(operation, at: place, &state, &after)
    }

    func put(_ operation: ManagedOperation, at place: QueuePlace, _ state: inout State, _ after: inout After) {
        var place = place
        if state.machine.entries[Int(place.slot)].stage == .assigned {
            reclaimAssigned(&state, &after)
            // The entry may have ended on the thread that it was assigned to. Its slot may be gone or belong to another
            // entry.
            guard let present = operation.place(in: self) else { return }
            place = present
        }
        let slot = place.slot
        switch state.machine.entries[Int(slot)].stage {
        // The thread that requests the categories checks the operation again afterward.
        case .held where state.machine.entries[Int(slot)].hasSlot: return operation.wakeWaiter()
        case .entering, .waiting, .held, .ready: break
        case .free, .assigned, .running, .ending: return
        }
        if state.machine.entries[Int(slot)].level != place.level { state.machine.relevel(slot, place.level) }
        switch place.standing {
        case .cancelled:
            state.machine.place(slot, .ending)
            after.need().toEnd.append(operation)
        case .waits: state.machine.place(slot, .waiting)
        case .suspended(let blocksOthers):
            if blocksOthers { after.need().toYield.append(operation) }
            state.machine.place(slot, .waiting)
        case .held:
            if state.machine.hold(slot) { after.need().toAdmit.append(operation) }
        case .delayed:
            state.machine.place(slot, .held)
            // The delay is marked here, because the place of an assigned entry is read twice.
            let isInProgress = operation.core.withLock { exchange(&$0.isDelayBegun, with: true) }
            if !isInProgress { after.need().toDelay.append(operation) }
        case .ready(let asks):
            state.machine.entries[Int(slot)].asks = asks
            state.machine.place(slot, .ready)
        }
    }

    func end(
        _ slot: QueueMachine.Slot, _ ending: LifecycleMachine.Ending, _ state: inout State, _ after: inout After
    ) {
        switch ending {
        case .success: state.totals.finished += 1
        case .failure:
            state.totals.failed += 1
            let forgotten = state.failures.add(state.machine.entries[Int(slot)])
            if !forgotten.isEmpty { after.need().calls.append { extendLifetime(forgotten) } }
        case .cancelled: state.totals.cancelled += 1
        }
        state.machine.journal?.record(.ended(slot, state.machine.entries[Int(slot)], ending))
        // A body that returns without a thread resumes in its turn, which avoids searching for it.
        if state.returning.threads > 0, state.machine.entries[Int(slot)].isResting {
            resumeWithoutSlot(slot, &state, &after)
        }
        after.release(state.machine.end(slot))
    }
}

// Adding entries to a queue.
extension QueueEngine {
    /// Adds an operation, in a reserved slot if `hasReservation` is `true`, and in the epoch that was reserved for it,
    /// if there is one.
    ///
    /// The reservation is used up even if the operation is not added. If a running operation waits for this one, this
    /// one is added even if the queue is full or was shut down, like the children of a group. The caller then calls
    /// `advance`.
    func add(
        _ operation: ManagedOperation, isBarrier: Bool = false, details: EntryDetails? = nil,
        hasReservation: Bool = false, in epoch: UInt32? = nil, awaitedBy waiting: ManagedOperation? = nil
    ) throws(OperationSetupError) {
        let operation = operation.held
        if let refusal = operation.claim(for: self) {
            if hasReservation { releaseReservations(1) }
            throw refusal
        }
        let running = waiting.flatMap(runner)
        let addition = apply { state, after -> Result<QueueLevel, OperationSetupError> in
            if hasReservation { state.reserved -= 1 }
            // The other operation may have ended in the meantime. After the grace period, the shutdown may already have
            // collected the operations to cancel.
            let isAccepted = !state.isGraceOver && running?.slot(in: self) != nil
            if !isAccepted, let refusal = self.refusal(of: 1, hasReservation: hasReservation, state) {
                return .failure(refusal)
            }
            let slot = state.machine.enter(
                .operation(operation), isBarrier: isBarrier, details: details, in: epoch)
            return .success(enter(operation, at: slot, &state, &after))
        }
        switch addition {
        case .success(let level): operation.raiseUpstreamIfNeeded(level)
        case .failure(let refusal):
            operation.releaseClaim()
            throw refusal
        }
    }

    /// Lets an operation overtake the barriers before it if the queue runs one of the operations that wait for it.
    func advance(_ operation: ManagedOperation, awaitedBy waiting: [ManagedOperation]) {
        for participant in waiting {
            guard let present = runner(of: participant) else { continue }
            let isRunning = apply { state, _ in
                // If this operation has ended in the meantime, the next barrier may have begun.
                guard present.slot(in: self) != nil else { return false }
                if let slot = operation.slot(in: self) { state.machine.advance(slot) }
                return true
            }
            if isRunning { return }
        }
    }

    /// Adds either all operations or none.
    ///
    /// If `hasReservations` is `true`, slots are reserved for all of them. The reservation is used up even if nothing
    /// is added. `link` is called once it is certain that the queue accepts the operations, and it can still throw.
    func add(
        _ operations: [ManagedOperation], hasReservations: Bool = false,
        linking link: (() throws(OperationSetupError) -> Void)? = nil
    ) throws(OperationSetupError) {
        let operations = operations.map(\.held)
        var claimed = 0
        var kept = hasReservations ? operations.count : 0
        do throws(OperationSetupError) {
            for operation in operations {
                if let refusal = operation.claim(for: self) { throw refusal }
                claimed += 1
            }
            let refusal = state.withLock { state in
                let refusal = self.refusal(of: operations.count, hasReservation: hasReservations, state)
                if refusal == nil, !hasReservations { state.reserved += operations.count }
                return refusal
            }
            if let refusal { throw refusal }
            kept = operations.count
            try link?()
        } catch {
            for operation in operations.prefix(claimed) { operation.releaseClaim() }
            if kept > 0 { releaseReservations(kept) }
            throw error
        }
        enterClaimed(operations)
    }

    /// Adds operations for which slots are reserved.
    ///
    /// If the operations belong to a group that has begun, they do not wait for barriers that wait for the group. If
    /// `isBorrowed` is `true`, the calling thread may begin one of them. See ``BorrowedThread``.
    func enterClaimed(
        _ operations: [ManagedOperation], for group: ManagedOperation? = nil, isBorrowed: Bool = false
    ) {
        let running = group.flatMap(runner)
        // The operations are added in portions, so that the threads of the queue do not have to wait for all of them.
        var rest = operations[...]
        var epoch: UInt32?
        while !rest.isEmpty {
            let portion = rest.prefix(64)
            rest = rest.dropFirst(64)
            // Few operations raise their dependencies. Checking each operation later would load it into the cache
            // again.
            var raising: [(ManagedOperation, QueueLevel)] = []
            apply(isBorrowed: isBorrowed) { state, after in
                state.reserved -= portion.count
                // The group may have ended in the meantime, and a barrier may have begun.
                let joinsFront = running?.slot(in: self) != nil
                // An operation may depend on one of a later portion, so no barrier may come between the two.
                if !rest.isEmpty, epoch == nil {
                    epoch = state.machine.reserve(operations.count, joinsFront: joinsFront)
                }
                for operation in portion {
                    let slot = state.machine.enter(.operation(operation), joinsFront: joinsFront, in: epoch)
                    let level = enter(operation, at: slot, &state, &after)
                    if ManagedOperation.mayRaise(level) { raising.append((operation, level)) }
                }
            }
            for (operation, level) in raising { operation.raiseUpstreamIfNeeded(level) }
        }
    }

    func add(closure: @escaping @Sendable () -> Void, level: QueueLevel, name: String?) throws(OperationSetupError) {
        let refusal = apply { state, _ -> OperationSetupError? in
            if let refusal = self.refusal(of: 1, state) { return refusal }
            let details = name.map { EntryDetails(name: $0) }
            let slot = state.machine.enter(.closure(closure), level: level, details: details)
            state.machine.place(slot, .ready)
            return nil
        }
        if let refusal { throw refusal }
    }

    private func enter(
        _ operation: ManagedOperation, at slot: QueueMachine.Slot, _ state: inout State, _ after: inout After
    ) -> QueueLevel {
        let place = operation.assignPlace(slot)
        put(operation, at: place, &state, &after)
        return place.level
    }

    /// Gives up reserved slots that are not needed, so that other callers can use them.
    func releaseReservations(_ count: Int) {
        apply { state, _ in state.reserved -= count }
    }

    /// Returns the reason why a number of entries cannot be added, or `nil` if they can.
    func refusal(of count: Int, hasReservation: Bool = false, _ state: State) -> OperationSetupError? {
        if state.isClosed { return .closed(queue: name) }
        if hasReservation { return nil }
        let (sum, overflow) = (state.machine.live + state.reserved + state.gathered).addingReportingOverflow(count)
        if !overflow, sum <= state.capacity { return nil }
        return .full(queue: name, capacity: state.capacity, more: count)
    }
}
