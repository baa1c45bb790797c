// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Where the entries of a queue stand: each in a slot of its own, which another one gets once it has ended.
///
/// What a burst of entries leaves empty at the end is given back once it is the most, so that as a rule a queue takes what
/// it needs now, and whoever walks over all entries does not walk over those of long ago. One entry that stays at the end
/// keeps the others, for entries never move.
struct EntryTable {
    private var entries: [QueueMachine.Entry] = []
    private var freeSlots: [QueueMachine.Slot] = []
    /// From where a slot that is made counts, so that no key and no ticket of one that was given back fits it.
    private var firstGeneration: UInt32 = 0
    private var firstStamp: UInt32 = 0
    /// How many entries are to end before it is looked whether slots can be given back.
    private var patience = 0
    /// So many slots are kept in any case.
    var least = 1024

    /// Gives an entry a slot.
    mutating func insert() -> QueueMachine.Slot {
        if let free = freeSlots.popLast() { return free }
        var entry = QueueMachine.Entry()
        entry.generation = firstGeneration
        entry.stamp = firstStamp
        entries.append(entry)
        return QueueMachine.Slot(entries.count - 1)
    }

    /// The entry of that slot ended: it is the next one's.
    mutating func free(_ slot: QueueMachine.Slot) {
        self[Int(slot)].stage = .free
        self[Int(slot)].generation &+= 1
        freeSlots.append(slot)
        patience -= 1
        if patience <= 0 || freeSlots.count == entries.count && entries.count > least { trim() }
    }

    /// Whether the slot is there, and the entry that is meant still stands in it.
    func has(_ key: QueueMachine.Key) -> Bool {
        Int(key.slot) < entries.count && entries[Int(key.slot)].generation == key.generation
    }

    /// What tells the entry that stands there now from those before and after it.
    func key(of slot: QueueMachine.Slot) -> QueueMachine.Key {
        QueueMachine.Key(slot: slot, generation: entries[Int(slot)].generation)
    }

    /// Gives back what is free at the end, if most are.
    ///
    /// It looks at all slots, so many entries end before the next look.
    private mutating func trim() {
        let enough = entries.count * 3 / 4
        guard entries.count > least, freeSlots.count > enough else {
            patience = Swift.max(enough - freeSlots.count, least)
            return
        }
        defer { patience = Swift.max(entries.count / 2, least) }
        var count = entries.count
        while count > 0, entries[count - 1].stage == .free { count -= 1 }
        for entry in entries[count...] {
            firstGeneration = Swift.max(firstGeneration, entry.generation &+ 1)
            firstStamp = Swift.max(firstStamp, entry.stamp &+ 1)
        }
        // An array of its own, for the old one would keep its room.
        entries = Array(entries[..<count])
        // The first ones are given out first, so that the end gets free.
        freeSlots = entries.indices.reversed().filter { entries[$0].stage == .free }.map { QueueMachine.Slot($0) }
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

/// What only some entries of a queue have.
final class EntryDetails: Sendable {
    let name: String?
    /// Makes another operation like this one, to be run if this one fails.
    let remake: (@Sendable () -> ManagedOperation)?

    init(name: String? = nil, remake: (@Sendable () -> ManagedOperation)? = nil) {
        self.name = name
        self.remake = remake
    }
}

/// Slots in the order in which they first came.
///
/// However often the same ones come, it holds at most twice as many as there are different ones.
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

    /// Takes all out, each once.
    mutating func takeAll() -> [QueueMachine.Slot] {
        defer { self = SlotList() }
        return slots.count > 1 ? distinct : slots
    }

    private var distinct: [QueueMachine.Slot] {
        var seen: Set<QueueMachine.Slot> = []
        return slots.filter { seen.insert($0).inserted }
    }
}

/// Those of a queue that are ready and that no barrier holds back: a line for each level, and which of them comes next.
///
/// The most urgent line comes first, unless one that is less urgent was passed over too often. Such a turn is followed
/// by one of the most urgent line, whatever the number of lines: so neither is held back for ever.
struct ReadyLines {
    /// How many starts a line may be passed over before one of it is taken; nil for never.
    var ageing: Int? = 32

    private static let leastBeforeAwaited = 32

