// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A list of elements in the order in which they were added, under increasing numbers.
///
/// Any of them can be removed at a small cost.
///
/// However many elements come and go, it stores at most about twice as many entries as it ever held at the same time.
package struct ForgettingList<Element> {
    private struct Entry {
        let id: UInt64
        /// Nil after it was removed.
        var element: Element?
    }

    /// The last entry holds an element.
    private var entries: [Entry] = []

    package init() {}

    package var isEmpty: Bool { entries.isEmpty }

    /// The number of stored entries, including those whose element was removed.
    package var storedCount: Int { entries.count }

    /// The highest number; zero if the list is empty.
    package var lastID: UInt64 { entries.last?.id ?? 0 }

    package var elements: [Element] { entries.compactMap(\.element) }

    /// Adds an element under a number that is higher than all numbers before.
    package mutating func append(_ element: Element, id: UInt64) {
        if entries.count == entries.capacity {
            entries.removeAll { $0.element == nil }
            // Reserves room for as many again, so that the next search for removed entries is as far away.
            if entries.count * 2 > entries.capacity { entries.reserveCapacity(max(entries.count * 2, 4)) }
        }
        entries.append(Entry(id: id, element: element))
    }

    /// Removes an element and returns it, so that the caller can release it outside of a lock.
    package mutating func remove(_ id: UInt64) -> Element? {
        guard let position = position(of: id) else { return nil }
        let removed = exchange(&entries[position].element, with: nil)
        trim()
        return removed
    }

    /// Changes the element with that number; returns nil if there is none.
    package mutating func update<Result>(_ id: UInt64, _ change: (inout Element) -> Result) -> Result? {
        guard let position = position(of: id), var element = exchange(&entries[position].element, with: nil) else {
            return nil
        }
        defer { entries[position].element = element }
        return change(&element)
    }

    /// Removes and returns all elements.
    package mutating func takeAll() -> [Element] {
        exchange(&entries, with: []).compactMap(\.element)
    }

    /// Removes and returns the elements for which the closure returns true.
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
        // The numbers increase, so each step leaves out half of the entries that are left.
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
