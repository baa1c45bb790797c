// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The shell of ``QueueMachine``: applies events under the queue's lock and performs what follows after it.
package final class QueueEngine: Sendable {
    struct State {
        var machine = QueueMachine()
        var crew: QueueThreads
        /// What the threads were dealt in advance.
        var hands: [DealtEntries] = []
        /// Bodies that want to go on and wait for a slot, in the order in which they came.
        var returning = ReturningLine()
        var totals = EndTotals()
        /// Those who wait until nothing is left.
        var drainers = WaitList()
        var capacity = Int.max
        /// Places that are kept: for those who were told that there is room, and for the rest of many added at once.
        var reserved = 0
        /// Those who wait for room, in the order in which they came.
        var roomWaiters = WaitList()
        /// Places put aside for the first of them, which needs more than there are.
        var gathered = 0
        /// Those who wait until nobody is about to add what the queue has accepted.
        var acceptanceWaiters: [@Sendable () -> Void] = []
        var isClosed = false
        /// Why, or by whom, the queue is suspended.
        var suspension = QueueSuspension()
        /// Whether the pool had no thread for the queue, and will offer one.
        var isStarving = false
        /// Operations of other kinds that are asked every now and then, as long as they wait.
        var patrol = PlainOperationPatrol()
        /// Those who read the events, once there was one.
        var hub: QueueEventHub?
        var meter: QueueProgressMeter?
        var failures = FailureList()
    }

    struct DealtEntries {
        let hand: AssignedEntries
        var since: UInt64
    }

    /// How many entries ended, and how.
    struct EndTotals {
        var finished = 0
        var failed = 0
        var cancelled = 0
    }

    package let name: String
    let state: Locked<State>
    let source: any WorkerSource
    let recording = RecordingSwitch()
    package let uniqueWork = UniqueWork()
    /// What the enqueued handlers of its operations ask, also when these have ended.
    let cancellations = CancellationMark()
    private let chosenCallbackQueue = Locked<DispatchQueue?>(nil)

    /// The callback queue of the operations that the queue runs, if one was set.
    var callbackQueue: DispatchQueue? {
        get { chosenCallbackQueue.withLock { $0 } }
        set {
            let old = chosenCallbackQueue.withLock { exchange(&$0, with: newValue) }
            withExtendedLifetime(old) {}
            OperationDefaults.noteInheritance()
        }
    }

    /// - Parameter leastSlots: How many slots are kept in any case: see ``EntryTable``.
    package init(
        name: String, width: Int?, source: any WorkerSource = WorkerPool.shared,
        leastSlots: Int? = nil
    ) {
        self.name = name
        self.source = source
        var state = State(crew: QueueThreads(width: width))
        state.machine.width = width ?? .max
        if let leastSlots { state.machine.entries.least = leastSlots }
        self.state = Locked(state)
        #if DEBUG
            LifetimeProbe.note?(self)
        #endif
    }

    deinit { endReaders() }
}

// What follows an event, done after the lock was given back.
extension QueueEngine {
    struct After {
        var needsWorker = false
        var needsWatch = false
        /// Whether the thread is lent: see ``LentThread``.
        var isLent = false
        /// What a thread that is lent took, to begin it.
        var brief: QueueMachine.Job?
        /// A body that goes on.
        var grant: ReturningBody?
        /// What ended, to be let go of.
        private var released: (QueueMachine.Work, EntryDetails?)?
        private(set) var chores: Chores?

        /// What seldom follows: made when there is some.
        mutating func need() -> Chores {
            if let chores { return chores }
            let made = Chores()
            chores = made
            return made
        }

        mutating func release(_ ended: (QueueMachine.Work, EntryDetails?)) {
            // What was dealt has been let go of by its thread.
            if case (.none, nil) = ended { return }
            if released == nil { released = ended } else { need().released.append(ended) }
        }
    }

