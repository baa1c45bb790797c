// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The order in which the entries of a ``TimerHeap`` are due, without their payloads.
///
/// The entries up to a time, the *horizon*, are in an indexed heap with four children per node. Each later entry is in
/// a bin, whose number is the highest bit in which the time of the entry differs from the horizon. When the heap is
/// empty, the entries of the first bin move into the heap or into lower bins. So the heap stays small even if there are
/// many entries. All entries are plain numbers, so moving an entry changes no reference count.
@usableFromInline
package struct TimerOrder: Sendable {
    @usableFromInline package typealias Slot = Int32

    private struct Entry {
        let due: OperationInstant
        /// The arrival number of the entry, which orders entries that are due at the same moment.
        let number: UInt64
        let slot: Slot

        func precedes(_ other: Entry) -> Bool {
            due < other.due || number < other.number && due == other.due
        }

        /// The time in units of about a microsecond.
        var tick: Int64 { Int64(clamping: due.offset.attoseconds >> 40) }
    }

    /// The state of a slot.
    private struct Place {
        /// The position of the entry in the heap or in its bin, or the next free slot if this slot is free.
        var position: Slot
        /// The number of times that the slot was taken again, so that the name of an old entry matches no newer one.
        var round: UInt32
        var isTaken = true
        /// The bin of the entry, or `-1` if the entry is in the heap.
        var bin: Int8 = -1
    }

    /// The heap, which is empty only if there are no entries.
    private var entries: [Entry] = []
    private var bins = [[Entry]](repeating: [], count: 64)
    /// The tick that no entry in the heap exceeds, and after which all entries in the bins are due.
    private var horizon: Int64 = 0
    /// The number of entries in the heap above which the horizon moves back to the first entry.
    private var mostInHeap = 1024
    private var places: [Place] = []
    private var firstFree: Slot = -1
    private var lastNumber: UInt64 = 0

    init() {}

    @usableFromInline private(set) var count = 0

    /// The moment at which the first entry is due.
    @usableFromInline var nextDue: OperationInstant? { entries.first?.due }

    /// Adds an entry, and returns its slot and its name.
    ///
    /// The slot is at most one higher than the highest slot that was ever used.
    @usableFromInline
    mutating func insert(due: OperationInstant) -> (slot: Slot, name: UInt64) {
        lastNumber += 1
        var slot = firstFree
        if slot >= 0 {
            firstFree = places[Int(slot)].position
            places[Int(slot)].round &+= 1
            places[Int(slot)].isTaken = true
        } else {
            slot = Slot(places.count)
            places.append(Place(position: 0, round: 0))
        }
        let entry = Entry(due: due, number: lastNumber, slot: slot)
        count += 1
        if count == 1 { horizon = entry.tick }
        put(entry)
        if entries.count > mostInHeap {
            let all = entries + bins.joined()
            (entries, bins) = ([], [[Entry]](repeating: [], count: bins.count))
            move(all, horizon: all[0].tick)
        }
        return (slot, UInt64(places[Int(slot)].round) << 32 | UInt64(slot))
    }

    /// Removes an entry and returns its slot, or returns `nil` if the entry is no longer there.
    @usableFromInline
    mutating func remove(_ name: UInt64) -> Slot? {
        let index = Int(name & 0xFFFF_FFFF)
        guard index < places.count, places[index].isTaken, places[index].round == UInt32(name >> 32) else { return nil }
        let (position, bin) = (Int(places[index].position), Int(places[index].bin))
        if bin < 0 { return removeEntry(at: position) }
        let last = bins[bin].removeLast()
        if position < bins[bin].count {
            bins[bin][position] = last
            places[Int(last.slot)].position = Slot(position)
        }
        return free(Slot(index))
    }

    /// Removes the first entry if it is due at `now`, and returns its slot.
    @usableFromInline
    mutating func popDue(at now: OperationInstant) -> Slot? {
        guard let first = entries.first, first.due <= now else { return nil }
        return removeEntry(at: 0)
    }

    private mutating func removeEntry(at position: Int) -> Slot {
        let slot = free(entries[position].slot)
        let last = entries.removeLast()
        if entries.isEmpty { refill() }
        if last.slot == slot { return slot }
        if position > 0, last.precedes(entries[(position - 1) / 4]) {
            siftUp(last, from: position)
        } else {
            siftDown(last, from: position)
        }
        return slot
    }

    private mutating func free(_ slot: Slot) -> Slot {
        places[Int(slot)].isTaken = false
        places[Int(slot)].position = firstFree
        firstFree = slot
        count -= 1
        return slot
    }

    /// Adds an entry to the heap or to a bin.
    private mutating func put(_ entry: Entry) {
        let tick = entry.tick
        if tick <= horizon {
            places[Int(entry.slot)].bin = -1
            entries.append(entry)
            return siftUp(entry, from: entries.count - 1)
        }
        let bin = 63 - (tick ^ horizon).leadingZeroBitCount
        places[Int(entry.slot)].bin = Int8(bin)
        places[Int(entry.slot)].position = Slot(bins[bin].count)
        bins[bin].append(entry)
    }

    /// Moves the first entries from a bin into the heap, which is empty.
    private mutating func refill() {
        guard count > 0, let bin = bins.firstIndex(where: { !$0.isEmpty }) else { return }
        let moved = exchange(&bins[bin], with: [])
        let ticks = moved.lazy.map(\.tick)
        // The entries of later bins keep their bins, because their highest different bit stays the same.
        move(moved, horizon: (moved.count > 64 ? ticks.min() : ticks.max()) ?? horizon)
    }

    private mutating func move(_ moved: [Entry], horizon: Int64) {
        self.horizon = horizon
        for entry in moved { put(entry) }
        // The horizon moves back only after many entries were added before it, because this moves all entries.
        mostInHeap = max(1024, entries.count * 2, count / 4)
    }

    private mutating func place(_ entry: Entry, at position: Int) {
        entries[position] = entry
        places[Int(entry.slot)].position = Slot(position)
    }

    private mutating func siftUp(_ entry: Entry, from start: Int) {
        var position = start
        while position > 0, entry.precedes(entries[(position - 1) / 4]) {
            place(entries[(position - 1) / 4], at: position)
            position = (position - 1) / 4
        }
        place(entry, at: position)
    }

    private mutating func siftDown(_ entry: Entry, from start: Int) {
        var position = start
        while true {
            let firstChild = 4 * position + 1
            guard firstChild < entries.count else { break }
            var child = firstChild
            for other in firstChild..<min(firstChild + 4, entries.count)
            where entries[other].precedes(entries[child]) {
                child = other
            }
            guard entries[child].precedes(entry) else { break }
            place(entries[child], at: position)
            position = child
        }
        place(entry, at: position)
    }
}

