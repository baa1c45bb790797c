// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A list that is mostly of one element, which it keeps without an array.
struct FewOrMany<Element> {
    // Elements move to the array all together, so that the list is either the one or the other.
    private var single: Element?
    private var many: [Element] = []

    var isEmpty: Bool { single == nil && many.isEmpty }
    var count: Int { single == nil ? many.count : 1 }

    @inline(__always)
    mutating func append(_ element: consuming Element) {
        if isEmpty { single = element } else { appendToMany(element) }
    }

    private mutating func appendToMany(_ element: consuming Element) {
        if let first = exchange(&single, with: nil) {
            // One block for both, and for the two that often follow.
            many.reserveCapacity(4)
            many.append(first)
        }
        many.append(element)
    }

    subscript(position: Int) -> Element { single ?? many[position] }

    @inline(__always)
    func forEach(_ body: (Element) -> Void) {
        if let single { return body(single) }
        for element in many { body(element) }
    }

    /// Whether it is true of one of them, each looked at in its place and not as a copy.
    mutating func containsInPlace(where isWanted: (inout Element) -> Bool) -> Bool {
        if var element = exchange(&single, with: nil) {
            defer { single = element }
            return isWanted(&element)
        }
        for index in many.indices where isWanted(&many[index]) { return true }
        return false
    }

    func map<Result>(_ convert: (Element) -> Result) -> [Result] {
        if let single { return [convert(single)] }
        return many.map(convert)
    }

    func compactMap<Result>(_ convert: (Element) -> Result?) -> [Result] { map(convert).compactMap { $0 } }

    func enumerated() -> EnumeratedSequence<[Element]> { map { $0 }.enumerated() }

    func firstIndex(where isWanted: (Element) -> Bool) -> Int? {
        if let single { return isWanted(single) ? 0 : nil }
        return many.firstIndex(where: isWanted)
    }

    mutating func swapAt(_ first: Int, _ second: Int) {
        if single == nil { many.swapAt(first, second) }
    }

    mutating func remove(at position: Int) {
        if single == nil { many.remove(at: position) } else { single = nil }
    }

    /// Removes those for which it is true, and returns them.
    mutating func removeAll(where isUnwanted: (Element) -> Bool) -> [Element] {
        let removed = map { $0 }.filter(isUnwanted)
        guard !removed.isEmpty else { return [] }
        if single == nil { many.removeAll(where: isUnwanted) } else { single = nil }
        return removed
    }
}