    /// What seldom follows an event.
    ///
    /// Not Sendable on purpose: it belongs to the thread that applied the event.
    final class Chores {
        var told: [@Sendable () -> Void] = []
        var drained: [QueueWait] = []
        /// More bodies that go on.
        var grants: [ReturningBody] = []
        /// Those for whom there is room now, their places kept for them.
        var roomy: [QueueWait] = []
        var toEnd: [ManagedOperation] = []
        /// Those that may ask for their admission now.
        var toAdmit: [ManagedOperation] = []
        var toDelay: [ManagedOperation] = []
        /// The operations that are next for their categories, but cannot begin.
        var toYield: [ManagedOperation] = []
        /// Wakes those who follow the queue.
        var calls: [@Sendable () -> Void] = []
        var released: [(QueueMachine.Work, EntryDetails?)] = []
    }

    /// Applies an event and performs what follows.
    @discardableResult
    func apply<Result>(_ event: (inout State, inout After) -> Result) -> Result {
        var after = After()
        let moment = recording.moment
        let result = state.withLock { state in
            moment?.pass()
            let result = event(&state, &after)
            conclude(&state, &after)
            return result
        }
        perform(after)
        return result
    }

    /// Looks what the event made possible: a body that goes on, one more thread, somebody who waits.
    func conclude(_ state: inout State, _ after: inout After, sparing: Int = 0) {
        // What is more urgent does not wait for what was dealt, and what is less gets its turn by its age.
        if state.machine.isDealtRivalled { settle(&state, &after) }
        while let body = state.returning.first, state.machine.resume(body.key) {
            state.returning.removeFirst()
            if body.hasThread { state.crew.workers += 1 }
            if after.grant == nil { after.grant = body } else { after.need().grants.append(body) }
        }
        callThread(&state, &after, sparing: sparing)
        collectChores(&state, &after)
    }

    /// Asks for one more thread, if there is something for it to do: it asks for the next one itself.
    ///
    /// So many entries are spared for the calling thread, unless it does not come for them soon.
    func callThread(_ state: inout State, _ after: inout After, sparing: Int = 0) {
        if after.isLent, after.brief == nil, state.returning.isEmpty { after.brief = state.machine.takeBrief() }
        if state.machine.canStart, state.returning.isEmpty {
            if state.machine.counts.readyInFront > sparing, state.crew.join() {
                after.needsWorker = true
            } else {
                after.needsWatch = state.crew.beginWatch()
            }
        } else if state.machine.counts.dealt > 0, state.machine.couldStart {
            if state.crew.join() { after.needsWorker = true } else { after.needsWatch = state.crew.beginWatch() }
        }
    }

    /// Looks who has to be told of something.
    func collectChores(_ state: inout State, _ after: inout After) {
        if state.machine.hasUnasked { after.need().toAdmit += state.machine.takeUnasked() }
        if state.reserved == 0 {
            if !state.acceptanceWaiters.isEmpty {
                after.need().told += exchange(&state.acceptanceWaiters, with: [])
            }
            if !state.drainers.isEmpty, state.machine.live == 0 {
                after.need().drained += state.drainers.takeAll()
            }
        }
        if !state.roomWaiters.isEmpty { giveRoom(&state, &after) }
        if let calls = state.machine.journal?.takeCalls(), !calls.isEmpty { after.need().calls += calls }
    }

    func perform(_ after: After) {
        after.grant?.grant()
        if after.needsWorker { provideWorker() }
        if after.needsWatch { watchForStall() }
        // Before what may take long, for it was taken already.
        if let brief = after.brief { beginBriefly(brief) }
        if let chores = after.chores { perform(chores) }
        withExtendedLifetime(after) {}
    }

    private func perform(_ chores: Chores) {
        for body in chores.grants { body.grant() }
        for tell in chores.told { tell() }
        for wait in chores.drained { wait.end() }
        // One whose task was cancelled just now leaves the room to the next.
        for wait in chores.roomy where !wait.end() { giveBackPlaces(wait.places) }
        for operation in chores.toEnd {
            recordLinks(of: operation)
            operation.beginHosted()
        }
        for operation in chores.toAdmit { operation.seekAdmissionForQueue() }
        for operation in chores.toDelay { operation.beginHostedDelay() }
        for operation in chores.toYield {
            operation.yieldCategories()
            reconsider(operation)
        }
        for call in chores.calls { call() }
    }
}

