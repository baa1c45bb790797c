// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The state machine of a queue, which knows which entries wait, are ready or run, and which one begins next.
///
/// The machine knows nothing about threads, locks or time. The cost of an event does not depend on the number of
/// entries.
///
/// ```text
///            dependencies ended           admitted               slot and thread
/// waiting ─────────────────────▶ held ─────────────▶ ready ─────────────────────▶ running ──▶ ended
///    ◀───────────────────────────────────────────────── a dependency was added
/// ```
///
/// The entries between two barriers form an *epoch*. Only entries of the front epoch may run. When all of its entries
/// have ended, the next epoch becomes the front epoch. A barrier is an epoch with a single entry. If the entry is a
/// group, its children join the epoch, because the barrier cannot end before them.
struct QueueMachine {
    /// The index of an entry in the table.
    ///
    /// It is not the slot that an entry needs to run, of which the queue has as many as its width.
    typealias Slot = Int32

    /// The work of an entry.
    enum Work {
        case none
        case operation(ManagedOperation)
        case plain(PlainOperationEntry)
        case closure(@Sendable () -> Void)

        var managed: ManagedOperation? { if case .operation(let operation) = self { operation } else { nil } }
    }

    /// A reference to an entry, which distinguishes it from other entries that used the same slot.
    struct Key {
        var slot: Slot
        var generation: UInt32
    }

    /// The work of a thread, with the entry that it belongs to.
    struct Job {
        let key: Key
        let work: Work
        /// Whether the thread must first request the categories of the operation, which already has a slot.
        let asks: Bool
    }

    enum Stage: UInt8 {
        case free
        /// The entry was just added, and it is not yet known whether it may begin.
        case entering
        /// Dependencies of the entry have not ended.
        case waiting
        /// A condition, a time or a resource does not admit the entry yet.
        case held
        case ready
        /// The entry was assigned to a thread in advance, and only that thread's list shows whether it waits, runs or
        /// has ended.
        case assigned
        case running
        /// The entry was canceled before it began, and is being ended without a slot.
        case ending
    }

    struct Entry {
        var work: Work
        var stage: Stage
        var level: QueueLevel
        /// A number that increases each time the entry leaves a line, so that its old tickets are recognized as stale.
        var stamp: UInt32
        var epoch: UInt32
        /// A number that increases with each entry in this slot, to distinguish the entries.
        var generation: UInt32
        /// Whether the entry requests its categories when it gets a slot.
        var asks = false
        /// The number of times that the entry requested its categories and gave up the slot.
        var refusals: UInt8 = 0
        /// Whether the entry has one of the queue's slots of its own.
        var hasSlot = false
        var details: EntryDetails?

        /// Whether a thread requests the categories of the entry, which is held and has a slot.
        var isAsking: Bool { stage == .held && hasSlot }

        /// Whether the entry has given up its slot, because its body waits.
        var isResting: Bool { stage == .running && !hasSlot }
    }

    var entries = EntryTable()

    var lines = PriorityLines()
    /// A lower bound for the urgency of all assigned entries.
    var assignedLevel = QueueLevel.normal
    var counts = StageCounts()
    /// The number of slots in use, which the running entries have whose bodies do not wait.
    var running = 0
    /// The reasons of the waiting bodies that gave one.
    var restReasons: [Slot: WaitReason] = [:]

    /// The number of entries that have begun.
    var starts: UInt64 = 0

    var width = Int.max
    var isSuspended = false
    /// The number of callers that are canceling all entries, during which no entry may begin.
    var holds = 0

    /// The held entries that have not requested admission yet, because a barrier or a suspension prevented it.
    var awaitingAdmission = SlotList()

    var front = QueueEpoch(number: 0)
    var later = QueueEpochs()

    /// The journal that reports changes to the observers of the queue, or `nil` until there is one.
    var journal: QueueJournal?

    /// The number of entries that have not ended.
    var live: Int {
        counts.entering + counts.waiting + counts.held + counts.ready + counts.assigned + counts.running + counts.ending
    }

    /// The number of stored tickets and slots of entries, including stale ones.
    var ticketCount: Int { lines.count + awaitingAdmission.count + later.storedCount }

    /// Whether an entry could begin if there were a thread for it.
    var canStart: Bool { counts.readyInFront > 0 && hasRoom }

    /// Whether an entry could begin if there were a thread and all assigned entries were taken back.
    var couldStart: Bool { counts.readyInFront + counts.assigned > 0 && hasRoom }

    private var hasRoom: Bool { running < width && !isSuspended && holds == 0 }
}

