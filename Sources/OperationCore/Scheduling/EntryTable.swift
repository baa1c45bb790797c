// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