// Where an operation stands.
extension QueueEngine {
    /// Looks again where an operation stands: something about it changed.
    func reconsider(_ operation: ManagedOperation) {
        if let seat = ThreadNotes.current.seat, seat.engine === self, seat.isConcluding {
            return seat.readied.append(operation)
        }
        apply { state, after in place(operation, &state, &after) }
    }

    /// Brings an entry to where it belongs.
    func place(_ operation: ManagedOperation, _ state: inout State, _ after: inout After) {
        guard let place = operation.place(in: self) else { return }
        put(operation, at: place, &state, &after)
    }

    func put(_ operation: ManagedOperation, at place: QueuePlace, _ state: inout State, _ after: inout After) {
        var place = place
        if state.machine.entries[Int(place.slot)].stage == .dealt {
            settle(&state, &after)
            // It may have ended in the hand that was taken back, and its slot be gone or another's.
            guard let present = operation.place(in: self) else { return }
            place = present
        }
        let slot = place.slot
        switch state.machine.entries[Int(slot)].stage {
        case .entering, .waiting, .held, .ready: break
        case .free, .dealt, .running, .ending: return
        }
        // The thread that asks for the categories looks at the operation again afterwards.
        if state.machine.entries[Int(slot)].isAsking { return operation.wakeAsker() }
        state.machine.relevel(slot, place.level)
        state.machine.entries[Int(slot)].asks = place.asks
        if place.blocksOthers { after.need().toYield.append(operation) }
        switch place.standing {
        case .cancelled:
            state.machine.place(slot, .ending)
            after.need().toEnd.append(operation)
        case .waits: state.machine.place(slot, .waiting)
        case .held:
            if state.machine.hold(slot) { after.need().toAdmit.append(operation) }
        case .delayed(let begins):
            state.machine.place(slot, .held)
            if begins { after.need().toDelay.append(operation) }
        case .ready: state.machine.place(slot, .ready)
        }
    }

    /// An operation of the queue ended.
    func didEnd(_ slot: QueueMachine.Slot, _ ending: LifecycleMachine.Ending) {
        let notes = ThreadNotes.current
        if let seat = notes.seat, seat.engine === self, seat.slot == slot, seat.isConcluding {
            seat.hasEnded = true
            seat.ending = ending
            return
        }
        apply { state, after in
            after.isLent = notes.isLent
            // What it does, and where it stands, may be in a hand.
            if case .none = state.machine.entries[Int(slot)].work { settle(&state, &after) }
            end(slot, ending, &state, &after)
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
            if !forgotten.isEmpty { after.need().calls.append { withExtendedLifetime(forgotten) {} } }
        case .cancelled: state.totals.cancelled += 1
        }
        state.machine.journal?.note(.ended(slot, state.machine.entries[Int(slot)], ending))
        if state.machine.entries[Int(slot)].isResting { letGoOn(slot, &state, &after) }
        after.release(state.machine.end(slot))
    }
}

// What comes into a queue.
extension QueueEngine {
    /// Adds an operation, in a place that was kept for it if it `hasPlace`; whether or not it is added, that is gone then.
    func add(
        _ operation: ManagedOperation, isBarrier: Bool = false, details: EntryDetails? = nil, hasPlace: Bool = false
    ) throws(QueueError) {
        let operation = operation.held
        if let refusal = operation.claim(for: self) {
            if hasPlace { giveBackPlaces(1) }
            throw refusal
        }
        var level: QueueLevel?
        let refusal = apply { state, after -> QueueError? in
            if hasPlace { state.reserved -= 1 }
            if let refusal = self.refusal(of: 1, hasPlace: hasPlace, state) { return refusal }
            level = enter(operation, isBarrier: isBarrier, details, &state, &after)
            return nil
        }
        if let refusal {
            operation.unclaim()
            throw refusal
        }
        if let level { operation.raiseUpstreamIfNeeded(level) }
    }

