// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Entries ordered by the moment at which they are due; entries due at the same moment keep the order of their arrival.
///
/// Adding and removing cost O(log n), so that a cancelled entry leaves nothing behind. What depends on the type of what
/// waits is inlinable, so that another module pays no more than this one.
@usableFromInline
package struct TimerHeap<Payload> {
    package typealias Identifier = UInt64

    @usableFromInline var order = TimerOrder()
    /// What waits, each in its slot.
    @usableFromInline var payloads: [Payload?] = []

    package init() {}

    @inlinable package var isEmpty: Bool { order.count == 0 }
    @inlinable package var count: Int { order.count }

    /// When the first entry is due.
    @inlinable package var nextDue: OperationInstant? { order.nextDue }

    /// Adds an entry and returns the name by which it can be removed.
    @inlinable
    package mutating func insert(_ payload: Payload, due: OperationInstant) -> UInt64 {
        let (slot, name) = order.insert(due: due)
        if Int(slot) < payloads.count {
            payloads[Int(slot)] = payload
        } else {
            payloads.append(payload)
        }
        return name
    }

    /// Removes an entry; nil if it is no longer there.
    @inlinable
    package mutating func remove(_ id: UInt64) -> Payload? {
        order.remove(id).flatMap { take($0) }
    }

    /// Removes and returns the first entry if it is due at `now`.
    @inlinable
    package mutating func popDue(at now: OperationInstant) -> Payload? {
        order.popDue(at: now).flatMap { take($0) }
    }

    @inlinable
    mutating func take(_ slot: Int32) -> Payload? {
        var payload: Payload?
        swap(&payload, &payloads[Int(slot)])
        return payload
    }
}
