// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// When each of many transfers must be looked at again: a binary heap whose entries are small numbers.
///
/// Each number has one moment at most, which can be moved and taken back at O(log n), without hashing.
package struct DeadlineHeap: Sendable {
    private struct Entry {
        let due: Int64
        let number: Int
    }

    private var entries: [Entry] = []
    /// Where each number stands in `entries`; -1 if it does not.
    private var positions: [Int] = []

    package init() {}

    package var count: Int { entries.count }
    package var nextDue: Int64? { entries.first?.due }

    /// The moment of a number.
    package func due(_ number: Int) -> Int64? {
        number < positions.count && positions[number] >= 0 ? entries[positions[number]].due : nil
    }

    package mutating func set(_ number: Int, due: Int64) {
        while positions.count <= number { positions.append(-1) }
        if positions[number] < 0 {
            positions[number] = entries.count
            entries.append(Entry(due: due, number: number))
        } else {
            entries[positions[number]] = Entry(due: due, number: number)
        }
        siftDown(siftUp(positions[number]))
    }

    package mutating func remove(_ number: Int) {
        guard number < positions.count, positions[number] >= 0 else { return }
        let position = positions[number]
        positions[number] = -1
        let last = entries.removeLast()
        guard position < entries.count else { return }
        place(last, position)
        siftDown(siftUp(position))
    }

    /// Takes out a number that is due.
    package mutating func popDue(at now: Int64) -> Int? {
        guard let first = entries.first, first.due <= now else { return nil }
        remove(first.number)
        return first.number
    }

    private mutating func place(_ entry: Entry, _ position: Int) {
        entries[position] = entry
        positions[entry.number] = position
    }

    private mutating func siftUp(_ start: Int) -> Int {
        var position = start
        let entry = entries[position]
        while position > 0, entry.due < entries[(position - 1) / 2].due {
            place(entries[(position - 1) / 2], position)
            position = (position - 1) / 2
        }
        place(entry, position)
        return position
    }

    private mutating func siftDown(_ start: Int) {
        var position = start
        let entry = entries[position]
        while true {
            var child = 2 * position + 1
            guard child < entries.count else { break }
            if child + 1 < entries.count, entries[child + 1].due < entries[child].due { child += 1 }
            guard entries[child].due < entry.due else { break }
            place(entries[child], position)
            position = child
        }
        place(entry, position)
    }
}
