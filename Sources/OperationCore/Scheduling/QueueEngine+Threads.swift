// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(Darwin)
    import Darwin
#endif

// The threads that work for a queue.
extension QueueEngine {
    func provideWorker() {
        while !source.provide(for: self) {
            // The missing thread is no longer counted when the queue is remembered, because the source may provide one
            // immediately.
            state.withLock { state in
                state.threads.leave()
                state.isStarving = true
            }
            guard !source.remember(self), offerWorker() else { return }
        }
    }

    /// Accepts a thread that has become free, and returns whether there is work for it.
    package func offerWorker() -> Bool {
        state.withLock { state in
            state.isStarving = false
            return state.machine.couldStart && state.threads.join()
        }
    }

    /// Works for the queue on the calling thread until nothing can begin.
    package func work() {
        let notes = ThreadNotes.current
        let worker = WorkerContext(engine: self, outer: .of(notes))
        notes.worker = worker
        #if canImport(Darwin)
            var quality = ThreadQuality()
            defer { quality.take(.default) }
        #endif
        while let job = nextJob(for: worker) {
            worker.take(job.key)
            #if canImport(Darwin)
                quality.take(job.work.quality)
            #endif
            // Without a pool, autoreleased objects of a body would live as long as the thread has work.
            autoreleasepool { run(job, worker) }
        }
        notes.worker = worker.outer
    }

    /// Returns the next job of the thread, or `nil` if the thread must leave.
    fileprivate func nextJob(for worker: WorkerContext) -> QueueMachine.Job? {
        while let job = requestJob(for: worker) {
            // The thread may have waited while it released the last entry. Other threads then got the job.
            if worker.notBegun != nil { return job }
        }
        return nil
    }

    fileprivate func run(_ job: QueueMachine.Job, _ worker: WorkerContext) {
        switch job.work {
        case .none: break
        case .closure(let body):
            body()
            worker.isConcluding = true
            worker.ending = .success
        case .operation(let operation):
            worker.operation = operation.life
            if job.asks, !askForCategories(of: operation, job.key) { return }
            recording.recorder?.recordLinks(of: operation)
            if !operation.beginHosted() {
                operation.yieldCategories()
                putBack(operation, job.key.slot)
            }
        case .plain(let entry):
            recording.recorder?.recordLinks(of: entry.operation)
            if !entry.begin() { putBack(entry, job.key.slot) }
        }
    }

    /// Asks for the categories of an operation that has a slot.
    ///
    /// If the operation must not begin now, the method gives up the slot and returns `false`. The thread holds no lock
    /// of the queue while it asks.
    private func askForCategories(of operation: ManagedOperation, _ key: QueueMachine.Key) -> Bool {
        if operation.askForCategories(in: self) {
            if apply({ state, _ in state.machine.beginAsked(key) }) { return true }
            // The queue was suspended or its width reduced in the meantime, so other operations may have the
            // categories.
            operation.yieldCategories()
        }
        applyAfterReclaiming { state, after in
            guard state.machine.stopAsking(key), let place = operation.place(in: self) else { return }
            if place.slot == key.slot { put(operation, at: place, &state, &after) }
        }
        return false
    }

    /// Begins the entry that a borrowed thread took.
    func beginBriefly(_ job: QueueMachine.Job) {
        guard case .operation(let operation) = job.work else { return }
        recording.recorder?.recordLinks(of: operation)
        let notes = ThreadNotes.current
        // If the operation ends immediately, another thread must handle the consequences, to avoid a recursion.
        notes.isBorrowed = false
        if !operation.beginHosted() { putBack(operation, job.key.slot) }
        notes.isBorrowed = true
    }

    /// Puts back an operation that got a dependency just before it began.
    private func putBack(_ operation: ManagedOperation, _ slot: QueueMachine.Slot) {
        applyAfterReclaiming { state, after in
            // The operation may have ended in the meantime, and the slot may belong to another entry.
            guard let place = operation.place(in: self), place.slot == slot else { return }
            state.machine.place(slot, .waiting)
            put(operation, at: place, &state, &after)
        }
    }

