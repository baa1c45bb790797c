// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// The threads that work for a queue.
extension QueueEngine {
    func provideWorker() {
        while !source.provide(for: self) {
            // Taken back before the source is asked to remember the queue: it may come with a thread at once.
            state.withLock { state in
                state.crew.leave()
                state.isStarving = true
            }
            guard !source.remember(self), offerWorker() else { return }
        }
    }

    /// A thread that has become free offers itself; returns whether there is something to do.
    package func offerWorker() -> Bool {
        state.withLock { state in
            state.isStarving = false
            return state.machine.couldStart && state.crew.join()
        }
    }

    /// Works for the queue on the calling thread until nothing can begin.
    package func work() {
        let notes = ThreadNotes.current
        let seat = WorkerSeat(engine: self, outer: notes.seat)
        notes.seat = seat
        #if canImport(Darwin)
            var quality = ThreadQuality()
            defer { quality.take(.default) }
        #endif
        while let job = nextJob(for: seat) {
            seat.take(job.key)
            #if canImport(Darwin)
                quality.take(job.work.quality)
            #endif
            // Without a pool, objects that a body leaves to be released stay as long as the thread has something to do.
            autoreleasepool { run(job, seat) }
        }
        notes.seat = seat.outer
    }

    /// What the thread is to run next; nil if it is to leave.
    fileprivate func nextJob(for seat: WorkerSeat) -> QueueMachine.Job? {
        while let job = seat.nextDealt() ?? next(for: seat) {
            // What it let go of meanwhile may have waited: then others were given what the thread had taken.
            if seat.unbegun != nil { return job }
        }
        return nil
    }

    fileprivate func run(_ job: QueueMachine.Job, _ seat: WorkerSeat) {
        switch job.work {
        case .none: break
        case .closure(let body):
            body()
            seat.isConcluding = true
            seat.hasEnded = true
            seat.ending = .success
        case .operation(let operation):
            seat.operation = operation.life
            if job.asks, !askForCategories(of: operation, job.key) { return }
            recordLinks(of: operation)
            if !operation.beginHosted() {
                operation.yieldCategories()
                putBack(operation, seat.slot)
            }
        case .foreign(let entry):
            recordLinks(of: entry.operation)
            if !entry.begin() { putBack(entry, seat.slot) }
        }
    }

    /// Asks for the categories of an operation that has a slot.
    ///
    /// If it may not begin now, gives up the slot and returns false.
    ///
    /// The thread holds no lock of the queue while it asks.
    private func askForCategories(of operation: ManagedOperation, _ key: QueueMachine.Key) -> Bool {
        if operation.askForCategories(in: self) {
            if apply({ state, _ in state.machine.beginAsked(key) }) { return true }
            // The queue was suspended or made narrower meanwhile, so other operations may have the categories.
            operation.yieldCategories()
        }
        applySettled { state, after in
            guard state.machine.stopAsking(key), let place = operation.place(in: self) else { return }
            if place.slot == key.slot { put(operation, at: place, &state, &after) }
        }
        return false
    }

    /// Begins on a thread that is lent what it took.
    func beginBriefly(_ job: QueueMachine.Job) {
        guard case .operation(let operation) = job.work else { return }
        recordLinks(of: operation)
        let notes = ThreadNotes.current
        // Should it end at once, what follows is for another thread, and not for a recursion.
        notes.isLent = false
        if !operation.beginHosted() { putBack(operation, job.key.slot) }
        notes.isLent = true
    }

    /// An operation that was ready got a dependency just before it began.
    private func putBack(_ operation: ManagedOperation, _ slot: QueueMachine.Slot) {
        applySettled { state, after in
            // Somebody else may have ended it meanwhile, and the slot may be another's.
            guard let place = operation.place(in: self), place.slot == slot else { return }
            state.machine.place(slot, .waiting)
            put(operation, at: place, &state, &after)
        }
    }

    /// Tells what the thread finished, and gives it the next thing to do; nil if it is to leave.
    ///
    /// What follows from its news comes first: some of that may take long, and nothing shall wait that was taken already.
    private func next(for seat: WorkerSeat) -> QueueMachine.Job? {
        if case .chosen(let job) = visit(seat, mayPutOff: true) { return job }
        if case .chosen(let job) = visit(seat, mayPutOff: false) { return job }
        return nil
    }