    private var lines = [TicketRing](repeating: TicketRing(), count: QueueLevel.count)
    /// A bit for each line that is not empty.
    private var occupied: UInt8 = 0
    /// How often each line was passed over since one of it was taken.
    private var passedOver = [Int](repeating: 0, count: QueueLevel.count)
    /// Whether the last that was taken had been passed over too often.
    private var wasAged = false
    private var staleCount = 0

    /// How many tickets there are, those included that are stale.
    var count: Int { lines.reduce(0) { $0 + $1.count } }

    mutating func append(_ ticket: Ticket, _ level: QueueLevel) {
        lines[Int(level.rank)].append(ticket)
        occupied |= 1 << level.rank
    }

    /// Puts a ticket before all others of its level.
    mutating func prepend(_ ticket: Ticket, _ level: QueueLevel) {
        lines[Int(level.rank)].prepend(ticket)
        occupied |= 1 << level.rank
    }

    func hasOther(than level: QueueLevel) -> Bool { occupied & ~(1 << level.rank) != 0 }

    /// Whether all are equally urgent.
    var isOne: Bool { occupied & (occupied &- 1) == 0 }

    /// Takes out whose turn it is; nil if there is none.
    mutating func takeNext(of entries: EntryTable) -> QueueMachine.Slot? {
        while occupied != 0 {
            let first = occupied.trailingZeroBitCount
            let line = next(first)
            guard let ticket = lines[line].popFirst() else { return nil }
            let others = occupied
            if lines[line].isEmpty { occupied &= ~(1 << UInt8(line)) }
            guard ticket.isCurrent(entries) else {
                staleCount -= 1
                continue
            }
            wasAged = line != first
            if others & (others - 1) != 0 { noteTurn(of: line, first: first, others) }
            return ticket.slot
        }
        return nil
    }

    /// Whose turn it is; nil if there is none, or what stands there is stale.
    func peekNext(of entries: EntryTable) -> QueueMachine.Slot? {
        guard occupied != 0, let ticket = lines[next(occupied.trailingZeroBitCount)].first else { return nil }
        return ticket.isCurrent(entries) ? ticket.slot : nil
    }

    /// The most urgent line, or the one that was passed over most often, and too often.
    private func next(_ first: Int) -> Int {
        guard let ageing, !wasAged, occupied & (occupied - 1) != 0 else { return first }
        var choice = first
        // While bodies wait that hold threads, few come in between, for they may wait as well and hold more.
        var most = (first == QueueLevel.awaited.rank ? max(ageing, Self.leastBeforeAwaited) : ageing) - 1
        for line in first + 1..<QueueLevel.count where occupied & (1 << UInt8(line)) != 0 && passedOver[line] > most {
            choice = line
            most = passedOver[line]
        }
        return choice
    }

    private mutating func noteTurn(of line: Int, first: Int, _ occupied: UInt8) {
        for other in first + 1..<QueueLevel.count where occupied & (1 << UInt8(other)) != 0 { passedOver[other] += 1 }
        passedOver[line] = 0
    }

    /// A ticket became stale; clears the lines of such once they are the most.
    ///
    /// So changing a priority for ever takes no memory.
    mutating func noteStale(_ entries: EntryTable, ready: Int) {
        staleCount += 1
        guard staleCount > 64, staleCount > 2 * ready else { return }
        staleCount = 0
        for line in lines.indices {
            lines[line].filter { $0.isCurrent(entries) }
            if lines[line].isEmpty { occupied &= ~(1 << UInt8(line)) }
        }
    }
}

extension Ticket {
    /// Whether its entry still stands where the ticket says.
    func isCurrent(_ entries: EntryTable) -> Bool {
        // Not the entry as a whole: a copy would hold its operation and let go of it again.
        Int(slot) < entries.count && entries[Int(slot)].stamp == stamp && entries[Int(slot)].stage == .ready
    }
}

/// How many entries are in each stage.
struct StageCounts {
    var entering = 0
    var waiting = 0
    var held = 0
    var ready = 0
    var dealt = 0
    var running = 0
    var ending = 0
    /// Those of `ready` that no barrier holds back.
    var readyInFront = 0

