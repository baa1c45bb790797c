// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// First in, first out: adding at the end and taking from the front, each at constant cost.
@usableFromInline
package struct Fifo<Element> {
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var head = 0

    @inlinable
    package init() {}

    @inlinable
    package var isEmpty: Bool { head == elements.count }
    @inlinable
    package var count: Int { elements.count - head }

    @inlinable
    package var first: Element? { head < elements.count ? elements[head] : nil }

    @inlinable
    package mutating func removeFirst() { _ = popFirst() }

    @inlinable
    package mutating func append(_ element: Element) {
        elements.append(element)
    }

    /// Takes out those for which it is true, in their order.
    @inlinable
    package mutating func removeAll(where isUnwanted: (Element) -> Bool) -> [Element] {
        var (kept, removed) = (Fifo(), [Element]())
        while let element = popFirst() {
            if isUnwanted(element) { removed.append(element) } else { kept.append(element) }
        }
        self = kept
        return removed
    }

    @inlinable
    package mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        // Mostly it is the only one.
        if elements.count == 1 { return elements.removeLast() }
        let element = elements[head]
        elements[head] = nil
        head += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: head <= 64)
            head = 0
        } else if head > 64, head * 2 > elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }
}

extension Fifo: Sendable where Element: Sendable {}
