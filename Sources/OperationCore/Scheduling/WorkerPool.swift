// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A source of threads for queues, which is the pool of the process or a test that simulates the threads.
package protocol WorkerSource: Sendable {
    /// Provides a thread that calls the engine's `work()` once, or returns `false` if there is none.
    func provide(for engine: QueueEngine) -> Bool

    /// Records that the queue got no thread, so that it is offered one later with `offerWorker()`.
    ///
    /// - Returns: `false`, without any effect, if there is a thread by now.
    func remember(_ engine: QueueEngine) -> Bool

    /// Records that another thread waits within a body.
    ///
    /// - Returns: `false` if no thread would be left, so that the thread must not wait.
    func beginRest() -> Bool

    func endRest()

    /// Whether threads block in real time, so that a queue in which nothing begins must get more threads.
    var watchesForStalls: Bool { get }

    /// The time in nanoseconds, by which the duration of bodies is measured.
    var now: UInt64 { get }

    /// The processor time of the process in nanoseconds, on all cores together.
    var usedTime: UInt64 { get }
}

extension WorkerSource {
    /// Zero, for sources that do not watch for stalls.
    package var usedTime: UInt64 { 0 }
}

/// A pool of threads for the bodies of operations, which all queues of the process share.
///
/// When bodies block, Dispatch would add one thread per second. This pool replaces a body that waits immediately.
/// Threads without work are kept for some time and then ended. There are never more threads than ``threadLimit``.
package final class WorkerPool: WorkerSource {
    package static let shared = WorkerPool()

    /// The maximum number of threads in the process, including threads whose bodies wait.
    package static let threadLimit = ThreadNotes.mostQueueThreads

    /// The size of a thread's stack in address space, of which only the used part takes memory.
    private static let stackSize = 4 << 20

    /// The time for which a thread waits for work before it ends.
    private static let idleTimeout = DispatchTimeInterval.seconds(5)

    private final class Worker: Sendable {
        let semaphore = DispatchSemaphore(value: 0)
        let assignment: Locked<QueueEngine?>

        init(for engine: QueueEngine) { assignment = Locked(engine) }
    }

    private struct State {
        var idle: [Worker] = []
        var count = 0
        /// The number of threads that wait within a body.
        var resting = 0
        /// The queues that got no thread, each once.
        var starving = Fifo<QueueEngine>()
        var isStarving: Set<ObjectIdentifier> = []
    }

    private let state = Locked(State())

    /// The number of threads.
    package var count: Int { state.withLock { $0.count } }

    package func provide(for engine: QueueEngine) -> Bool {
        enum Choice { case wake(Worker), make, refuse }
        let choice: Choice = state.withLock { state in
            if let worker = state.idle.popLast() { return .wake(worker) }
            guard state.count < Self.threadLimit else { return .refuse }
            state.count += 1
            return .make
        }
        switch choice {
        case .wake(let worker):
            worker.assignment.withLock { $0 = engine }
            worker.semaphore.signal()
        case .make:
            let worker = Worker(for: engine)
            let thread = Thread { [self] in serve(worker) }
            thread.name = "OperationKit"
            thread.stackSize = Self.stackSize
            thread.start()
        case .refuse: return false
        }
        return true
    }

    package func remember(_ engine: QueueEngine) -> Bool {
        state.withLock { state in
            guard state.idle.isEmpty, state.count >= Self.threadLimit else { return false }
            if state.isStarving.insert(ObjectIdentifier(engine)).inserted { state.starving.append(engine) }
            return true
        }
    }

    private func serve(_ worker: Worker) {
        while true {
            if let engine = worker.assignment.withLock({ exchange(&$0, with: nil) }) { engine.work() }
            while let engine = nextStarving(orIdle: worker) {
                if engine.offerWorker() { engine.work() }
            }
            guard worker.semaphore.wait(timeout: .now() + Self.idleTimeout) == .timedOut else { continue }
            let isIdle = state.withLock { state in
                guard let index = state.idle.firstIndex(where: { $0 === worker }) else { return false }
                state.idle.remove(at: index)
                state.count -= 1
                return true
            }
            if isIdle { return }
            // Another thread has just taken this worker from the list and is about to signal it.
            worker.semaphore.wait()
        }
    }

    /// Returns a queue that got no thread before, or marks the worker as idle and returns `nil` if there is none.
    private func nextStarving(orIdle worker: Worker) -> QueueEngine? {
        state.withLock { state in
            if let engine = state.starving.popFirst() {
                state.isStarving.remove(ObjectIdentifier(engine))
                return engine
            }
            state.idle.append(worker)
            return nil
        }
    }

    package var watchesForStalls: Bool { true }

    package var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

    package var usedTime: UInt64 {
        var time = timespec()
        guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return 0 }
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    package func beginRest() -> Bool {
        state.withLock { state in
            guard state.resting + 1 < Self.threadLimit else { return false }
            state.resting += 1
            return true
        }
    }

    package func endRest() { state.withLock { $0.resting -= 1 } }
}

