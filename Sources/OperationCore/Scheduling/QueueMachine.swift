// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What one queue knows, as a pure value: which entries wait, which may begin, which run, and who comes next.
///
/// It knows nothing of threads, locks or time. Each event costs the same whatever the number of entries.
///
/// ```text
///            dependencies ended           admitted               slot and thread
/// waiting ─────────────────────▶ held ─────────────▶ ready ─────────────────────▶ running ──▶ ended
///    ◀───────────────────────────────────────────────── a dependency was added
/// ```
///
/// Between two barriers lies an *epoch*. Only entries of the front epoch may run; where its last one has ended, the next
/// epoch is the front. A barrier is an epoch of one.
struct QueueMachine {
    typealias Slot = Int32

    /// What an entry does when its turn comes.
    enum Work {
        case none
        case operation(ManagedOperation)
        case foreign(PlainOperationEntry)
        case closure(@Sendable () -> Void)
    }

    /// Which entry is meant: where it stands, and which of those that stood there in turn.
    struct Key {
        var slot: Slot
        var generation: UInt32
    }

    /// What a thread is to run, and which entry that is.
    struct Job {
        let key: Key
        let work: Work
        /// Whether the thread must first ask for the categories of the operation, which has a slot.
        var asks = false
    }

    enum Stage: UInt8 {
        case free
        /// It was just put in, and nobody knows yet whether it may begin.
        case entering
        /// Dependencies of it have not ended.
        case waiting
        /// Something else must let it begin: a condition, a moment, a resource.
        case held
        case ready
        /// A thread was given it in advance: it may be running, or have ended, and only that thread's hand knows.
        case dealt
        case running
        /// It was cancelled before its turn and is being ended, without a slot.
        case ending
    }

    struct Entry {
        var work = Work.none
        var stage = Stage.free
        var level = QueueLevel.normal
        /// Counts up with each change of place, so that a ticket of an old place is known.
        var stamp: UInt32 = 0
        var epoch: UInt32 = 0
        /// Counts up with each entry that stood here, so that one can be told from the next.
        var generation: UInt32 = 0
        /// Whether the entry asks for its categories when it gets a slot.
        var asks = false
        /// Whether the entry is held and has a slot, and a thread asks for its categories.
        var isAsking = false
        /// How often the entry asked for its categories and gave up the slot.
        var refusals: UInt8 = 0
        /// Whether it runs and has given up its slot, because its body waits.
        var isResting = false
        var details: EntryDetails?
    }

    var entries = EntryTable()

    var lines = ReadyLines()
    /// No entry that was dealt is less urgent.
    var dealtLevel = QueueLevel.normal
    var counts = StageCounts()
    /// Slots in use: entries that run, without those whose bodies wait.
    var running = 0
    /// Bodies that gave up their slot because they wait.
    var resting = 0
    /// What those of them wait for that said so.
    var restReasons: [Slot: WaitReason] = [:]

    /// How often something began.
    var starts: UInt64 = 0

    var width = Int.max
    var isSuspended = false
    /// How many are just cancelling all: what they have not come to yet must not begin.
    var holds = 0
    /// How many starts a level may be passed over before one of it is taken; nil for never.
    var ageing: Int? {
        get { lines.ageing }
        set { lines.ageing = newValue }
    }

    /// Entries that are held and have not been asked to seek admission, because a barrier or a suspension held them back.
    var unasked = SlotList()

    var front = QueueEpoch(number: 0)
    var later = QueueEpochs()

    /// Tells those who follow the queue what changes; nil as long as nobody does.
    var journal: QueueJournal?

    /// Entries that have not ended.
    var live: Int {
        counts.entering + counts.waiting + counts.held + counts.ready + counts.dealt + counts.running + counts.ending
    }

    /// How many tickets and notes it holds about entries, those included that are stale.
    var ticketCount: Int { lines.count + unasked.count + later.storedCount }

    /// Whether something could begin if there were a thread for it.
    var canStart: Bool { counts.readyInFront > 0 && hasRoom }

    /// Whether something could begin if there were a thread for it and all that was dealt were taken back.
    var couldStart: Bool { counts.readyInFront + counts.dealt > 0 && hasRoom }

    private var hasRoom: Bool { running < width && !isSuspended && holds == 0 }
}