    /// Returns an assigned job, or reports the finished work of the thread and takes its next job.
    ///
    /// Rare consequences of that work come first, because some of them may take long and a job that was already taken
    /// must not wait. The thread then requests the job again.
    private func requestJob(for worker: WorkerContext, afterRareActions: Bool = false) -> QueueMachine.Job? {
        if worker.batch != nil, let job = worker.nextAssigned() { return job }
        // `last` may be the last reference, and code that runs when the operation is freed may wait. So the operation
        // is kept until the context shows the next job of the thread.
        let last = exchange(&worker.operation, with: nil)
        var after = After(isBorrowed: false)
        var mustAskAgain = false
        let passTime = recording.recorder?.passTime()
        let job = state.withLock { state -> QueueMachine.Job? in
            passTime?()
            applyChanges(of: worker, &state, &after)
            // A body that resumes replaces this thread.
            let mayContinue = state.threads.mayContinue && state.returning.isEmpty
            if mayContinue, !afterRareActions, state.machine.couldStart {
                collectRareActions(&state, &after)
                if after.rareActions != nil {
                    callThread(&state, &after, reserving: 1)
                    mustAskAgain = true
                    return nil
                }
            }
            if state.machine.counts.assigned > 0 {
                // A thread without other work helps with entries that were assigned to other threads.
                if mayContinue, !state.machine.canStart, state.machine.couldStart { reclaimAssigned(&state, &after) }
                reclaimOldest(&state, &after)
            }
            let job = mayContinue ? state.machine.take() : nil
            if let job {
                if state.machine.counts.readyInFront > 1 { assign(to: worker, after: job, &state) }
            } else {
                state.threads.leave()
                if worker.batch != nil { forgetBatch(of: worker, &state) }
                worker.hasLeft = true
            }
            conclude(&state, &after)
            return job
        }
        worker.clear()
        worker.notBegun = job?.key
        perform(after)
        extendLifetime(last)
        return mustAskAgain ? requestJob(for: worker, afterRareActions: true) : job
    }

    /// Applies the changes that the thread has not reported yet.
    fileprivate func applyChanges(of worker: WorkerContext, _ state: inout State, _ after: inout After) {
        if let batch = worker.batch { reclaim(batch, &state, &after) }
        if let key = worker.key, let ending = worker.ending { end(key.slot, ending, &state, &after) }
        for operation in worker.readied { place(operation, &state, &after) }
    }

    // A queue in which nothing begins because bodies block.

    private func reportBlock(of threads: Int) {
        OperationDiagnostics.report(
            .tooManyWaits, by: name,
            "\(threads) bodies block their threads, so no other operation can begin until one of them returns. If they "
                + "wait for operations of this queue, use startAndWait(), dependencies or async bodies, because the "
                + "queue detects these waits."
        )
    }

    func watchForStall() {
        guard source.watchesForStalls else { return }
        _ = SystemClock.shared.schedule(after: .milliseconds(4)) { [weak self] in self?.lookForStall() }
    }

    private func lookForStall() {
        let (now, usedTime) = (source.now, source.usedTime)
        let (joining, continues, blocked) = apply { state, after in
            reclaimAssigned(&state, &after)
            let look = QueueThreads.Look(starts: state.machine.starts, usedTime: usedTime, now: now)
            let joining = state.threads.look(look, canStart: state.machine.couldStart)
            return (joining, state.threads.isWatched, state.threads.takeBlockReport() ? state.threads.limit : nil)
        }
        if let blocked { reportBlock(of: blocked) }
        for _ in 0..<joining { provideWorker() }
        if continues { watchForStall() }
    }
}

// Bodies that wait.
extension QueueEngine {
    /// Gives up the slot of the body on this thread, which is about to wait through a call of this package.
    ///
    /// - Returns: `false` if the operation needed no slot before, such as a group that waits for its children.
    func bodyWillWait(_ worker: WorkerContext, _ key: QueueMachine.Key) -> Bool {
        var hadSlot = false
        report(worker) { state in
            hadSlot = state.machine.hasSlot(key)
            state.machine.rest(key)
            state.threads.leave()
        }
        return hadSlot
    }