    private enum Choice {
        case chosen(QueueMachine.Job?)
        case putOff
    }

    private func visit(_ seat: WorkerSeat, mayPutOff: Bool) -> Choice {
        // This may be the last reference, and code that runs when the operation is freed may wait. So the operation is
        // kept until the seat shows what the thread does next.
        let last = exchange(&seat.operation, with: nil)
        var after = After()
        let moment = recording.moment
        let choice = state.withLock { state -> Choice in
            moment?.pass()
            takeNews(of: seat, &state, &after)
            // A body that goes on takes the place of this thread.
            let mayGoOn = state.crew.mayGoOn && state.returning.isEmpty
            if mayGoOn, mayPutOff, state.machine.couldStart {
                collectChores(&state, &after)
                if after.chores != nil {
                    callThread(&state, &after, sparing: 1)
                    return .putOff
                }
            }
            // With nothing else to do, it helps with what others were dealt.
            if mayGoOn, !state.machine.canStart, state.machine.couldStart { settle(&state, &after) }
            takeBackOldest(&state, &after)
            let job = mayGoOn ? state.machine.take() : nil
            if let job {
                deal(to: seat, after: job, &state)
            } else {
                state.crew.leave()
                forgetHand(of: seat, &state)
                seat.hasLeft = true
            }
            conclude(&state, &after)
            return .chosen(job)
        }
        seat.clear()
        if case .chosen(let job?) = choice { seat.unbegun = job.key }
        perform(after)
        withExtendedLifetime(last) {}
        return choice
    }

    /// What the thread kept back.
    fileprivate func takeNews(of seat: WorkerSeat, _ state: inout State, _ after: inout After) {
        if seat.isHandKnown { takeBack(seat.hand, &state, &after) }
        if seat.hasEnded { end(seat.slot, seat.ending, &state, &after) }
        for operation in seat.readied { place(operation, &state, &after) }
    }

    // A queue that stands still because bodies block.

    private func reportBlock(of threads: Int) {
        OperationDiagnostics.report(
            .tooManyWaits, by: name,
            "\(threads) bodies block their threads, and nothing else can begin before one returns. If they wait for operations "
                + "of this queue, use startAndWait(), dependencies or async bodies, because the queue sees these waits."
        )
    }

    func watchForStall() {
        guard source.watchesForStalls else { return }
        _ = SystemClock.shared.schedule(after: .milliseconds(4)) { [weak self] in self?.lookForStall() }
    }

    private func lookForStall() {
        let (now, usedTime) = (source.now, source.usedTime)
        let (joining, goesOn, blocked) = apply { state, after in
            settle(&state, &after)
            let look = QueueThreads.Look(starts: state.machine.starts, usedTime: usedTime, now: now)
            let joining = state.crew.look(look, canStart: state.machine.couldStart)
            return (joining, state.crew.isWatched, state.crew.takeBlockReport() ? state.crew.mostAtOnce : nil)
        }
        if let blocked { reportBlock(of: blocked) }
        for _ in 0..<joining { provideWorker() }
        if goesOn { watchForStall() }
    }
}

// Bodies that wait.
extension QueueEngine {
    /// The body on this thread is about to wait through a call of ours, and needs no slot meanwhile.
    func bodyWillWait(_ seat: WorkerSeat) {
        tell(seat) { state in
            state.machine.rest(seat.key)
            state.crew.leave()
        }
    }

    /// The thread is about to wait between two bodies, because something that it lets go of does.
    ///
    /// What it has taken is for others: it may be just that for which it waits.
    func threadWillWait(_ seat: WorkerSeat) {
        let unbegun = exchange(&seat.unbegun, with: nil)
        apply { state, after in
            if seat.isHandKnown { takeBack(seat.hand, &state, &after) }
            if let unbegun, state.machine.giveBack(unbegun),
                case .operation(let operation) = state.machine.entries[Int(unbegun.slot)].work
            {
                // Something about it may have changed since it was taken.
                place(operation, &state, &after)
            }
            state.crew.leave()
        }
    }

    /// That wait is over: if there are enough without it, the thread leaves when it asks for work.
    func threadDidWait() {
        state.withLock { $0.crew.workers += 1 }
    }

