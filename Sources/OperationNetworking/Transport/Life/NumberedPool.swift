// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Things that are used again and again, each known by a small number.
package struct NumberedPool<Element> {
    private var elements: [Element?] = []
    private var free: [Int] = []

    package init() {}

    /// How many are in use.
    package var usedCount: Int { elements.count - free.count }

    /// Whether there are none at all, not even some to be used again.
    package var isEmpty: Bool { elements.isEmpty }

    package subscript(number: Int) -> Element? { number < elements.count ? elements[number] : nil }

    /// Whether there is such a one, in use or not.
    package func contains(where isWanted: (Element) -> Bool) -> Bool {
        elements.contains { $0.map(isWanted) ?? false }
    }

    /// Calls a closure with each element, in use or not.
    package func forEach(_ body: (Element) -> Void) {
        for element in elements { element.map(body) }
    }

    /// One that is free, or a new one if there is none; nil if it cannot be made.
    package mutating func take(orMake make: (Int) -> Element?) -> Element? {
        let number = free.popLast() ?? elements.count
        if number == elements.count { elements.append(nil) }
        if let element = elements[number] { return element }
        elements[number] = make(number)
        if elements[number] == nil { free.append(number) }
        return elements[number]
    }

    /// Nobody uses it any more; it is used again if it is kept, or else only its number.
    package mutating func putBack(_ number: Int, isKept: Bool) {
        if !isKept { elements[number] = nil }
        free.append(number)
    }

    package mutating func removeAll() { self = NumberedPool() }
}