// Coming and going.
extension QueueMachine {
    /// Puts an entry in; what it waits for is told by `place`.
    mutating func enter(
        _ work: Work, level: QueueLevel = .normal, isBarrier: Bool = false, details: EntryDetails? = nil
    ) -> Slot {
        let slot = entries.insert()
        let epoch = joinEpoch(isBarrier: isBarrier)
        let index = Int(slot)
        entries[index].work = work
        entries[index].stage = .entering
        entries[index].level = level
        entries[index].asks = false
        entries[index].refusals = 0
        entries[index].epoch = epoch
        entries[index].details = details
        counts.entering += 1
        return slot
    }

    /// Moves an entry to the stage in which it stands now, if that is another one.
    mutating func place(_ slot: Slot, _ stage: Stage) {
        let index = Int(slot)
        let old = entries[index].stage
        guard old != stage else { return }
        move(slot, from: old, to: stage)
        journal?.note(.placed(slot, entries[index], from: old))
    }

    private mutating func move(_ slot: Slot, from old: Stage, to stage: Stage) {
        let index = Int(slot)
        leave(index, old)
        entries[index].stage = stage
        counts[stage] += 1
        if stage == .ready { line(up: slot) }
        if stage == .running { running += 1 }
    }

    /// The entry ended; returns what it held, to be let go of outside the lock.
    mutating func end(_ slot: Slot) -> (Work, EntryDetails?) {
        let index = Int(slot)
        leave(index, entries[index].stage)
        let work = exchange(&entries[index].work, with: .none)
        let details = exchange(&entries[index].details, with: nil)
        let epoch = entries[index].epoch
        entries.free(slot)
        leaveEpoch(epoch)
        return (work, details)
    }

    private mutating func leave(_ index: Int, _ old: Stage) {
        counts[old] -= 1
        switch old {
        case .ready:
            // The ticket stays in its line and is known as stale by its stamp.
            entries[index].stamp &+= 1
            if front.covers(entries[index].epoch) {
                counts.readyInFront -= 1
                lines.noteStale(entries, ready: counts.ready)
            }
        case .held: stopAsking(index)
        case .running:
            if entries[index].isResting {
                entries[index].isResting = false
                resting -= 1
                restReasons[QueueMachine.Slot(index)] = nil
            } else {
                running -= 1
            }
        default: break
        }
    }

    /// The entry's level changed while it is in the queue.
    mutating func relevel(_ slot: Slot, _ level: QueueLevel) {
        let index = Int(slot)
        guard entries[index].level != level else { return }
        let isReady = entries[index].stage == .ready
        if isReady { move(slot, from: .ready, to: .entering) }
        entries[index].level = level
        if isReady { move(slot, from: .entering, to: .ready) }
    }
}

// Who comes next.
extension QueueMachine {
    /// Takes the entry whose turn it is and makes it a running one; nil if none may begin.
    mutating func take() -> Job? {
        guard canStart, let slot = lines.takeNext(of: entries) else { return nil }
        let index = Int(slot)
        entries[index].stamp &+= 1
        counts.ready -= 1
        counts.readyInFront -= 1
        running += 1
        if entries[index].asks { return take(asking: slot) }
        entries[index].stage = .running
        counts.running += 1
        starts &+= 1
        journal?.note(.placed(slot, entries[index], from: .ready))
        return Job(key: Key(slot: slot, generation: entries[index].generation), work: entries[index].work)
    }

    /// Takes the entry whose turn it is if it takes but a moment to begin; nil, and nothing changed, if not.
    mutating func takeBrief() -> Job? {
        guard canStart, let slot = lines.peekNext(of: entries),
            case .operation(let operation) = entries[Int(slot)].work, operation.beginsBriefly
        else { return nil }
        return take()
    }

    private mutating func line(up slot: Slot) {
        let index = Int(slot)
        let ticket = Ticket(slot: slot, stamp: entries[index].stamp)
        let epoch = entries[index].epoch
        if front.covers(epoch) {
            counts.readyInFront += 1
            if entries[index].keepsTurn {
                lines.prepend(ticket, entries[index].level)
            } else {
                lines.append(ticket, entries[index].level)
            }
        } else {
            later.addReady(ticket, to: epoch, entries)
        }
    }
}

// Epochs.
extension QueueMachine {
    mutating func joinEpoch(isBarrier: Bool) -> UInt32 {
        if later.isEmpty, !front.isBarrier, !isBarrier {
            front.live += 1
            return front.number
        }
        if isBarrier || later.last?.isBarrier != false { later.append(isBarrier: isBarrier) }
        let number = later.addToLast()
        if front.live == 0 { advance() }
        return number
    }