    /// Prepares a thread for a wait between two bodies, when code that runs during a release waits.
    ///
    /// The thread gives up the entry that it has taken, which may be the one that it is about to wait for.
    func threadWillWait(_ worker: WorkerContext) {
        let notBegun = exchange(&worker.notBegun, with: nil)
        apply { state, after in
            if let batch = worker.batch { reclaim(batch, &state, &after) }
            if let notBegun, state.machine.giveBack(notBegun),
                case .operation(let operation) = state.machine.entries[Int(notBegun.slot)].work
            {
                // The operation may have changed since it was taken.
                place(operation, &state, &after)
            }
            state.threads.leave()
        }
    }

    /// Ends that wait.
    ///
    /// If there are enough threads without this one, it leaves when it requests work.
    func threadDidWait() {
        state.withLock { $0.threads.workers += 1 }
    }

    /// Ends the wait of a body, which resumes when there is a slot, or immediately if its operation has ended.
    func bodyDidWait(_ key: QueueMachine.Key) {
        let turn = DispatchSemaphore(value: 0)
        let body = ReturningBody(key: key, turn: .thread(turn))
        let mustWait = apply { state, after in
            let isFirst = state.returning.isEmpty || !state.machine.isResting(body.key)
            if isFirst, state.machine.resume(body.key) {
                state.threads.workers += 1
                return false
            }
            reclaimAssigned(&state, &after)
            state.returning.append(body)
            return true
        }
        if mustWait { turn.wait() }
    }

    /// Takes a slot again for the hook of an operation that waited on a thread of another pool, and waits until there
    /// is one.
    ///
    /// If the operation has ended, the hook needs no slot.
    func hookDidWait(_ key: QueueMachine.Key) {
        let turn = DispatchSemaphore(value: 0)
        let mustWait = applyAfterReclaiming { state, _ in
            if !state.machine.isResting(key) || state.returning.isEmpty && state.machine.resume(key) {
                return false
            }
            state.returning.append(ReturningBody(key: key, turn: .thread(turn)))
            return true
        }
        guard mustWait else { return }
        turn.wait()
        // The thread does not belong to the queue.
        state.withLock { $0.threads.leave() }
    }

    /// Resumes bodies that wait for a slot of an operation that has ended, because they no longer need one.
    ///
    /// These bodies do not wait behind other bodies, which may wait for them.
    func resumeWithoutSlot(_ slot: QueueMachine.Slot, _ state: inout State, _ after: inout After) {
        let bodies = state.returning.removeThreads(of: state.machine.entries.key(of: slot))
        state.threads.workers += bodies.count
        if !bodies.isEmpty { after.need().grants += bodies }
    }

    /// Returns the level of an entry, or `nil` if the entry no longer exists.
    func level(of key: QueueMachine.Key) -> QueueLevel? {
        state.withLock { $0.machine.entries.has(key) ? $0.machine.entries[Int(key.slot)].level : nil }
    }

    /// The number of bodies that wait for a slot to resume, for tests.
    package var returningCount: Int { state.withLock { $0.returning.count } }

    /// Reports the changes that the thread has not reported yet, before code of the user runs on it.
    ///
    /// If `willTakeNext` is `true`, the thread usually takes the next entry itself. Another thread is then requested
    /// only if there are more entries, or if nothing begins for some time.
    func flush(_ worker: WorkerContext, willTakeNext: Bool = false) {
        report(worker, reserving: willTakeNext ? 1 : 0) { _ in }
    }

    /// Reports the changes that the thread has not reported yet, together with an event.
    ///
    /// The context is cleared before the actions are performed, because these may add changes to the context again.
    private func report(_ worker: WorkerContext, reserving: Int = 0, _ event: (inout State) -> Void) {
        var after = After(isBorrowed: false)
        let passTime = recording.recorder?.passTime()
        state.withLock { state in
            passTime?()
            applyChanges(of: worker, &state, &after)
            event(&state)
            conclude(&state, &after, reserving: reserving)
        }
        worker.clearChanges()
        perform(after)
    }
}