// Adding and removing entries.
extension QueueMachine {
    /// Adds an entry, whose stage is then set by `place`.
    ///
    /// If `joinsFront` is `true`, a running entry cannot end before this entry, so this entry overtakes all barriers.
    ///
    /// - Parameter epoch: The epoch in which `reserve` made room for the entry, or `nil` if it did not.
    mutating func enter(
        _ work: Work, level: QueueLevel = .normal, isBarrier: Bool = false, joinsFront: Bool = false,
        details: EntryDetails? = nil, in epoch: UInt32? = nil
    ) -> Slot {
        counts.entering += 1
        let epoch = if let epoch { epoch } else { joinEpoch(isBarrier: isBarrier, joinsFront: joinsFront) }
        let slot = entries.insert(work, level: level, epoch: epoch, details: details)
        if isBarrier {
            if front.covers(epoch) { front.barrier = slot } else { later.setBarrier(slot, of: epoch) }
        }
        return slot
    }

    /// Makes room in one epoch for entries that are then added later or in portions, so that no barrier comes before or
    /// between them.
    ///
    /// - Returns: The epoch, which does not end before these entries. For an entry that is not added, the caller must
    ///   call `leaveEpoch`.
    mutating func reserve(_ count: Int, joinsFront: Bool) -> UInt32 {
        joinEpoch(isBarrier: false, joinsFront: joinsFront, count)
    }

    /// Moves an entry to a stage, if it is in another one.
    mutating func place(_ slot: Slot, _ stage: Stage) {
        let index = Int(slot)
        let old = entries[index].stage
        guard old != stage else { return }
        leave(index, old)
        entries[index].stage = stage
        counts.add(1, to: stage)
        if stage == .ready { line(up: slot) }
        journal?.record(.placed(slot, entries[index], from: old))
    }

    /// Removes an entry that has ended, and returns its contents, which the caller must release without holding the
    /// lock.
    mutating func end(_ slot: Slot) -> (Work, EntryDetails?) {
        let index = Int(slot)
        leave(index, entries[index].stage)
        let work = exchange(&entries[index].work, with: .none)
        let details = exchange(&entries[index].details, with: nil)
        let epoch = entries[index].epoch
        entries.free(slot)
        if front.barrier == slot { front.barrier = nil }
        leaveEpoch(epoch)
        return (work, details)
    }

    private mutating func leave(_ index: Int, _ old: Stage) {
        counts.add(-1, to: old)
        switch old {
        case .ready:
            // The ticket stays in its line. Its stamp shows that it is stale.
            entries[index].stamp &+= 1
            if front.covers(entries[index].epoch) {
                counts.readyInFront -= 1
                lines.countStale(entries, ready: counts.ready)
            }
        case .running: if !entries[index].hasSlot { restReasons[QueueMachine.Slot(index)] = nil }
        default: break
        }
        releaseSlot(index)
    }

    private mutating func releaseSlot(_ index: Int) {
        guard entries[index].hasSlot else { return }
        entries[index].hasSlot = false
        running -= 1
    }

    /// Changes the level of an entry in the queue.
    mutating func relevel(_ slot: Slot, _ level: QueueLevel) {
        let index = Int(slot)
        let isReady = entries[index].stage == .ready
        if isReady { leave(index, .ready) }
        entries[index].level = level
        guard isReady else { return }
        counts.ready += 1
        line(up: slot)
    }
}

// The order of the entries.
extension QueueMachine {
    /// Gives the next entry a slot and returns it, or returns `nil` if no entry may begin.
    ///
    /// The entry is running, or held if the thread must first request its categories.
    mutating func take() -> Job? {
        guard canStart, let slot = lines.takeNext(of: entries) else { return nil }
        let index = Int(slot)
        let asks = entries[index].asks
        entries[index].stamp &+= 1
        entries[index].hasSlot = true
        counts.ready -= 1
        counts.readyInFront -= 1
        running += 1
        if asks {
            entries[index].stage = .held
            counts.held += 1
        } else {
            entries[index].stage = .running
            counts.running += 1
            starts &+= 1
        }
        journal?.record(.placed(slot, entries[index], from: .ready))
        return Job(key: entries.key(of: slot), work: entries[index].work, asks: asks)
    }