/// A collection of entries that are ordered by the moment at which they are due, and by arrival at equal moments.
///
/// On average, adding and removing take O(log n) time. A canceled entry leaves nothing behind. The code that depends on
/// the type of the payload is inlinable, so that another module pays no more than this one.
@usableFromInline
package struct TimerHeap<Payload> {
    @usableFromInline var order = TimerOrder()
    /// The payload of each slot.
    @usableFromInline var payloads: [Payload?] = []

    package init() {}

    @inlinable package var isEmpty: Bool { order.count == 0 }
    @inlinable package var count: Int { order.count }

    /// The moment at which the first entry is due.
    @inlinable package var nextDue: OperationInstant? { order.nextDue }

    /// Adds an entry, and returns the name with which it can be removed.
    @inlinable
    package mutating func insert(_ payload: Payload, due: OperationInstant) -> UInt64 {
        let (slot, name) = order.insert(due: due)
        if Int(slot) < payloads.count {
            payloads[Int(slot)] = payload
        } else {
            payloads.append(payload)
        }
        return name
    }

    /// Removes an entry and returns its payload, or returns `nil` if the entry is no longer there.
    @inlinable
    package mutating func remove(_ id: UInt64) -> Payload? {
        order.remove(id).flatMap { take($0) }
    }

    /// Removes the first entry if it is due at `now`, and returns its payload.
    @inlinable
    package mutating func popDue(at now: OperationInstant) -> Payload? {
        order.popDue(at: now).flatMap { take($0) }
    }

    /// Removes all entries that are due at `now`, and returns their payloads in order.
    @inlinable
    package mutating func takeDue(at now: OperationInstant) -> [Payload] {
        var due: [Payload] = []
        while let payload = popDue(at: now) { due.append(payload) }
        return due
    }

    @inlinable
    mutating func take(_ slot: Int32) -> Payload? {
        var payload: Payload?
        swap(&payload, &payloads[Int(slot)])
        return payload
    }
}