/// The state of a thread that works for a queue.
///
/// The state is deliberately not `Sendable`. Only that thread uses the state, in steps that do not overlap. So no
/// access to it is checked at run time.
package final class WorkerContext: ThreadWork {
    let engine: QueueEngine
    /// The context of the enclosing body, if a body works for another queue.
    let outer: WorkerContext?
    /// The further entries that were assigned to the thread, once the queue has assigned some.
    @exclusivity(unchecked) var batch: AssignedEntries?
    /// The number of entries to assign at a time, once there were several for the thread.
    @exclusivity(unchecked) var batchSize: BatchSize?
    /// The entry that is running, or `nil` between two entries.
    @exclusivity(unchecked) private(set) var key: QueueMachine.Key?
    /// The operation whose body is running.
    @exclusivity(unchecked) var operation: ManagedOperation?
    /// The entry that the thread has taken but not begun, while it releases the previous one.
    @exclusivity(unchecked) var notBegun: QueueMachine.Key?
    /// Whether the operation gave up its slot for the wait that is in progress on this thread.
    @exclusivity(unchecked) private var gaveUpSlot = false
    /// Whether the body has returned, so that no code of the user runs before the thread requests more work.
    @exclusivity(unchecked) var isConcluding = false
    /// The ending of the entry, once it has ended, which is reported to the queue when the thread requests the next
    /// entry.
    @exclusivity(unchecked) var ending: LifecycleMachine.Ending?
    /// The operations of the same queue that changed after the body returned.
    @exclusivity(unchecked) var readied: [ManagedOperation] = []

    package init(engine: QueueEngine, outer: WorkerContext? = nil) {
        self.engine = engine
        self.outer = outer
    }

    /// Returns the context of a thread, because there is no other kind.
    static func of(_ notes: ThreadNotes) -> WorkerContext? {
        if let worker = notes.worker { unsafeDowncast(worker, to: WorkerContext.self) } else { nil }
    }

    func take(_ key: QueueMachine.Key) {
        self.key = key
        notBegun = nil
        batchSize?.ran += 1
    }

    /// Returns the next assigned entry, if the only thing to report about the last entry is its success.
    func nextAssigned() -> QueueMachine.Job? {
        guard let batch, let key, ending == .success, readied.isEmpty else { return nil }
        guard let (next, old) = batch.next(after: key) else { return nil }
        let last = exchange(&operation, with: nil)
        clear()
        notBegun = next.key
        // Releasing these may run code that makes an operation ready or waits. The thread has no unreported changes by
        // now.
        extendLifetime((last, old))
        return next
    }

    override func bodyDidReturn(of operation: Operation) {
        if self.operation === operation { isConcluding = true }
    }

    override func reportChanges() {
        // Operations that the user's code makes ready are reported immediately, because that code may wait for them.
        isConcluding = false
        if ending != nil || !readied.isEmpty { engine.flush(self) }
    }

    override func reportReadied() {
        if readied.isEmpty { return }
        isConcluding = false
        engine.flush(self, willTakeNext: true)
    }

    override func willBlock(for operation: Operation?) -> Bool {
        let awaited = operation as? ManagedOperation
        // Between two bodies, code that runs during a release waits.
        guard let key else {
            engine.threadWillWait(self)
            guard engine.source.beginRest() else {
                engine.threadDidWait()
                return false
            }
            awaited?.raise(forBodyOf: .veryLow)
            return true
        }
        guard engine.source.beginRest() else { return false }
        // The operation is raised before the slot is given up, so that it gets the slot.
        awaited?.raise(forBodyOf: self.operation?.core.withLock { $0.urgency } ?? engine.level(of: key) ?? .veryLow)
        gaveUpSlot = engine.bodyWillWait(self, key)
        return true
    }

    override func didBlock() {
        let needsSlot = exchange(&gaveUpSlot, with: false)
        if let key, needsSlot { engine.bodyDidWait(key) }
        engine.source.endRest()
        if !needsSlot { engine.threadDidWait() }
    }

    func clear() {
        key = nil
        isConcluding = false
        clearChanges()
    }

    /// Clears the changes after they were reported.
    func clearChanges() {
        ending = nil
        if readied.count == 1 {
            readied.removeLast()
        } else if !readied.isEmpty {
            readied.removeAll(keepingCapacity: readied.count <= 1024)
        }
    }
}