    mutating func leaveEpoch(_ number: UInt32) {
        guard front.covers(number) else {
            later.remove(from: number)
            return widenFront()
        }
        front.live -= 1
        if front.live == 0, front.isBarrier || !later.isEmpty { advance() }
    }

    /// The front epoch has ended: the next one that has entries may run.
    private mutating func advance() {
        repeat { front = later.popFirst() } while front.live == 0 && (front.isBarrier || !later.isEmpty)
        openFront(exchange(&front.ready, with: []), exchange(&front.held, with: SlotList()))
        widenFront()
    }

    /// Joins to the front what no barrier divides from it any more.
    private mutating func widenFront() {
        while !front.isBarrier, let next = later.first, next.live == 0 || !next.isBarrier {
            let epoch = later.popFirst()
            front.joined += 1
            front.live += epoch.live
            openFront(epoch.ready, epoch.held)
        }
    }

    /// These belong to the front from now on.
    private mutating func openFront(_ ready: [Ticket], _ held: SlotList) {
        for ticket in ready where ticket.isCurrent(entries) {
            counts.readyInFront += 1
            lines.append(ticket, entries[Int(ticket.slot)].level)
        }
        unasked.append(held)
    }

    /// Whether the entries of an epoch may run.
    func isFront(_ epoch: UInt32) -> Bool { front.covers(epoch) }

    func isBarrier(_ epoch: UInt32) -> Bool {
        front.covers(epoch) ? front.isBarrier : later.isBarrier(epoch)
    }
}

// Admission.
extension QueueMachine {
    /// Something else than a dependency must let the entry begin; returns whether it may ask for that now.
    ///
    /// Not behind a barrier, and not while the queue is suspended: it would keep others from what it cannot use. It is
    /// among the `takeUnasked` later.
    mutating func hold(_ slot: Slot) -> Bool {
        place(slot, .held)
        let epoch = entries[Int(slot)].epoch
        guard front.covers(epoch) else {
            later.addHeld(slot, to: epoch)
            return false
        }
        if isSuspended { unasked.append(slot) }
        return !isSuspended
    }

    /// Whether there may be some that may ask for their admission now.
    var hasUnasked: Bool { !unasked.isEmpty && !isSuspended }

    /// Takes out those that may ask for their admission now.
    mutating func takeUnasked() -> [ManagedOperation] {
        guard hasUnasked else { return [] }
        return unasked.takeAll().compactMap { slot in
            // The slot may be gone, or another entry's by now.
            guard entries.indices.contains(Int(slot)) else { return nil }
            let entry = entries[Int(slot)]
            guard entry.stage == .held, front.covers(entry.epoch), case .operation(let operation) = entry.work else {
                return nil
            }
            return operation
        }
    }
}

extension QueueMachine.Entry {
    /// Whether the entry comes first when it is ready again, because its turn had come before.
    ///
    /// It does so only some times. The operation that holds the category may need what is behind the entry.
    var keepsTurn: Bool { asks && 1...16 ~= refusals }
}

// Entries that have a slot and ask for their categories. They count as held until they have them.
extension QueueMachine {
    /// Gives an entry a slot, for a thread that is to ask for its categories.
    mutating func take(asking slot: Slot) -> Job {
        let index = Int(slot)
        entries[index].stage = .held
        entries[index].isAsking = true
        counts.held += 1
        journal?.note(.placed(slot, entries[index], from: .ready))
        return Job(
            key: Key(slot: slot, generation: entries[index].generation), work: entries[index].work, asks: true)
    }

    /// Whether a thread asks for the categories of the entry.
    func isAsking(_ key: Key) -> Bool { entries.has(key) && entries[Int(key.slot)].isAsking }

    /// Lets an entry run whose categories were granted; returns false and changes nothing if it may not begin now.
    ///
    /// The queue may have been suspended or made narrower since the entry got its slot.
    mutating func beginAsked(_ key: Key) -> Bool {
        guard isAsking(key), !isSuspended, holds == 0, running <= width else { return false }
        let index = Int(key.slot)
        entries[index].isAsking = false
        entries[index].stage = .running
        counts.held -= 1
        counts.running += 1
        starts &+= 1
        journal?.note(.placed(key.slot, entries[index], from: .held))
        return true
    }

    /// Gives up the slot with which an entry asked; returns false if the entry does not ask any more.
    mutating func stopAsking(_ key: Key) -> Bool {
        guard isAsking(key) else { return false }
        let index = Int(key.slot)
        entries[index].refusals = min(entries[index].refusals, .max - 1) + 1
        stopAsking(index)
        return true
    }