    /// Takes the next entry if its start is brief, or returns `nil` without any effect.
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
    private mutating func joinEpoch(isBarrier: Bool, joinsFront: Bool, _ count: Int = 1) -> UInt32 {
        var joinsFront = joinsFront
        if later.isEmpty, !front.isBarrier, !isBarrier { joinsFront = true }
        if joinsFront {
            front.live += count
            return front.number
        }
        if isBarrier || later.last?.isBarrier != false { later.append(isBarrier: isBarrier) }
        let number = later.addToLast(count)
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

    /// Makes the next epoch with entries the front epoch, after the front epoch has ended.
    private mutating func advance() {
        repeat { front = later.popFirst() } while front.live == 0 && (front.isBarrier || !later.isEmpty)
        openFront(exchange(&front.ready, with: []), exchange(&front.held, with: SlotList()))
        widenFront()
    }

    /// Joins the following epochs to the front epoch if no barrier separates them anymore.
    private mutating func widenFront() {
        while !front.isBarrier, let next = later.first, next.live == 0 || !next.isBarrier {
            let epoch = later.popFirst()
            front.joined += 1
            front.live += epoch.live
            openFront(epoch.ready, epoch.held)
        }
    }

    /// Adds entries to the front epoch.
    private mutating func openFront(_ ready: [Ticket], _ held: SlotList) {
        for ticket in ready where entries.isCurrent(ticket) {
            counts.readyInFront += 1
            lines.append(ticket, entries[Int(ticket.slot)].level)
        }
        awaitingAdmission.append(held)
    }

    /// Moves an entry to the front epoch, because an entry there cannot end before it.
    mutating func advance(_ slot: Slot) {
        let index = Int(slot)
        let epoch = entries[index].epoch
        guard !front.covers(epoch) else { return }
        later.remove(from: epoch)
        front.live += 1
        entries[index].epoch = front.number
        switch entries[index].stage {
        case .ready:
            // The ticket in the other epoch becomes stale.
            entries[index].stamp &+= 1
            line(up: slot)
        case .held: awaitingAdmission.append(slot)
        default: break
        }
        widenFront()
    }

    /// Returns whether the entries of an epoch may run.
    func isInFront(_ epoch: UInt32) -> Bool { front.covers(epoch) }

    /// Returns operations that must end before barriers let an entry begin.
    ///
    /// Behind the first barrier, this is only that barrier. For the barrier itself, the method visits all entries.
    func operationsBeforeBarriers(of slot: Slot, atMost most: Int) -> [ManagedOperation] {
        guard !front.covers(entries[Int(slot)].epoch) else { return [] }
        if let barrier = front.isBarrier ? front.barrier : later.first?.barrier, barrier != slot {
            return entries[Int(barrier)].work.managed.map { [$0] } ?? []
        }
        var ahead: [ManagedOperation] = []
        for index in entries.indices where front.covers(entries[index].epoch) && ahead.count < most {
            if let operation = entries[index].work.managed { ahead.append(operation) }
        }
        return ahead
    }

    /// Returns whether an entry is itself a barrier, unlike the children of a group that is a barrier.
    func isBarrier(_ slot: Slot) -> Bool {
        let epoch = entries[Int(slot)].epoch
        return (front.covers(epoch) ? front.barrier : later.barrier(of: epoch)) == slot
    }
}

// Admission.
extension QueueMachine {
    /// Marks an entry as held by a start condition, and returns whether it may request its admission now.
    ///
    /// An entry behind a barrier or in a suspended queue may not ask, because it would keep a resource that it cannot
    /// use. `takeAwaitingAdmission` returns the entry later.
    mutating func hold(_ slot: Slot) -> Bool {
        place(slot, .held)
        let epoch = entries[Int(slot)].epoch
        guard front.covers(epoch) else {
            later.addHeld(slot, to: epoch)
            return false
        }
        if isSuspended { awaitingAdmission.append(slot) }
        return !isSuspended
    }

    /// Whether there may be entries that may request their admission now.
    var hasAwaitingAdmission: Bool { !awaitingAdmission.isEmpty && !isSuspended }