    /// Adds all or none; `link` is called once it is certain that the queue takes them, and may still refuse.
    ///
    /// Where it `hasPlaces`, as many were kept; if nothing is added, they are gone then.
    func add(
        _ operations: [ManagedOperation], hasPlaces: Bool = false, linking link: () throws(QueueError) -> Void = {}
    ) throws(QueueError) {
        let operations = operations.map(\.held)
        var claimed = 0
        var kept = hasPlaces ? operations.count : 0
        do throws(QueueError) {
            for operation in operations {
                if let refusal = operation.claim(for: self) { throw refusal }
                claimed += 1
            }
            try keepPlaces(operations.count, areKept: hasPlaces)
            kept = operations.count
            try link()
        } catch {
            for operation in operations.prefix(claimed) { operation.unclaim() }
            if kept > 0 { giveBackPlaces(kept) }
            throw error
        }
        enterClaimed(operations)
    }

    /// Takes in operations for which places are kept.
    func enterClaimed(_ operations: [ManagedOperation]) {
        // In portions, so that the threads of the queue do not wait for all of it.
        var rest = operations[...]
        while !rest.isEmpty {
            let portion = rest.prefix(64)
            rest = rest.dropFirst(64)
            // Few raise what they wait for, and to ask each again later would fetch it into the cache once more.
            var raising: [(ManagedOperation, QueueLevel)] = []
            apply { state, after in
                state.reserved -= portion.count
                for operation in portion {
                    guard let level = enter(operation, isBarrier: false, nil, &state, &after) else { continue }
                    if ManagedOperation.mayRaise(level) { raising.append((operation, level)) }
                }
            }
            for (operation, level) in raising { operation.raiseUpstreamIfNeeded(level) }
        }
    }

    func add(
        closure: @escaping @Sendable () -> Void, level: QueueLevel, isBarrier: Bool = false, name: String? = nil,
        hasPlace: Bool = false
    ) throws(QueueError) {
        let refusal = apply { state, _ -> QueueError? in
            if hasPlace { state.reserved -= 1 }
            if let refusal = self.refusal(of: 1, hasPlace: hasPlace, state) { return refusal }
            let details = name.map { EntryDetails(name: $0) }
            let slot = state.machine.enter(.closure(closure), level: level, isBarrier: isBarrier, details: details)
            state.machine.place(slot, .ready)
            return nil
        }
        if let refusal { throw refusal }
    }

    private func enter(
        _ operation: ManagedOperation, isBarrier: Bool, _ details: EntryDetails?, _ state: inout State,
        _ after: inout After
    ) -> QueueLevel? {
        let slot = state.machine.enter(.operation(operation), isBarrier: isBarrier, details: details)
        guard let place = operation.seat(in: self, slot) else { return nil }
        put(operation, at: place, &state, &after)
        return place.level
    }

    private func keepPlaces(_ count: Int, areKept: Bool) throws(QueueError) {
        let refusal = state.withLock { state in
            let refusal = self.refusal(of: count, hasPlace: areKept, state)
            if refusal == nil, !areKept { state.reserved += count }
            return refusal
        }
        if let refusal { throw refusal }
    }

    /// Places that were kept are not needed, and may be the next one's.
    func giveBackPlaces(_ count: Int) {
        apply { state, _ in state.reserved -= count }
    }

    /// Why that many more cannot be taken.
    func refusal(of count: Int, hasPlace: Bool = false, _ state: State) -> QueueError? {
        if state.isClosed { return .closed(queue: name) }
        if hasPlace { return nil }
        let (sum, overflow) = (state.machine.live + state.reserved + state.gathered).addingReportingOverflow(count)
        return overflow || sum > state.capacity
            ? .full(queue: name, capacity: state.capacity, more: count) : nil
    }
}