    mutating func stopAsking(_ index: Int) {
        guard entries[index].isAsking else { return }
        entries[index].isAsking = false
        running -= 1
    }
}

// Slots of bodies that wait.
extension QueueMachine {
    /// The body of an entry waits: if that runs, it needs no slot meanwhile.
    ///
    /// Said again with another reason, it changes that.
    mutating func rest(_ key: Key, because reason: WaitReason? = nil) {
        let index = Int(key.slot)
        guard entries.has(key), entries[index].stage == .running else { return }
        if !entries[index].isResting {
            entries[index].isResting = true
            running -= 1
            resting += 1
        }
        guard let reason, restReasons.updateValue(reason, forKey: key.slot) != reason else { return }
        journal?.note(.rested(key.slot, entries[index], reason))
    }

    /// Whether the entry gave up its slot, and has not ended since.
    func isResting(_ key: Key) -> Bool {
        entries.has(key) && entries[Int(key.slot)].isResting
    }

    /// The body wants to go on; false if it has to wait for a slot.
    mutating func resume(_ key: Key) -> Bool {
        guard isResting(key) else { return true }
        guard running < width else { return false }
        entries[Int(key.slot)].isResting = false
        resting -= 1
        running += 1
        if !restReasons.isEmpty, restReasons.removeValue(forKey: key.slot) != nil {
            journal?.note(.wentOn(key.slot, entries[Int(key.slot)]))
        }
        return true
    }
}

// Entries that a thread is given in advance: see `AssignedEntries`.
extension QueueMachine {
    /// Takes out up to so many of those that come next, all equally urgent, for one thread to run in its slot.
    mutating func deal(_ count: Int) -> [Job] {
        guard lines.isOne else { return [] }
        var jobs: [Job] = []
        while jobs.count < count, let slot = lines.takeNext(of: entries) {
            let index = Int(slot)
            if entries[index].asks {
                lines.prepend(Ticket(slot: slot, stamp: entries[index].stamp), entries[index].level)
                break
            }
            entries[index].stamp &+= 1
            entries[index].stage = .dealt
            dealtLevel = counts.dealt == 0 ? entries[index].level : min(dealtLevel, entries[index].level)
            counts.ready -= 1
            counts.readyInFront -= 1
            counts.dealt += 1
            jobs.append(lend(Key(slot: slot, generation: entries[index].generation)))
        }
        return jobs
    }

    /// Gives away what an entry does, so that whoever runs it can let go of it as soon as it ended.
    mutating func lend(_ key: Key) -> Job {
        Job(key: key, work: exchange(&entries[Int(key.slot)].work, with: .none))
    }

    /// So many that were dealt have begun and ended.
    mutating func noteStarts(_ count: Int) { starts &+= UInt64(count) }

    /// Whether something else than what was dealt may have its turn.
    var isDealtRivalled: Bool { counts.dealt > 0 && lines.hasOther(than: dealtLevel) }

    /// An entry of a hand runs; if it was dealt, in the slot of those before it.
    mutating func beginDealt(_ job: Job) {
        let index = Int(job.key.slot)
        guard entries.has(job.key) else { return }
        entries[index].work = job.work
        guard entries[index].stage == .dealt else { return }
        starts &+= 1
        counts.dealt -= 1
        counts.running += 1
        running += 1
        entries[index].stage = .running
    }

    /// An entry that a thread took has not begun, and is the first of its line again; false if it is not there any more.
    mutating func giveBack(_ key: Key) -> Bool {
        let index = Int(key.slot)
        guard entries.has(key), entries[index].stage == .running || entries[index].isAsking else { return false }
        let old = entries[index].stage
        running -= 1
        counts[old] -= 1
        entries[index].isAsking = false
        counts.ready += 1
        counts.readyInFront += 1
        entries[index].stage = .ready
        lines.prepend(Ticket(slot: key.slot, stamp: entries[index].stamp), entries[index].level)
        journal?.note(.placed(key.slot, entries[index], from: old))
        return true
    }

    /// An entry that was dealt has not begun: it is the first of its line again.
    mutating func takeBack(_ job: Job) {
        let index = Int(job.key.slot)
        entries[index].work = job.work
        counts.dealt -= 1
        counts.ready += 1
        counts.readyInFront += 1
        entries[index].stage = .ready
        lines.prepend(Ticket(slot: job.key.slot, stamp: entries[index].stamp), entries[index].level)
    }
}