/// Entries that were assigned to a thread in advance because bodies are short.
///
/// The thread runs them one after another in its one slot, without asking the queue. If two threads asked the queue for
/// each short body, they would spend their time on moving the queue's memory between their caches.
///
/// When the queue needs the exact stage of each entry, it first takes all assigned entries back with
/// ``QueueEngine/reclaimAssigned(_:_:)``. Examples are a change of a setting, a snapshot, a cancellation, a more urgent
/// entry, and a thread without work.
final class AssignedEntries: Sendable {
    struct State {
        /// The entries that have not begun, with the next one at the end.
        var waiting: [QueueMachine.Job] = []
        /// The entries that have ended, in their order.
        var ended: [QueueMachine.Key] = []
        /// The entry that is running, if it began after the assignment.
        var current: QueueMachine.Job?
    }

    private let state = Locked(State())

    /// Assigns the entries that the thread must run after the current one, in this order.
    func assign(_ current: QueueMachine.Job, then jobs: [QueueMachine.Job]) {
        state.withLock { state in
            state.current = current
            state.waiting = jobs.reversed()
        }
    }

    /// Returns the next entry after the last one has ended, or `nil` without any effect if there is none.
    ///
    /// The result contains the ended entry, which must be released immediately. Its contents must not wait for the
    /// following bodies.
    func next(after ended: QueueMachine.Key) -> (next: QueueMachine.Job, old: QueueMachine.Job?)? {
        state.withLock { state in
            guard let next = state.waiting.popLast() else { return nil }
            state.ended.append(ended)
            return (next, exchange(&state.current, with: next))
        }
    }

    func reclaim() -> State { state.withLock { exchange(&$0, with: State()) } }
}

/// The number of entries that a thread takes at a time, which grows while bodies are short.
struct BatchSize {
    /// The number of entries, including the one that runs immediately.
    private(set) var count = 1
    /// The number of entries that the thread has taken since the last update.
    var ran = 0
    private var last: UInt64

    static let most = 16
    /// The total duration of a body, in nanoseconds, from which each entry is requested separately.
    static let shortBody: UInt64 = 1_500

    init(_ now: UInt64) { last = now }

    /// Updates the number when the thread requests more work.
    mutating func update(_ now: UInt64) {
        let isShort = (now &- last) / UInt64(max(ran, 1)) < Self.shortBody
        (last, ran) = (now, 0)
        count = isShort ? min(count * 2, Self.most) : 1
    }
}

/// A thread on which operations of queues end, and which then begins the next entry of the queue if that is brief.
///
/// Waking a thread of the queue costs more than a body that only passes the work on.
package enum BorrowedThread {
    /// Runs `work`, and lets the thread begin the next entry of a queue if an operation of that queue ends in it.
    ///
    /// The thread begins only an entry for which ``ManagedOperation/beginsBriefly`` is `true`.
    package static func run(by threadOwner: (any ThreadOwner)? = nil, _ work: () -> Void) {
        let notes = ThreadNotes.current
        let wasBorrowed = exchange(&notes.isBorrowed, with: true)
        let outer = exchange(&notes.threadOwner, with: threadOwner)
        work()
        notes.isBorrowed = wasBorrowed
        notes.threadOwner = outer
    }

    /// Whether the calling thread works for a queue or belongs to a pool whose threads may block, so that it may wait
    /// for the disk.
    package static var mayBlock: Bool {
        let notes = ThreadNotes.current
        return notes.threadOwner != nil || notes.worker != nil
    }
}