    /// The wait is over: goes on when there is a slot, at once if the operation ended meanwhile.
    func bodyDidWait(_ seat: WorkerSeat) {
        let turn = DispatchSemaphore(value: 0)
        let body = ReturningBody(key: seat.key, turn: .thread(turn))
        let mustWait = apply { state, after in
            let isFirst = state.returning.isEmpty || !state.machine.isResting(body.key)
            if isFirst, state.machine.resume(body.key) {
                state.crew.workers += 1
                return false
            }
            settle(&state, &after)
            state.returning.append(body)
            return true
        }
        if mustWait { turn.wait() }
    }

    /// A place in a queue that the hook of an operation gave up while it waits on a thread of another pool.
    struct HookRest {
        fileprivate let engine: QueueEngine
        fileprivate let key: QueueMachine.Key

        /// Takes the place again, and waits until there is one.
        ///
        /// If the operation has ended, the hook needs none.
        func end() {
            let turn = DispatchSemaphore(value: 0)
            let mustWait = engine.applySettled { state, _ in
                if !state.machine.isResting(key) || state.returning.isEmpty && state.machine.resume(key) {
                    return false
                }
                state.returning.append(ReturningBody(key: key, turn: .thread(turn)))
                return true
            }
            guard mustWait else { return }
            turn.wait()
            // The thread does not belong to the queue.
            engine.state.withLock { $0.crew.leave() }
        }
    }

    /// Gives up the place of an operation whose hook is about to wait; nil if it has none, or gave it up before.
    func hookWillWait(of operation: ManagedOperation) -> HookRest? {
        applySettled { state, _ in
            guard let place = operation.place(in: self) else { return nil }
            let key = state.machine.entries.key(of: place.slot)
            guard !state.machine.isResting(key) else { return nil }
            state.machine.rest(key)
            return state.machine.isResting(key) ? HookRest(engine: self, key: key) : nil
        }
    }

    /// The operation of a body that waits for a slot ended: the body needs none any more.
    ///
    /// It does not wait behind others, for they may wait for it.
    func letGoOn(_ slot: QueueMachine.Slot, _ state: inout State, _ after: inout After) {
        // What returns without a thread goes when its turn comes, so that none of many is looked for.
        guard state.returning.threads > 0 else { return }
        let bodies = state.returning.removeThreads(of: state.machine.entries.key(of: slot))
        state.crew.workers += bodies.count
        if !bodies.isEmpty { after.need().grants += bodies }
    }

    /// How urgent an entry is; nil if it is not there any more.
    func level(of key: QueueMachine.Key) -> QueueLevel? {
        state.withLock { $0.machine.entries.has(key) ? $0.machine.entries[Int(key.slot)].level : nil }
    }

    /// How many bodies want to go on and wait for a slot; for tests.
    package var returningCount: Int { state.withLock { $0.returning.count } }

    /// Tells the queue what the thread kept back, before something of the user's runs there.
    ///
    /// One that `isBackSoon` as a rule takes the next entry itself: another thread is only asked for if there are more, or
    /// if nothing began for a while.
    func flush(_ seat: WorkerSeat, isBackSoon: Bool = false) {
        tell(seat, sparing: isBackSoon ? 1 : 0) { _ in }
    }

    /// Tells the queue what the thread kept back, together with an event.
    ///
    /// The seat is clear before anything follows from it, for what follows may be kept back there again.
    private func tell(_ seat: WorkerSeat, sparing: Int = 0, _ event: (inout State) -> Void) {
        var after = After()
        let moment = recording.moment
        state.withLock { state in
            moment?.pass()
            takeNews(of: seat, &state, &after)
            event(&state)
            conclude(&state, &after, sparing: sparing)
        }
        seat.forgetNews()
        perform(after)
    }
}

/// A thread that a test plays: taking what comes next and running it are two steps, between which others may have theirs.
package final class ManualSeat: Sendable {
    // Sendable: only used by the thread of the test, one step at a time.
    private nonisolated(unsafe) let seat: WorkerSeat
    private nonisolated(unsafe) var taken: QueueMachine.Job?

    package init(_ engine: QueueEngine) {
        seat = WorkerSeat(engine: engine)
    }

    /// Whether it has taken something that it has still to run.
    package var isBusy: Bool { taken != nil }

    /// Takes a step; false if nothing was left to do, and the thread leaves.
    package func step() -> Bool {
        let notes = ThreadNotes.current
        let outer = exchange(&notes.seat, with: seat)
        defer { notes.seat = outer }
        if let job = exchange(&taken, with: nil) {
            seat.engine.run(job, seat)
            return true
        }
        guard let job = seat.engine.nextJob(for: seat) else { return false }
        seat.take(job.key)
        taken = job
        return true
    }
}