    subscript(stage: QueueMachine.Stage) -> Int {
        get {
            switch stage {
            case .free: 0
            case .entering: entering
            case .waiting: waiting
            case .held: held
            case .ready: ready
            case .dealt: dealt
            case .running: running
            case .ending: ending
            }
        }
        set {
            switch stage {
            case .free: break
            case .entering: entering = newValue
            case .waiting: waiting = newValue
            case .held: held = newValue
            case .ready: ready = newValue
            case .dealt: dealt = newValue
            case .running: running = newValue
            case .ending: ending = newValue
            }
        }
    }
}

/// A place in a line: which entry of a queue stands there, unless it left the line since.
struct Ticket {
    var slot: QueueMachine.Slot
    /// The entry's stamp when it was put there; another one now means that it left.
    var stamp: UInt32
}

/// Tickets in the order in which they came, in a ring that grows: constant cost at both ends, eight bytes each.
struct TicketRing {
    private var tickets: [Ticket] = []
    private var head = 0
    private(set) var count = 0

    /// How many places an empty ring keeps.
    private static let most = 1024

    var isEmpty: Bool { count == 0 }

    var first: Ticket? { isEmpty ? nil : tickets[head] }

    mutating func append(_ ticket: Ticket) {
        if count == tickets.count { grow() }
        tickets[(head + count) & (tickets.count - 1)] = ticket
        count += 1
    }

    mutating func prepend(_ ticket: Ticket) {
        if count == tickets.count { grow() }
        head = (head - 1) & (tickets.count - 1)
        tickets[head] = ticket
        count += 1
    }

    mutating func popFirst() -> Ticket? {
        guard count > 0 else { return nil }
        let ticket = tickets[head]
        head = (head + 1) & (tickets.count - 1)
        count -= 1
        // What a burst of tickets needed is given back once it is over.
        if count == 0, tickets.count > Self.most { self = TicketRing() }
        return ticket
    }

    /// Keeps those for which `isKept` is true, in their order.
    mutating func filter(_ isKept: (Ticket) -> Bool) {
        var kept = TicketRing()
        while let ticket = popFirst() { if isKept(ticket) { kept.append(ticket) } }
        self = kept
    }

    /// The size is a power of two, so that a position wraps around by a mask.
    private mutating func grow() {
        let size = max(tickets.count * 2, 16)
        var grown: [Ticket] = []
        grown.reserveCapacity(size)
        for position in 0..<count { grown.append(tickets[(head + position) & (tickets.count - 1)]) }
        grown.append(contentsOf: repeatElement(Ticket(slot: -1, stamp: 0), count: size - count))
        tickets = grown
        head = 0
    }
}

/// The entries of a queue between two barriers, or one barrier.
struct QueueEpoch {
    let number: UInt32
    var isBarrier = false
    /// How many of the numbers that follow belong to it, too: what stood between them was a barrier that is gone.
    var joined: UInt32 = 0
    /// Entries that have not ended.
    var live = 0
    /// Those that got ready before the epoch was the front.
    var ready: [Ticket] = []
    private var readyLimit = 64
    /// Those that were held before the epoch was the front.
    var held = SlotList()

    init(number: UInt32, isBarrier: Bool = false) {
        self.number = number
        self.isBarrier = isBarrier
    }

    func covers(_ other: UInt32) -> Bool { other &- number <= joined }

    /// Changing a priority for ever must take no memory here, either.
    mutating func addReady(_ ticket: Ticket, _ entries: EntryTable) {
        if ready.count >= readyLimit {
            ready.removeAll { !$0.isCurrent(entries) }
            readyLimit = max(ready.count * 2, 64)
        }
        ready.append(ticket)
    }
}

/// The epochs that wait for the front one, numbered without gaps.
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

    /// Counts an entry in; returns its epoch's number.
    mutating func addToLast() -> UInt32 {
        epochs[epochs.count - 1].live += 1
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

    /// Takes out the next one; a new one without entries if there is none.
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

    func isBarrier(_ number: UInt32) -> Bool { epochs[position(of: number)].isBarrier }

    /// How many tickets and slots the epochs hold, those included that are stale.
    var storedCount: Int { epochs[head...].reduce(0) { $0 + $1.ready.count + $1.held.count } }

    private func position(of number: UInt32) -> Int {
        head + Int(number &- epochs[head].number)
    }

    private mutating func trim() {
        guard head == epochs.count || head > 64, head * 2 >= epochs.count else { return }
        // An array of its own after a burst of barriers, for the old one would keep its room.
        if epochs.capacity > 1024, (epochs.count - head) * 4 < epochs.capacity {
            epochs = Array(epochs[head...])
        } else {
            epochs.removeFirst(head)
        }
        head = 0
    }
}
