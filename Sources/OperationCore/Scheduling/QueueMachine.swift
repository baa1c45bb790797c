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
        case foreign(ForeignEntry)
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
