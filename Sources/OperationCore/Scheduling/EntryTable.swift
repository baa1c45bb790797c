// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A table of the entries of a queue, each in its own slot, which another entry gets after its end.
///
/// When most slots at the end of the table are free, the table releases them. So a queue usually uses only the memory
/// that it needs now, and a loop over all entries does not visit old slots. An entry that stays at the end prevents
/// this, because entries never move.
struct EntryTable {
    private var entries: [QueueMachine.Entry] = []
    private var freeSlots: [QueueMachine.Slot] = []
    /// Free slots in the second half of the table, which are reused last, so that the end of the table becomes free.
    private var freeEndSlots: [QueueMachine.Slot] = []
    /// The generation of a new slot, with which no key or ticket of a released slot can match.
    private var firstGeneration: UInt32 = 0
    private var firstStamp: UInt32 = 0
    /// The number of entries that must end before the next check for slots to release.
    private var removalsUntilTrim = 0
    /// The number of slots that are always kept.
    private let least: Int

    init(least: Int = 1024) { self.least = least }

    /// Adds an entry, and returns its slot.
    mutating func insert(
        _ work: QueueMachine.Work, level: QueueLevel, epoch: UInt32, details: EntryDetails?
    ) -> QueueMachine.Slot {
        let slot = freeSlots.popLast() ?? freeEndSlots.popLast()
        var (stamp, generation) = (firstStamp, firstGeneration)
        if let slot { (stamp, generation) = (entries[Int(slot)].stamp, entries[Int(slot)].generation) }
        let entry = QueueMachine.Entry(
            work: work, stage: .entering, level: level, stamp: stamp, epoch: epoch, generation: generation,
            details: details)
        if let slot {
            entries[Int(slot)] = entry
            return slot
        }
        entries.append(entry)
        return QueueMachine.Slot(entries.count - 1)
    }

    /// Frees the slot of an entry that has ended.
    mutating func free(_ slot: QueueMachine.Slot) {
        self[Int(slot)].stage = .free
        self[Int(slot)].generation &+= 1
        if Int(slot) < entries.count / 2 { freeSlots.append(slot) } else { freeEndSlots.append(slot) }
        removalsUntilTrim -= 1
        if entries.count > least, removalsUntilTrim <= 0 || freeCount == entries.count { trim() }
    }

    private var freeCount: Int { freeSlots.count + freeEndSlots.count }

    /// Returns whether the slot exists and still contains the entry of the key.
    func has(_ key: QueueMachine.Key) -> Bool {
        Int(key.slot) < entries.count && entries[Int(key.slot)].generation == key.generation
    }

    /// Returns the key of the entry in a slot, which differs from those of earlier and later entries.
    func key(of slot: QueueMachine.Slot) -> QueueMachine.Key {
        QueueMachine.Key(slot: slot, generation: entries[Int(slot)].generation)
    }

    /// Returns whether the entry of a ticket is still in the place that the ticket describes.
    func isCurrent(_ ticket: Ticket) -> Bool {
        // The entry is not read as a whole, because a copy would retain and release its operation.
        let index = Int(ticket.slot)
        guard index < entries.count, entries[index].stage == .ready else { return false }
        return entries[index].stamp == ticket.stamp
    }

    /// Releases the free slots at the end, if most slots are free.
    ///
    /// The method visits all slots, so many entries must end before the next check.
    private mutating func trim() {
        let enough = entries.count * 3 / 4
        guard freeCount > enough else {
            removalsUntilTrim = Swift.max(enough - freeCount, least)
            return
        }
        defer { removalsUntilTrim = Swift.max(entries.count / 2, least) }
        var count = entries.count
        while count > 0, entries[count - 1].stage == .free { count -= 1 }
        for index in entries[count...].indices {
            firstGeneration = Swift.max(firstGeneration, entries[index].generation &+ 1)
            firstStamp = Swift.max(firstStamp, entries[index].stamp &+ 1)
        }
        // A new array is created, because the old one would keep its capacity.
        entries = Array(entries[..<count])
        // The first slots are reused first, so that the end becomes free.
        freeSlots = entries.indices.reversed().filter { entries[$0].stage == .free }.map { QueueMachine.Slot($0) }
        freeEndSlots = []
    }
}

extension EntryTable: RandomAccessCollection, MutableCollection {
    var startIndex: Int { 0 }
    var endIndex: Int { entries.count }

    subscript(index: Int) -> QueueMachine.Entry {
        @inline(__always) _read { yield entries[index] }
        @inline(__always) _modify { yield &entries[index] }
    }
}

/// The properties that only some entries of a queue have.
final class EntryDetails: Sendable {
    let name: String?
    /// A closure that creates another operation like this one, to run if this one fails.
    let remake: (@Sendable () -> ManagedOperation)?

    init(name: String? = nil, remake: (@Sendable () -> ManagedOperation)? = nil) {
        self.name = name
        self.remake = remake
    }
}

/// A list of slots in the order in which they were first added.
///
/// Regardless of how often slots are added, the list stores at most twice as many slots as there are different ones.
struct SlotList {
    private var slots: [QueueMachine.Slot] = []
    private var limit = 64

