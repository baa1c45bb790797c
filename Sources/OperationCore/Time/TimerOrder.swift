// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The order in which the entries of a ``TimerHeap`` are due, without their payloads.
///
/// An indexed heap of plain numbers, with four children per node. Moving an entry copies a few bytes and changes no
/// reference count.
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
    }

    /// The state of a slot.
    private struct Place {
        /// The position of the entry in the heap, or the next free slot if this slot is free.
        var position: Slot
        /// The number of times that the slot was taken again, so that the name of an old entry matches no newer one.
        var round: UInt32
        var isTaken: Bool
    }

    private var entries: [Entry] = []
    private var places: [Place] = []
    private var firstFree: Slot = -1
    private var lastNumber: UInt64 = 0

    init() {}

    @usableFromInline var count: Int { entries.count }

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
            places.append(Place(position: 0, round: 0, isTaken: true))
        }
        let entry = Entry(due: due, number: lastNumber, slot: slot)
        entries.append(entry)
        siftUp(entry, from: entries.count - 1)
        return (slot, UInt64(places[Int(slot)].round) << 32 | UInt64(slot))
    }

    /// Removes an entry and returns its slot, or returns `nil` if the entry is no longer there.
    @usableFromInline
    mutating func remove(_ name: UInt64) -> Slot? {
        let index = Int(name & 0xFFFF_FFFF)
        guard index < places.count, places[index].isTaken, places[index].round == UInt32(name >> 32) else { return nil }
        return removeEntry(at: Int(places[index].position))
    }

    /// Removes the first entry if it is due at `now`, and returns its slot.
    @usableFromInline
    mutating func popDue(at now: OperationInstant) -> Slot? {
        guard let first = entries.first, first.due <= now else { return nil }
        return removeEntry(at: 0)
    }

    private mutating func removeEntry(at position: Int) -> Slot {
        let slot = entries[position].slot
        places[Int(slot)].isTaken = false
        places[Int(slot)].position = firstFree
        firstFree = slot
        let last = entries.removeLast()
        guard position < entries.count else { return slot }
        if position > 0, last.precedes(entries[(position - 1) / 4]) {
            siftUp(last, from: position)
        } else {
            siftDown(last, from: position)
        }
        return slot
    }

    private mutating func place(_ entry: Entry, at position: Int) {
        entries[position] = entry
        places[Int(entry.slot)].position = Slot(position)
    }

    private mutating func siftUp(_ entry: Entry, from start: Int) {
        var position = start
        while position > 0 {
            let parent = (position - 1) / 4
            guard entry.precedes(entries[parent]) else { break }
            place(entries[parent], at: position)
            position = parent
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
/// Adding and removing take O(log n) time, and a canceled entry leaves nothing behind. The code that depends on the
/// type of the payload is inlinable, so that another module pays no more than this one.
@usableFromInline
package struct TimerHeap<Payload> {
    package typealias Identifier = UInt64

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

    @inlinable
    mutating func take(_ slot: Int32) -> Payload? {
        var payload: Payload?
        swap(&payload, &payloads[Int(slot)])
        return payload
    }
}
