// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A queue of elements that several threads add and one thread at a time delivers, in the order in which they were added.
///
/// It lives under the lock of its owner. The thread for which ``append(_:)`` or ``begin()`` returns `true` takes the elements
/// with ``next()`` and delivers each of them without the lock, until there is none. So no two deliveries overlap, and an
/// element that is added during a delivery follows it.
@usableFromInline
package struct DeliveryQueue<Element> {
    @usableFromInline var elements = Fifo<Element>()
    @usableFromInline var flag = false

    @inlinable
    package init() {}

    /// A Boolean value that indicates whether a thread delivers elements.
    @inlinable
    package var isDelivering: Bool { flag }

    /// Adds an element, and returns whether the caller must deliver what the queue holds.
    @inlinable
    package mutating func append(_ element: Element) -> Bool {
        elements.append(element)
        return begin()
    }

    /// Makes the caller the thread that delivers; returns `false` if another thread does.
    @inlinable
    package mutating func begin() -> Bool {
        defer { flag = true }
        return !flag
    }

    /// Takes the next element; if there is none, returns `nil` and ends the delivery of the caller.
    @inlinable
    package mutating func next() -> Element? {
        if let element = elements.popFirst() { return element }
        flag = false
        return nil
    }

    /// Removes the elements that were not delivered, for the caller to release them without the lock.
    @inlinable
    package mutating func removeAll() -> Fifo<Element> {
        let removed = elements
        elements = Fifo()
        return removed
    }
}

extension DeliveryQueue: Sendable where Element: Sendable {}