    /// Removes and returns the operations that may request their admission now.
    mutating func takeAwaitingAdmission() -> [ManagedOperation] {
        guard hasAwaitingAdmission else { return [] }
        return awaitingAdmission.takeAll().compactMap { slot in
            // The slot may no longer exist, or may belong to another entry.
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
    /// Whether the entry is the first in its line when it is ready again, because it already had its turn.
    ///
    /// This applies only a limited number of times, because the operation that holds the category may need an entry
    /// behind this one.
    var keepsTurn: Bool { asks && 1...16 ~= refusals }
}

// Entries that have a slot and ask for their categories. Such an entry counts as held until it has the categories.
extension QueueMachine {
    /// Returns whether a thread is asking for the categories of the entry.
    func isAsking(_ key: Key) -> Bool { entries.has(key) && entries[Int(key.slot)].isAsking }

    /// Begins an entry whose categories were granted, or returns `false` without any effect if it must not begin now.
    ///
    /// The queue may have been suspended, or its width reduced, since the entry got its slot.
    mutating func beginAsked(_ key: Key) -> Bool {
        guard isAsking(key), !isSuspended, holds == 0, running <= width else { return false }
        let index = Int(key.slot)
        entries[index].stage = .running
        counts.held -= 1
        counts.running += 1
        starts &+= 1
        journal?.record(.placed(key.slot, entries[index], from: .held))
        return true
    }

    /// Gives up the slot of an entry that requested its categories, and returns `false` if it no longer asks.
    mutating func stopAsking(_ key: Key) -> Bool {
        guard isAsking(key) else { return false }
        let index = Int(key.slot)
        entries[index].refusals = min(entries[index].refusals, .max - 1) + 1
        releaseSlot(index)
        return true
    }
}

// The slots of bodies that wait.
extension QueueMachine {
    /// Gives up the slot of a running entry while its body waits.
    ///
    /// A second call with another reason changes the reason.
    mutating func rest(_ key: Key, because reason: WaitReason? = nil) {
        let index = Int(key.slot)
        guard entries.has(key), entries[index].stage == .running else { return }
        releaseSlot(index)
        guard let reason, restReasons.updateValue(reason, forKey: key.slot) != reason else { return }
        journal?.record(.rested(key.slot, entries[index], reason))
    }

    /// Returns whether the entry occupies a slot.
    func hasSlot(_ key: Key) -> Bool { entries.has(key) && entries[Int(key.slot)].hasSlot }

    /// Returns whether the entry has given up its slot and has not ended since.
    func isResting(_ key: Key) -> Bool {
        entries.has(key) && entries[Int(key.slot)].isResting
    }

    /// Gives the body of an entry a slot again, and returns `false` if it has to wait for one.
    mutating func resume(_ key: Key) -> Bool {
        guard isResting(key) else { return true }
        guard running < width else { return false }
        entries[Int(key.slot)].hasSlot = true
        running += 1
        if !restReasons.isEmpty, restReasons.removeValue(forKey: key.slot) != nil {
            journal?.record(.wentOn(key.slot, entries[Int(key.slot)]))
        }
        return true
    }
}

// Entries that are assigned to a thread in advance. See `AssignedEntries`.
extension QueueMachine {
    /// Removes up to `count` of the next entries, which all have the same level, so that one thread runs them in its
    /// slot.
    mutating func assign(_ count: Int) -> [Job] {
        guard lines.isOne else { return [] }
        var jobs: [Job] = []
        while jobs.count < count, let slot = lines.takeNext(of: entries) {
            let index = Int(slot)
            if entries[index].asks {
                lines.prepend(Ticket(slot: slot, stamp: entries[index].stamp), entries[index].level)
                break
            }
            entries[index].stamp &+= 1
            entries[index].stage = .assigned
            assignedLevel = counts.assigned == 0 ? entries[index].level : min(assignedLevel, entries[index].level)
            counts.ready -= 1
            counts.readyInFront -= 1
            counts.assigned += 1
            jobs.append(takeJob(Key(slot: slot, generation: entries[index].generation)))
        }
        return jobs
    }

    /// Removes the work from an entry, so that the thread that runs it can release it as soon as it has ended.
    mutating func takeJob(_ key: Key) -> Job {
        Job(key: key, work: exchange(&entries[Int(key.slot)].work, with: .none), asks: false)
    }

    /// Whether an entry of another level than the assigned ones may be next, if there are assigned ones.
    var isAssignedLevelContested: Bool { lines.hasOther(than: assignedLevel) }

    /// Records that an assigned entry is running, and counts its slot.
    mutating func beginAssigned(_ job: Job) {
        let index = Int(job.key.slot)
        guard entries.has(job.key) else { return }
        entries[index].work = job.work
        guard entries[index].stage == .assigned else { return }
        starts &+= 1
        counts.assigned -= 1
        counts.running += 1
        running += 1
        entries[index].hasSlot = true
        entries[index].stage = .running
    }

    /// Returns an entry that has not begun to the front of its line, or returns `false` if the entry no longer exists.
    mutating func giveBack(_ key: Key) -> Bool {
        let index = Int(key.slot)
        guard entries.has(key), entries[index].stage == .running || entries[index].isAsking else { return false }
        let old = entries[index].stage
        releaseSlot(index)
        counts.add(-1, to: old)
        counts.ready += 1
        counts.readyInFront += 1
        entries[index].stage = .ready
        lines.prepend(Ticket(slot: key.slot, stamp: entries[index].stamp), entries[index].level)
        journal?.record(.placed(key.slot, entries[index], from: old))
        return true
    }

    /// Returns an assigned entry that has not begun to the front of its line.
    mutating func reclaim(_ job: Job) {
        let index = Int(job.key.slot)
        entries[index].work = job.work
        counts.assigned -= 1
        counts.ready += 1
        counts.readyInFront += 1
        entries[index].stage = .ready
        lines.prepend(Ticket(slot: job.key.slot, stamp: entries[index].stamp), entries[index].level)
    }
}
