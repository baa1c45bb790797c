// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Where a queue gets its threads from: the process's pool, or a test that plays the threads itself.
package protocol WorkerSource: Sendable {
    /// Gives the queue a thread that calls its `work()` once; false if there is none to be had.
    func provide(for engine: QueueEngine) -> Bool

    /// Notes that the queue got none: it will be offered one (`offerWorker()`) when there is. False, and nothing was
    /// noted, if there is one by now.
    func remember(_ engine: QueueEngine) -> Bool

    /// One more thread waits within a body; false, and it must not, if no thread would be left.
    func beginRest() -> Bool

    func endRest()

    /// Whether threads block in real time, so that a queue that stands still should get more.
    var watchesForStalls: Bool { get }

    /// Nanoseconds by which it is known whether bodies are short.
    var now: UInt64 { get }

    /// Nanoseconds of processor time that the process used, on all cores together.
    var usedTime: UInt64 { get }
}

extension WorkerSource {
    /// None, for those that do not watch.
    package var usedTime: UInt64 { 0 }
}

/// Threads of our own for the bodies of operations, shared by all queues of the process.
///
/// Dispatch would give one more thread a second where bodies block; here a body that waits is replaced at once. Threads
/// that have nothing to do are kept for a while and then ended. There are never more than ``threadLimit``.
package final class WorkerPool: WorkerSource {
    package static let shared = WorkerPool()

    /// How many threads there may be in the process, those of bodies that wait included.
    package static let threadLimit = ThreadNotes.mostQueueThreads

    /// How much stack a thread has: address space, of which only what is used takes memory.
    private static let stackSize = 4 << 20

    /// How long a thread waits for something to do before it ends.
    private static let patience = DispatchTimeInterval.seconds(5)

    private final class Worker: Sendable {
        let semaphore = DispatchSemaphore(value: 0)
        let assignment = Locked<QueueEngine?>(nil)
    }

    private struct State {
        var idle: [Worker] = []
        var count = 0
        /// Threads that wait within a body.
        var resting = 0
        /// Queues that got no thread, each once.
        var starving = Fifo<QueueEngine>()
        var isStarving: Set<ObjectIdentifier> = []

        var hasThread: Bool { !idle.isEmpty || count < WorkerPool.threadLimit }
    }

    private let state = Locked(State())

    /// How many threads there are.
    package var count: Int { state.withLock { $0.count } }

    package func provide(for engine: QueueEngine) -> Bool {
        enum Choice { case wake(Worker), make, refuse }
        let choice: Choice = state.withLock { state in
            if let worker = state.idle.popLast() { return .wake(worker) }
            guard state.hasThread else { return .refuse }
            state.count += 1
            return .make
        }
        switch choice {
        case .wake(let worker):
            worker.assignment.withLock { $0 = engine }
            worker.semaphore.signal()
        case .make: makeWorker(for: engine)
        case .refuse: return false
        }
        return true
    }

    package func remember(_ engine: QueueEngine) -> Bool {
        state.withLock { state in
            guard !state.hasThread else { return false }
            if state.isStarving.insert(ObjectIdentifier(engine)).inserted { state.starving.append(engine) }
            return true
        }
    }

    private func makeWorker(for engine: QueueEngine) {
        let worker = Worker()
        worker.assignment.withLock { $0 = engine }
        let thread = Thread { [self] in serve(worker) }
        thread.name = "OperationKit"
        thread.stackSize = Self.stackSize
        thread.start()
    }

    private func serve(_ worker: Worker) {
        while true {
            if let engine = worker.assignment.withLock({ exchange(&$0, with: nil) }) { engine.work() }
            while let engine = nextStarving(orIdle: worker) {
                if engine.offerWorker() { engine.work() }
            }
            guard worker.semaphore.wait(timeout: .now() + Self.patience) == .timedOut else { continue }
            let isIdle = state.withLock { state in
                guard let index = state.idle.firstIndex(where: { $0 === worker }) else { return false }
                state.idle.remove(at: index)
                state.count -= 1
                return true
            }
            if isIdle { return }
            // Somebody took it from the list just now, and its signal is on the way.
            worker.semaphore.wait()
        }
    }

    /// A queue that got no thread before; if there is none, the worker is idle from now on.
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

/// What a thread that works for a queue has in hand.
///
/// Not Sendable on purpose: only touched by that thread, in steps that do not overlap. So no access to it is checked at run
/// time.
package final class WorkerSeat {
    let engine: QueueEngine
    /// The seat around, where a body works off another queue.
    let outer: WorkerSeat?
    /// What the thread was dealt beyond that.
    let hand = AssignedEntries()
    /// Whether the queue knows the hand.
    @exclusivity(unchecked) var isHandKnown = false
    @exclusivity(unchecked) var pace = DealingPace()
    /// How many bodies returned since the pace was looked at.
    @exclusivity(unchecked) var finishedCount = 0
    /// The entry that is being run.
    @exclusivity(unchecked) private(set) var key = none
    /// The operation whose body it is.
    @exclusivity(unchecked) var operation: ManagedOperation?
    /// What the thread has taken and not begun, as long as it lets go of what ended before.
    @exclusivity(unchecked) var unbegun: QueueMachine.Key?
    /// Whether it counts as one of the queue's threads no more.
    @exclusivity(unchecked) var hasLeft = false
    /// Whether the body returned, so that nothing of the user's comes before the thread asks for more work.
    @exclusivity(unchecked) var isConcluding = false
    /// Whether the entry ended: told to the queue together with the question for the next.
    @exclusivity(unchecked) var hasEnded = false
    @exclusivity(unchecked) var ending = LifecycleMachine.Ending.success
    /// Operations of the same queue about which something changed while the thread concluded.
    @exclusivity(unchecked) var readied: [ManagedOperation] = []

    package init(engine: QueueEngine, outer: WorkerSeat? = nil) {
        self.engine = engine
        self.outer = outer
    }

    var slot: QueueMachine.Slot { key.slot }

    /// How urgent the entry is that is being run.
    var urgency: QueueLevel {
        operation.map { $0.core.withLock { $0.urgency } } ?? engine.level(of: key) ?? .veryLow
    }

    private static let none = QueueMachine.Key(slot: -1, generation: 0)

    func take(_ key: QueueMachine.Key) {
        self.key = key
        unbegun = nil
        finishedCount += 1
    }

    /// The next of those that the thread was dealt, if all that is to be told of the last is that it succeeded.
    func nextDealt() -> QueueMachine.Job? {
        guard isHandKnown, hasEnded, ending == .success, readied.isEmpty else { return nil }
        guard let (next, old) = hand.next(after: key) else { return nil }
        let last = exchange(&operation, with: nil)
        clear()
        unbegun = next.key
        // What it holds may make something ready as it goes, or wait: by now there is nothing that this thread keeps back.
        withExtendedLifetime((last, old)) {}
        return next
    }

    /// Tells the queue what this thread kept back for it, before a rule or a conversion of the user's runs.
    static func flushCurrent() {
        guard let seat = ThreadNotes.current.seat else { return }
        // What the user's code makes ready is told at once: it may wait for it.
        seat.isConcluding = false
        if seat.hasEnded || !seat.readied.isEmpty { seat.engine.flush(seat) }
    }

    /// Tells the queue what got ready, before something is let go of that may be the user's.
    static func tellReadied() {
        guard let seat = ThreadNotes.current.seat, !seat.readied.isEmpty else { return }
        seat.isConcluding = false
        seat.engine.flush(seat, isBackSoon: true)
    }

    func clear() {
        key = Self.none
        isConcluding = false
        forgetNews()
    }

    /// The queue has been told.
    func forgetNews() {
        hasEnded = false
        if readied.count == 1 {
            readied.removeLast()
        } else if !readied.isEmpty {
            readied.removeAll(keepingCapacity: readied.count <= 1024)
        }
    }
}

/// Entries that a thread was dealt in advance because bodies are short: it runs them one after another without a word to
/// the queue, in the one slot that it has there.
///
/// Where two threads ask a queue for each tiny body, they spend their time in handing each other what the queue knows.
/// Whoever needs to know exactly where entries stand takes all of it back first (``QueueEngine/settle(_:_:)``): so do
/// settings, snapshots, cancellations, more urgent entries, and a thread that has nothing left to do.
final class AssignedEntries: Sendable {
    private struct State {
        /// The next one is the last.
        var waiting: [QueueMachine.Job] = []
        /// Those that ended, in their order.
        var ended: [QueueMachine.Key] = []
        /// The one that is being run, since the hand was dealt.
        var current: QueueMachine.Job?
    }

    /// What becomes known when a hand is taken back.
    struct News {
        var ended: [QueueMachine.Key]
        var current: QueueMachine.Job?
        /// Those that have not begun, in their order.
        var waiting: [QueueMachine.Job]
    }

    private let state = Locked(State())

    /// Gives the thread what it is to run after the present one, in this order.
    func deal(_ current: QueueMachine.Job, then jobs: [QueueMachine.Job]) {
        state.withLock { state in
            state.current = current
            state.waiting = jobs.reversed()
        }
    }

    /// The next one, now that the last has ended; nil, and nothing is noted, if there is none.
    ///
    /// With it comes what ended, to be let go of at once, and not with all of the hand: what it holds must not wait for the
    /// bodies that follow.
    func next(after ended: QueueMachine.Key) -> (next: QueueMachine.Job, old: QueueMachine.Job?)? {
        state.withLock { state in
            guard let next = state.waiting.popLast() else { return nil }
            state.ended.append(ended)
            return (next, exchange(&state.current, with: next))
        }
    }

    func takeBack() -> News {
        state.withLock { state in
            let old = exchange(&state, with: State())
            return News(ended: old.ended, current: old.current, waiting: old.waiting.reversed())
        }
    }
}

/// How many entries a thread takes at once: more as long as bodies are short.
struct DealingPace {
    /// How many, the one included that it runs at once.
    private(set) var count = 1
    private var last: UInt64 = 0

    static let most = 16
    /// How long a body takes, all that belongs to it included, from which on each is asked for by itself.
    static let shortBody: UInt64 = 1_500

    /// The thread asks for more at that moment, and ran so many since it last asked.
    mutating func note(_ now: UInt64, ran count: Int) {
        let isShort = (now &- last) / UInt64(max(count, 1)) < Self.shortBody
        last = now
        self.count = isShort ? min(self.count * 2, Self.most) : 1
    }
}

/// A thread on which operations of queues end, and which begins there what they made room for, if that takes but a moment.
///
/// To wake a thread of the queue's for a body that only asks somebody else to do the work costs more than the body.
package enum LentThread {
    /// Runs `work`; where something in it ends, the thread begins the next entry of that queue itself, if that is
    /// ``ManagedOperation/beginsBriefly``.
    package static func lend(by lender: (any ThreadLender)? = nil, _ work: () -> Void) {
        let notes = ThreadNotes.current
        let wasLent = exchange(&notes.isLent, with: true)
        let outer = exchange(&notes.lender, with: lender)
        work()
        notes.isLent = wasLent
        notes.lender = outer
    }
}

/// How many threads work for a queue, and how many may.
///
/// As many as there are cores, or as the queue is wide if that is less. Bodies that wait through our own calls are
/// replaced at once. Where nothing begins for a moment although something could, somebody looks whether the bodies block
/// in another way or compute: if the process leaves cores idle, the number of threads doubles, whatever the width, for a
/// body may block whose operation has ended. If it does not, more threads would only get into each other's way. Then one
/// comes from time to time, ever less often, for it may be others that compute while the bodies of this queue block.
package struct QueueThreads {
    /// What is known at one look.
    package struct Look {
        /// How often something began.
        let starts: UInt64
        /// How much processor time the process used, in nanoseconds.
        let usedTime: UInt64
        /// The time, in nanoseconds.
        let now: UInt64

        package init(starts: UInt64, usedTime: UInt64, now: UInt64) {
            self.starts = starts
            self.usedTime = usedTime
            self.now = now
        }
    }

    /// Threads that work for the queue, without those whose bodies wait.
    package var workers = 0
    /// Whether somebody looks from time to time if the queue stands still.
    package private(set) var isWatched = false

    private let cores: Int
    private var base = 1
    private var limit = 1
    private var last: Look?
    /// Since when nothing began.
    private var standsSince: UInt64 = 0
    private var patience = firstPatience

    /// How many threads there may be at most, without those whose bodies wait.
    package static let mostThreads = 64

    /// How long all threads block, in nanoseconds, before the queue reports it.
    private static let longestSilence: UInt64 = 5_000_000_000

    /// Whether no thread can be added, and all have blocked for some seconds while something could begin.
    ///
    /// Bodies that block without the library may wait for what cannot begin.
    package private(set) var isBlocked = false
    private var hasReportedBlock = false

    /// How long nothing begins while all cores are busy before one more thread comes; twice as long each time.
    private static let firstPatience: UInt64 = 250_000_000

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
        patience = Self.firstPatience
    }

    /// Counts one more thread in, if there may be one more.
    package mutating func join() -> Bool {
        guard workers < limit else { return false }
        workers += 1
        return true
    }

    /// How many threads there may be just now.
    package var mostAtOnce: Int { limit }

    /// Whether there may be no more threads just now.
    var isFull: Bool { workers >= limit }

    /// Whether a thread that has finished something may look for more.
    package var mayGoOn: Bool { workers <= limit }

    package mutating func leave() {
        workers -= 1
        if workers < base { resetLimit() }
    }

    /// Whether a watch is to be set, because there is more to do than threads.
    package mutating func beginWatch() -> Bool {
        guard !isWatched else { return false }
        isWatched = true
        last = nil
        return true
    }

    /// Looks whether the queue stood still since the last look; returns how many threads come in addition.
    package mutating func look(_ look: Look, canStart: Bool) -> Int {
        guard canStart else {
            (isWatched, isBlocked) = (false, false)
            return 0
        }
        guard let old = exchange(&last, with: look) else {
            standsSince = look.now
            return 0
        }
        let areCoresBusy = areCoresBusy(from: old, to: look)
        if look.starts != old.starts {
            standsSince = look.now
            isBlocked = false
            // What blocked does so no more: threads that are too many leave after what they run.
            if areCoresBusy { limit = base + (limit - base) / 2 }
            return 0
        }
        grow(areCoresBusy, look.now)
        let joining = max(limit - workers, 0)
        workers += joining
        return joining
    }

    /// Whether all threads are blocked; true only once.
    mutating func takeBlockReport() -> Bool {
        guard isBlocked else { return false }
        return !exchange(&hasReportedBlock, with: true)
    }

    private mutating func grow(_ areCoresBusy: Bool, _ now: UInt64) {
        // A thread that may come has not: it was not asked for.
        if workers < limit { return }
        if !areCoresBusy {
            let isFull = limit >= max(Self.mostThreads, base)
            isBlocked = isFull && now &- standsSince >= Self.longestSilence
            limit = min(limit * 2, max(Self.mostThreads, base))
        } else if now &- standsSince >= patience {
            limit = min(limit + 1, max(Self.mostThreads, base))
            standsSince = now
            patience *= 2
        }
    }

    /// Whether less than half a core, or an eighth of all, was left idle.
    private func areCoresBusy(from old: Look, to new: Look) -> Bool {
        let time = Double(new.now &- old.now), used = Double(new.usedTime &- old.usedTime)
        let idle = time * Double(cores) - used
        return idle < max(time / 2, time * Double(cores) / 8)
    }
}
