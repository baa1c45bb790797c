// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Elements in the order in which they came, each once; any of them can leave at constant cost.
package struct ArrivalLine<Element: Hashable> {
    /// Those that left the middle leave a gap behind.
    private var elements: [Element?] = []
    private var head = 0
    private var positions: [Element: Int] = [:]

    package init() {}

    package var isEmpty: Bool { positions.isEmpty }
    package var count: Int { positions.count }
    package var first: Element? { isEmpty ? nil : elements[head] }
    package var all: [Element] { elements[head...].compactMap { $0 } }

    /// How many places it takes in memory, gaps included.
    package var extent: Int { elements.count }

    package func contains(_ element: Element) -> Bool { positions[element] != nil }

    package mutating func append(_ element: Element) {
        guard positions[element] == nil else { return }
        positions[element] = elements.count
        elements.append(element)
    }

    /// Takes an element out; false if it was not there.
    @discardableResult
    package mutating func remove(_ element: Element) -> Bool {
        guard let position = positions.removeValue(forKey: element) else { return false }
        elements[position] = nil
        while head < elements.count, elements[head] == nil { head += 1 }
        closeGaps()
        return true
    }

    package mutating func popFirst() -> Element? {
        guard let first else { return nil }
        remove(first)
        return first
    }

    /// Once most places are gaps, so that coming and going for ever takes no memory.
    private mutating func closeGaps() {
        guard elements.count > 32, elements.count > 2 * positions.count else { return }
        elements = elements[head...].filter { $0 != nil }
        head = 0
        for (position, element) in elements.enumerated() {
            if let element { positions[element] = position }
        }
    }
}
