// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Entries ordered by the moment at which they are due; entries due at the same moment keep the order of their arrival.
///
/// An indexed binary heap: adding and removing cost O(log n), so that a cancelled entry leaves nothing behind.
package struct TimerHeap<Payload> {
    package typealias Identifier = UInt64

    private struct Entry {
        let due: OperationInstant
        let id: Identifier
        let payload: Payload

        func precedes(_ other: Entry) -> Bool { due == other.due ? id < other.id : due < other.due }
    }

    private var entries: [Entry] = []
    private var positions: [Identifier: Int] = [:]
    private var lastIdentifier: Identifier = 0

    package init() {}

    package var isEmpty: Bool { entries.isEmpty }
    package var count: Int { entries.count }

    /// When the first entry is due.
    package var nextDue: OperationInstant? { entries.first?.due }

    /// Adds an entry and returns the name by which it can be removed.
    package mutating func insert(_ payload: Payload, due: OperationInstant) -> Identifier {
        lastIdentifier += 1
        let position = entries.count
        entries.append(Entry(due: due, id: lastIdentifier, payload: payload))
        positions[lastIdentifier] = position
        siftUp(position)
        return lastIdentifier
    }

    /// Removes an entry; nil if it is no longer there.
    package mutating func remove(_ id: Identifier) -> Payload? {
        positions[id].map { removeEntry(at: $0) }
    }

    /// Removes and returns the first entry if it is due at `now`.
    package mutating func popDue(at now: OperationInstant) -> Payload? {
        guard let due = nextDue, due <= now else { return nil }
        return removeEntry(at: 0)
    }

    private mutating func removeEntry(at position: Int) -> Payload {
        let removed = entries[position]
        positions[removed.id] = nil
        let last = entries.removeLast()
        if position < entries.count {
            place(last, at: position)
            siftDown(position)
            siftUp(position)
        }
        return removed.payload
    }

    private mutating func place(_ entry: Entry, at position: Int) {
        entries[position] = entry
        positions[entry.id] = position
    }

    private mutating func siftUp(_ start: Int) {
        var position = start
        let entry = entries[position]
        while position > 0 {
            let parent = (position - 1) / 2
            guard entry.precedes(entries[parent]) else { break }
            place(entries[parent], at: position)
            position = parent
        }
        if position != start { place(entry, at: position) }
    }

    private mutating func siftDown(_ start: Int) {
        var position = start
        let entry = entries[position]
        while true {
            var child = 2 * position + 1
            guard child < entries.count else { break }
            if child + 1 < entries.count, entries[child + 1].precedes(entries[child]) { child += 1 }
            guard entries[child].precedes(entry) else { break }
            place(entries[child], at: position)
            position = child
        }
        if position != start { place(entry, at: position) }
    }
}