/// A thread that a test simulates, where taking a job and running it are separate steps.
///
/// Other simulated threads may take steps in between.
package final class ManualWorker: Sendable {
    // Sendable: only the thread of the test uses it, one step at a time.
    private nonisolated(unsafe) let worker: WorkerContext
    private nonisolated(unsafe) var taken: QueueMachine.Job?

    package init(_ engine: QueueEngine) {
        worker = WorkerContext(engine: engine)
    }

    /// Whether the thread has taken a job that it has not run yet.
    package var isBusy: Bool { taken != nil }

    /// Performs a step, or returns `false` if there was no work and the thread leaves.
    package func step() -> Bool {
        let notes = ThreadNotes.current
        let outer = exchange(&notes.worker, with: worker)
        defer { notes.worker = outer }
        if let job = exchange(&taken, with: nil) {
            worker.engine.run(job, worker)
            return true
        }
        guard let job = worker.engine.nextJob(for: worker) else { return false }
        worker.take(job.key)
        taken = job
        return true
    }
}

#if canImport(Darwin)
    /// The quality of service of a thread that works for a queue, which is that of the operation it runs.
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
            case .plain(let entry): entry.operation.qualityOfService
            }
        }
    }
#endif

// Entries that were assigned to threads in advance. See `AssignedEntries`.
extension QueueEngine {
    /// Assigns some of the next entries to a thread if there are many entries and bodies are short.
    ///
    /// Equally many entries are left for each of the other threads. A thread that runs out of work takes back the
    /// entries that were assigned to other threads. So no assigned entry waits while a thread that could run it has no
    /// work.
    func assign(to worker: WorkerContext, after job: QueueMachine.Job, _ state: inout State) {
        // Entries are only assigned if there is no observer of each step and no limit on the capacity.
        guard !job.asks, state.machine.journal == nil, state.capacity == .max, !recording.isRecording else { return }
        worker.batchSize?.update(source.now)
        guard let size = worker.batchSize else {
            worker.batchSize = BatchSize(source.now)
            return
        }
        let count = min(size.count - 1, state.machine.counts.readyInFront / max(state.threads.limit, 1))
        guard count > 0 else { return }
        let jobs = state.machine.assign(count)
        guard !jobs.isEmpty else { return }
        let batch = worker.batch ?? AssignedEntries()
        batch.assign(state.machine.takeJob(job.key), then: jobs)
        forgetBatch(of: worker, &state)
        worker.batch = batch
        state.batches.append((batch, since: state.machine.starts))
    }

    /// The number of entries that are assigned to threads, for tests.
    package var assignedCount: Int { state.withLock { $0.machine.counts.assigned } }

    /// Forgets the empty list of a thread that gets another list or leaves.
    func forgetBatch(of worker: WorkerContext, _ state: inout State) {
        state.batches.removeAll { $0.batch === worker.batch }
        worker.batch = nil
    }

    /// Takes back all assigned entries, so that the queue knows the stage of each entry.
    func reclaimAssigned(_ state: inout State, _ after: inout After) {
        guard state.machine.counts.assigned > 0 else { return }
        for assigned in state.batches.reversed() { reclaim(assigned.batch, &state, &after) }
    }

    /// Takes back entries that were assigned long ago and may be behind a body that takes a long time.
    func reclaimOldest(_ state: inout State, _ after: inout After) {
        guard let oldest = state.batches.first, state.machine.starts &- oldest.since > 64 else { return }
        state.batches.removeFirst()
        state.batches.append((oldest.batch, since: state.machine.starts))
        reclaim(oldest.batch, &state, &after)
    }

    func reclaim(_ batch: AssignedEntries, _ state: inout State, _ after: inout After) {
        let reclaimed = batch.reclaim()
        // The ended entries have also begun since they were assigned.
        state.machine.starts &+= UInt64(reclaimed.ended.count)
        for ended in reclaimed.ended { end(ended.slot, .success, &state, &after) }
        if let current = reclaimed.current { state.machine.beginAssigned(current) }
        for job in reclaimed.waiting { state.machine.reclaim(job) }
    }

    /// Applies an event that requires the queue to know the stage of each entry.
    @discardableResult
    func applyAfterReclaiming<Result>(_ event: (inout State, inout After) -> Result) -> Result {
        apply { state, after in
            reclaimAssigned(&state, &after)
            return event(&state, &after)
        }
    }
}