#if canImport(Darwin)
    /// The quality of service of a thread that works for a queue: that of the operation which it runs.
    private struct ThreadQuality {
        private var present = QualityOfService.default

        mutating func take(_ wanted: QualityOfService) {
            guard wanted != present, pthread_set_qos_class_self_np(wanted.threadClass, 0) == 0 else { return }
            present = wanted
        }
    }

    extension QualityOfService {
        fileprivate var threadClass: qos_class_t {
            switch self {
            case .userInteractive: QOS_CLASS_USER_INTERACTIVE
            case .userInitiated: QOS_CLASS_USER_INITIATED
            case .utility: QOS_CLASS_UTILITY
            case .background: QOS_CLASS_BACKGROUND
            default: QOS_CLASS_DEFAULT
            }
        }
    }

    extension QueueMachine.Work {
        fileprivate var quality: QualityOfService {
            switch self {
            case .none, .closure: .default
            case .operation(let operation): operation.qualityOfService
            case .foreign(let entry): entry.operation.qualityOfService
            }
        }
    }
#endif

// Entries that threads were dealt in advance: see `AssignedEntries`.
extension QueueEngine {
    /// Deals a thread some of those that come next, if they are many and their bodies short.
    ///
    /// As many are left for each of the other threads; one that runs out of work takes back what others were dealt. So
    /// nothing waits in a hand while a thread that might run it has nothing to do.
    func deal(to seat: WorkerSeat, after job: QueueMachine.Job, _ state: inout State) {
        let ready = state.machine.counts.readyInFront
        guard ready > 1, !job.asks, mayDeal(state) else { return }
        seat.pace.note(source.now, ran: seat.finishedCount)
        seat.finishedCount = 0
        let count = min(seat.pace.count - 1, ready / max(state.crew.mostAtOnce, 1))
        guard count > 0 else { return }
        let jobs = state.machine.deal(count)
        guard !jobs.isEmpty else { return }
        seat.hand.deal(state.machine.lend(job.key), then: jobs)
        if seat.isHandKnown { state.hands.removeAll { $0.hand === seat.hand } }
        seat.isHandKnown = true
        state.hands.append(DealtEntries(hand: seat.hand, since: state.machine.starts))
    }

    /// How many entries the threads hold that they were dealt; for tests.
    package var dealtCount: Int { state.withLock { $0.machine.counts.dealt } }

    /// Nobody may follow each single step, or wait for a place.
    private func mayDeal(_ state: State) -> Bool {
        state.machine.journal == nil && state.capacity == .max && !recording.isRecording
    }

    /// The thread goes: its hand is empty.
    func forgetHand(of seat: WorkerSeat, _ state: inout State) {
        guard seat.isHandKnown else { return }
        seat.isHandKnown = false
        state.hands.removeAll { $0.hand === seat.hand }
    }

    /// Takes back what the threads were dealt: each entry is then where the queue says.
    func settle(_ state: inout State, _ after: inout After) {
        guard state.machine.counts.dealt > 0 else { return }
        for dealt in state.hands.reversed() { takeBack(dealt.hand, &state, &after) }
    }

    /// What was dealt long ago stands behind a body that takes long.
    func takeBackOldest(_ state: inout State, _ after: inout After) {
        guard state.machine.counts.dealt > 0, let oldest = state.hands.first, state.machine.starts &- oldest.since > 64
        else { return }
        state.hands.removeFirst()
        state.hands.append(DealtEntries(hand: oldest.hand, since: state.machine.starts))
        takeBack(oldest.hand, &state, &after)
    }

    func takeBack(_ hand: AssignedEntries, _ state: inout State, _ after: inout After) {
        let news = hand.takeBack()
        state.machine.noteStarts(news.ended.count)
        for ended in news.ended { end(ended.slot, .success, &state, &after) }
        if let current = news.current { state.machine.beginDealt(current) }
        for job in news.waiting.reversed() { state.machine.takeBack(job) }
    }

    /// Applies an event for which each entry has to be where the queue says.
    @discardableResult
    func applySettled<Result>(_ event: (inout State, inout After) -> Result) -> Result {
        apply { state, after in
            settle(&state, &after)
            return event(&state, &after)
        }
    }
}
