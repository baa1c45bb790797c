// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Elements in the order in which they came, under numbers that rise; any of them can be taken out at a small cost.
///
/// It stores at most twice as many as it holds, however many come and go.
package struct ForgettingList<Element> {
    private struct Entry {
        let id: UInt64
        /// Nil once it was taken out.
        var element: Element?
    }

    /// The last one of them holds an element.
    private var entries: [Entry] = []

    package init() {}

    package var isEmpty: Bool { entries.isEmpty }

    /// How many are stored, taken out or not.
    package var storedCount: Int { entries.count }

    /// The highest number; zero if there is none.
    package var lastID: UInt64 { entries.last?.id ?? 0 }

    package var elements: [Element] { entries.compactMap(\.element) }

    /// Adds an element under a number that is higher than all before.
    package mutating func append(_ element: Element, id: UInt64) {
        if entries.count == entries.capacity {
            entries.removeAll { $0.element == nil }
            // Room for as many again, so that the next look for such entries is as far away.
            if entries.count * 2 > entries.capacity { entries.reserveCapacity(max(entries.count * 2, 4)) }
        }
        entries.append(Entry(id: id, element: element))
    }

    /// Takes an element out and returns it, to be let go of outside of a lock.
    package mutating func remove(_ id: UInt64) -> Element? {
        guard let position = position(of: id) else { return nil }
        let removed = exchange(&entries[position].element, with: nil)
        trim()
        return removed
    }

    /// Changes the element with that number; nil if there is none.
    package mutating func update<Result>(_ id: UInt64, _ change: (inout Element) -> Result) -> Result? {
        guard let position = position(of: id), var element = exchange(&entries[position].element, with: nil) else {
            return nil
        }
        defer { entries[position].element = element }
        return change(&element)
    }

    /// Takes all out.
    package mutating func takeAll() -> [Element] {
        exchange(&entries, with: []).compactMap(\.element)
    }

    /// Takes those out for which it is true.
    package mutating func takeAll(where isWanted: (Element) -> Bool) -> [Element] {
        var taken: [Element] = []
        for position in entries.indices {
            guard let element = entries[position].element, isWanted(element) else { continue }
            taken.append(element)
            entries[position].element = nil
        }
        trim()
        return taken
    }

    private func position(of id: UInt64) -> Int? {
        // Numbers rise, so half of what is left can be put aside each time.
        var first = 0
        var end = entries.count
        while first < end {
            let middle = (first + end) / 2
            if entries[middle].id < id { first = middle + 1 } else { end = middle }
        }
        return first < entries.count && entries[first].id == id ? first : nil
    }

    private mutating func trim() {
        while !entries.isEmpty, entries[entries.count - 1].element == nil { entries.removeLast() }
    }
}
