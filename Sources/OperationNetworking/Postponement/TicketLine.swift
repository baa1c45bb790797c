// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Those that wait, in the order in which they came; one leaves at constant cost.
struct TicketLine: Sendable {
    private var present: Set<UInt64> = []
    private var order = Fifo<UInt64>()
    private var last: UInt64 = 0

    var isEmpty: Bool { present.isEmpty }
    var count: Int { present.count }

    mutating func append() -> UInt64 {
        last += 1
        present.insert(last)
        order.append(last)
        return last
    }

    mutating func remove(_ ticket: UInt64) {
        present.remove(ticket)
        // What has left stays in the order until it would be the most of it.
        guard order.count > 64, order.count > present.count * 2 else { return }
        var kept = Fifo<UInt64>()
        while let ticket = order.popFirst() { if present.contains(ticket) { kept.append(ticket) } }
        order = kept
    }

    mutating func take(_ count: Int) -> [UInt64] {
        var taken: [UInt64] = []
        while taken.count < count, let ticket = order.popFirst() {
            if present.remove(ticket) != nil { taken.append(ticket) }
        }
        return taken
    }

    mutating func takeAll() -> [UInt64] { take(.max) }
}
