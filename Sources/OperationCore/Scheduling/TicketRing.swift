// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A place in a line: which entry of a queue stands there, unless it left the line since.
struct Ticket {
    var slot: QueueMachine.Slot
    /// The entry's stamp when it was put there; another one now means that it left.
    var stamp: UInt32
}

/// Tickets in the order in which they came, in a ring that grows: constant cost at both ends, eight bytes each.
struct TicketRing {
    private var tickets: [Ticket] = []
    private var head = 0
    private(set) var count = 0

    /// How many places an empty ring keeps.
    private static let most = 1024

    var isEmpty: Bool { count == 0 }

    var first: Ticket? { isEmpty ? nil : tickets[head] }

    mutating func append(_ ticket: Ticket) {
        if count == tickets.count { grow() }
        tickets[(head + count) & (tickets.count - 1)] = ticket
        count += 1
    }

    mutating func prepend(_ ticket: Ticket) {
        if count == tickets.count { grow() }
        head = (head - 1) & (tickets.count - 1)
        tickets[head] = ticket
        count += 1
    }

    mutating func popFirst() -> Ticket? {
        guard count > 0 else { return nil }
        let ticket = tickets[head]
        head = (head + 1) & (tickets.count - 1)
        count -= 1
        // What a burst of tickets needed is given back once it is over.
        if count == 0, tickets.count > Self.most { self = TicketRing() }
        return ticket
    }

    /// Keeps those for which `isKept` is true, in their order.
    mutating func filter(_ isKept: (Ticket) -> Bool) {
        var kept = TicketRing()
        while let ticket = popFirst() { if isKept(ticket) { kept.append(ticket) } }
        self = kept
    }

    /// The size is a power of two, so that a position wraps around by a mask.
    private mutating func grow() {
        let size = max(tickets.count * 2, 16)
        var grown: [Ticket] = []
        grown.reserveCapacity(size)
        for position in 0..<count { grown.append(tickets[(head + position) & (tickets.count - 1)]) }
        grown.append(contentsOf: repeatElement(Ticket(slot: -1, stamp: 0), count: size - count))
        tickets = grown
        head = 0
    }
}