/// The number of threads that work for a queue, and its limit.
///
/// The limit is the number of cores or the width of the queue, whichever is less. If a body waits in a call of this
/// package, another thread immediately takes the place of its thread.
///
/// If no entry begins for some time although one could, the queue checks whether the bodies block in another way or
/// compute. If the process leaves cores idle, the limit doubles, regardless of the width, because a body may still
/// block after its operation has ended. If all cores are busy, more threads would only compete for them. Then one
/// thread is added from time to time, at growing intervals, because the busy threads may belong to other code while the
/// bodies of this queue block.
package struct QueueThreads {
    /// The measurements of one check.
    package struct Look {
        /// The number of entries that have begun.
        let starts: UInt64
        /// The processor time of the process, in nanoseconds.
        let usedTime: UInt64
        /// The time, in nanoseconds.
        let now: UInt64

        package init(starts: UInt64, usedTime: UInt64, now: UInt64) {
            self.starts = starts
            self.usedTime = usedTime
            self.now = now
        }
    }

    /// The number of threads that work for the queue, without those whose bodies wait.
    package var workers = 0
    /// Whether the queue is regularly checked for a stall.
    package private(set) var isWatched = false

    private let cores: Int
    private var base = 1
    private(set) var limit = 1
    private var last: Look?
    /// The time since which no entry has begun.
    private var stalledSince: UInt64 = 0
    private var stallThreshold = firstStallThreshold

    /// The maximum number of threads, without those whose bodies wait.
    package static let mostThreads = 64

    /// The time for which all threads must block before the queue reports it, in nanoseconds.
    private static let longestSilence: UInt64 = 5_000_000_000

    /// Whether no thread can be added, and all have blocked for some seconds although an entry could begin.
    ///
    /// Bodies that block without this package may wait for an entry that cannot begin.
    package private(set) var isBlocked = false
    private var hasReportedBlock = false

    /// The time without a start after which a thread is added although all cores are busy, which doubles each time.
    private static let firstStallThreshold: UInt64 = 250_000_000

    package init(width: Int?, cores: Int = ProcessInfo.processInfo.activeProcessorCount) {
        self.cores = max(cores, 1)
        setWidth(width)
    }

    mutating func setWidth(_ width: Int?) {
        base = min(width ?? .max, cores)
        resetLimit()
    }

    private mutating func resetLimit() {
        limit = base
        stallThreshold = Self.firstStallThreshold
    }

    /// Adds a thread to the count, or returns `false` if the limit is reached.
    package mutating func join() -> Bool {
        guard workers < limit else { return false }
        workers += 1
        return true
    }

    /// Whether the limit is reached.
    var isFull: Bool { workers >= limit }

    /// Whether a thread that has finished an entry may take another one.
    package var mayContinue: Bool { workers <= limit }

    package mutating func leave() {
        workers -= 1
        if workers < base { resetLimit() }
    }

    /// Returns whether the caller must begin to watch for a stall, because there is more work than threads.
    package mutating func beginWatch() -> Bool {
        guard !isWatched else { return false }
        isWatched = true
        last = nil
        return true
    }

    /// Checks whether no entry has begun since the last check, and returns the number of threads to add.
    package mutating func look(_ look: Look, canStart: Bool) -> Int {
        guard canStart else {
            (isWatched, isBlocked) = (false, false)
            return 0
        }
        guard let old = exchange(&last, with: look) else {
            stalledSince = look.now
            return 0
        }
        let areCoresBusy = areCoresBusy(from: old, to: look)
        if look.starts != old.starts {
            stalledSince = look.now
            isBlocked = false
            // The bodies no longer block, so surplus threads leave after their current work.
            if areCoresBusy { limit = base + (limit - base) / 2 }
            return 0
        }
        grow(areCoresBusy, look.now)
        let joining = max(limit - workers, 0)
        workers += joining
        return joining
    }

    /// Returns whether all threads are blocked, but `true` only once.
    mutating func takeBlockReport() -> Bool {
        guard isBlocked else { return false }
        return !exchange(&hasReportedBlock, with: true)
    }

    private mutating func grow(_ areCoresBusy: Bool, _ now: UInt64) {
        // A thread could be added before, but was not requested.
        if workers < limit { return }
        if !areCoresBusy {
            let isFull = limit >= max(Self.mostThreads, base)
            isBlocked = isFull && now &- stalledSince >= Self.longestSilence
            limit = min(limit * 2, max(Self.mostThreads, base))
        } else if now &- stalledSince >= stallThreshold {
            limit = min(limit + 1, max(Self.mostThreads, base))
            stalledSince = now
            stallThreshold *= 2
        }
    }

    /// Returns whether less than half a core, or less than an eighth of all cores, was idle.
    private func areCoresBusy(from old: Look, to new: Look) -> Bool {
        let time = Double(new.now &- old.now), used = Double(new.usedTime &- old.usedTime)
        let idle = time * Double(cores) - used
        return idle < max(time / 2, time * Double(cores) / 8)
    }
}
