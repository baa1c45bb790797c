// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A queue of elements that several threads add and one thread at a time delivers, in the order in which they were
/// added.
///
/// The queue is protected by the lock of its owner. The thread for which ``append(_:)`` or ``begin()`` returns `true`
/// takes each element with ``next()`` and delivers it without the lock, until no element is left. So no two deliveries
/// overlap, and an element that is added during a delivery follows it.
@usableFromInline
package struct DeliveryQueue<Element> {
    @usableFromInline var elements = Fifo<Element>()
    @usableFromInline var flag = false

    @inlinable
    package init() {}

    /// A Boolean value that indicates whether a thread is delivering elements.
    @inlinable
    package var isDelivering: Bool { flag }

    /// Adds an element, and returns whether the caller must deliver the elements of the queue.
    @inlinable
    package mutating func append(_ element: Element) -> Bool {
        elements.append(element)
        return begin()
    }

    /// Makes the caller the delivering thread, and returns `false` if another thread already is.
    @inlinable
    package mutating func begin() -> Bool {
        defer { flag = true }
        return !flag
    }

    /// Removes and returns the next element, or ends the delivery of the caller and returns `nil` if there is none.
    @inlinable
    package mutating func next() -> Element? {
        if let element = elements.popFirst() { return element }
        flag = false
        return nil
    }

    /// Removes the elements that were not delivered, so that the caller can release them without the lock.
    @inlinable
    package mutating func removeAll() -> Fifo<Element> {
        let removed = elements
        elements = Fifo()
        return removed
    }
}

extension DeliveryQueue: Sendable where Element: Sendable {}

/// An asynchronous sequence in which each iterator subscribes to updates for itself.
package struct Subscriptions<Element: Sendable>: AsyncSequence, Sendable {
    let subscribe: @Sendable () -> Subscription<Element>

    /// Creates an iterator that begins with the current state.
    package func makeAsyncIterator() -> Subscription<Element> { subscribe() }
}

/// An iterator that returns updates one after another, and cancels its subscription when it is released.
package final class Subscription<Element: Sendable>: AsyncIteratorProtocol, Sendable {
    private let nextUpdate: @Sendable () async -> Element?
    private let cancel: @Sendable () -> Void

    init(next: @escaping @Sendable () async -> Element?, cancel: @escaping @Sendable () -> Void) {
        nextUpdate = next
        self.cancel = cancel
    }

    deinit { cancel() }

    /// Waits for the next update and returns it, or returns `nil` after the last update or if the task is canceled.
    package func next() async -> Element? { await nextUpdate() }
}