    var isEmpty: Bool { slots.isEmpty }
    var count: Int { slots.count }

    mutating func append(_ slot: QueueMachine.Slot) {
        if slots.count >= limit {
            slots = distinct
            limit = max(slots.count * 2, 64)
        }
        slots.append(slot)
    }

    mutating func append(_ others: SlotList) {
        for slot in others.slots { append(slot) }
    }

    /// Removes and returns all slots, each once.
    mutating func takeAll() -> [QueueMachine.Slot] {
        defer { self = SlotList() }
        return slots.count > 1 ? distinct : slots
    }

    private var distinct: [QueueMachine.Slot] {
        var seen: Set<QueueMachine.Slot> = []
        return slots.filter { seen.insert($0).inserted }
    }
}

/// The numbers of entries in each stage.
struct StageCounts {
    var entering = 0
    var waiting = 0
    var held = 0
    var ready = 0
    var assigned = 0
    var running = 0
    var ending = 0
    /// The number of entries of `ready` that no barrier holds back.
    var readyInFront = 0

    mutating func add(_ change: Int, to stage: QueueMachine.Stage) {
        switch stage {
        case .free: break
        case .entering: entering += change
        case .waiting: waiting += change
        case .held: held += change
        case .ready: ready += change
        case .assigned: assigned += change
        case .running: running += change
        case .ending: ending += change
        }
    }
}

/// The entries of a queue between two barriers, or a single barrier.
struct QueueEpoch {
    let number: UInt32
    var isBarrier = false
    /// The slot of the barrier, until the barrier has ended.
    var barrier: QueueMachine.Slot?
    /// The number of following epochs that belong to this one, because the barriers between them have ended.
    var joined: UInt32 = 0
    /// The number of entries that have not ended.
    var live = 0
    /// The entries that became ready before this was the front epoch.
    var ready: [Ticket] = []
    var readyLimit = 64
    /// The entries that were held before this was the front epoch.
    var held = SlotList()

    func covers(_ other: UInt32) -> Bool { other &- number <= joined }

    /// Adds a ready entry, and removes stale tickets so that repeated changes of a priority do not use more and more
    /// memory.
    mutating func addReady(_ ticket: Ticket, _ entries: EntryTable) {
        if ready.count >= readyLimit {
            ready.removeAll { !entries.isCurrent($0) }
            readyLimit = max(ready.count * 2, 64)
        }
        ready.append(ticket)
    }
}

/// The epochs behind the front epoch, numbered without gaps.
struct QueueEpochs {
    private var epochs: [QueueEpoch] = []
    private var head = 0
    private var nextNumber: UInt32 = 1

    var isEmpty: Bool { head == epochs.count }
    var first: QueueEpoch? { isEmpty ? nil : epochs[head] }
    var last: QueueEpoch? { isEmpty ? nil : epochs[epochs.count - 1] }

    mutating func append(isBarrier: Bool) {
        epochs.append(QueueEpoch(number: nextNumber, isBarrier: isBarrier))
        nextNumber &+= 1
    }

    /// Adds entries to the last epoch, and returns the number of that epoch.
    mutating func addToLast(_ count: Int) -> UInt32 {
        epochs[epochs.count - 1].live += count
        return epochs[epochs.count - 1].number
    }

    mutating func remove(from number: UInt32) {
        epochs[position(of: number)].live -= 1
    }

    mutating func addReady(_ ticket: Ticket, to number: UInt32, _ entries: EntryTable) {
        epochs[position(of: number)].addReady(ticket, entries)
    }

    mutating func addHeld(_ slot: QueueMachine.Slot, to number: UInt32) {
        epochs[position(of: number)].held.append(slot)
    }

    /// Removes and returns the next epoch, or a new one without entries if there is none.
    mutating func popFirst() -> QueueEpoch {
        guard head < epochs.count else {
            defer { nextNumber &+= 1 }
            return QueueEpoch(number: nextNumber)
        }
        let epoch = exchange(&epochs[head], with: QueueEpoch(number: epochs[head].number))
        head += 1
        trim()
        return epoch
    }

    mutating func setBarrier(_ slot: QueueMachine.Slot, of number: UInt32) {
        epochs[position(of: number)].barrier = slot
    }

    func barrier(of number: UInt32) -> QueueMachine.Slot? { epochs[position(of: number)].barrier }

    /// The number of tickets and slots in the epochs, including stale ones.
    var storedCount: Int { epochs[head...].reduce(0) { $0 + $1.ready.count + $1.held.count } }

    private func position(of number: UInt32) -> Int {
        head + Int(number &- epochs[head].number)
    }

    private mutating func trim() {
        guard head == epochs.count || head > 64, head * 2 >= epochs.count else { return }
        // After a burst of barriers, a new array is created, because the old one would keep its capacity.
        if epochs.capacity > 1024, (epochs.count - head) * 4 < epochs.capacity {
            epochs = Array(epochs[head...])
        } else {
            epochs.removeFirst(head)
        }
        head = 0
    }
}
