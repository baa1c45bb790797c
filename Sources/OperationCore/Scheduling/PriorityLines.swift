// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The ready entries that no barrier holds back, in one line for each level.
///
/// The most urgent line comes first, unless a less urgent line was passed over too often. After such a turn, the most
/// urgent line always has the next turn, regardless of the number of lines. So no line has to wait forever.
struct PriorityLines {
    /// The number of starts after which a passed-over line gets its turn, or `nil` to disable this.
    var ageing: Int? = 32

    private static let leastBeforeAwaited = 32

    private var lines = [TicketRing](repeating: TicketRing(), count: QueueLevel.count)
    /// A bit for each line that is not empty.
    private var occupied: UInt8 = 0
    /// The number of times that each line was passed over since it last had its turn.
    private var passedOver = [Int](repeating: 0, count: QueueLevel.count)
    /// Whether the last entry was taken because its line had been passed over too often.
    private var wasAged = false
    private var staleCount = 0

    /// The number of tickets, including stale ones.
    var count: Int { lines.reduce(0) { $0 + $1.count } }

    mutating func append(_ ticket: Ticket, _ level: QueueLevel) {
        lines[Int(level.rank)].append(ticket)
        occupied |= 1 << level.rank
    }

    /// Adds a ticket before all others of its level.
    mutating func prepend(_ ticket: Ticket, _ level: QueueLevel) {
        lines[Int(level.rank)].prepend(ticket)
        occupied |= 1 << level.rank
    }

    func hasOther(than level: QueueLevel) -> Bool { occupied & ~(1 << level.rank) != 0 }

    /// Whether all entries have the same level.
    var isOne: Bool { occupied & (occupied &- 1) == 0 }

    /// Removes and returns the next slot, or `nil` if there is none.
    mutating func takeNext(of entries: EntryTable) -> QueueMachine.Slot? {
        while occupied != 0 {
            let first = occupied.trailingZeroBitCount
            let line = next(first)
            guard let ticket = lines[line].popFirst() else { return nil }
            let others = occupied
            if lines[line].isEmpty { occupied &= ~(1 << UInt8(line)) }
            guard entries.isCurrent(ticket) else {
                staleCount -= 1
                continue
            }
            wasAged = line != first
            if others & (others - 1) != 0 { countTurn(of: line, first: first, others) }
            return ticket.slot
        }
        return nil
    }

    /// Returns the next slot, or `nil` if there is none or its ticket is stale.
    func peekNext(of entries: EntryTable) -> QueueMachine.Slot? {
        guard occupied != 0, let ticket = lines[next(occupied.trailingZeroBitCount)].first else { return nil }
        return entries.isCurrent(ticket) ? ticket.slot : nil
    }

    /// Returns the most urgent line, or the line that was passed over most often if that was too often.
    private func next(_ first: Int) -> Int {
        guard let ageing, !wasAged, occupied & (occupied - 1) != 0 else { return first }
        var choice = first
        // While bodies that block threads wait, few other entries begin, because these may also wait and block more
        // threads.
        var most = (first == QueueLevel.awaited.rank ? max(ageing, Self.leastBeforeAwaited) : ageing) - 1
        for line in first + 1..<QueueLevel.count where occupied & (1 << UInt8(line)) != 0 && passedOver[line] > most {
            choice = line
            most = passedOver[line]
        }
        return choice
    }

    private mutating func countTurn(of line: Int, first: Int, _ occupied: UInt8) {
        for other in first + 1..<QueueLevel.count where occupied & (1 << UInt8(other)) != 0 { passedOver[other] += 1 }
        passedOver[line] = 0
    }

    /// Records that a ticket became stale, and removes stale tickets if most tickets are stale.
    ///
    /// So repeated changes of a priority do not use more and more memory.
    mutating func countStale(_ entries: EntryTable, ready: Int) {
        staleCount += 1
        guard staleCount > 64, staleCount > 2 * ready else { return }
        staleCount = 0
        for line in lines.indices {
            lines[line].filter(entries.isCurrent)
            if lines[line].isEmpty { occupied &= ~(1 << UInt8(line)) }
        }
    }
}

/// A place of an entry in a line, which is stale if the entry has left the line.
struct Ticket {
    var slot: QueueMachine.Slot
    /// The stamp of the entry when the ticket was added, which differs from the current one if the entry has left the
    /// line.
    var stamp: UInt32
}

/// A ring of tickets in their order, which grows as needed and has constant cost at both ends.
struct TicketRing {
    private var tickets: [Ticket] = []
    private var head = 0
    private(set) var count = 0

    /// The maximum capacity that an empty ring keeps.
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
        // After a burst of tickets, the memory is released.
        if count == 0, tickets.count > Self.most { self = TicketRing() }
        return ticket
    }

    /// Keeps the tickets for which the closure returns `true`, in their order.
    mutating func filter(_ isKept: (Ticket) -> Bool) {
        var kept = TicketRing()
        while let ticket = popFirst() { if isKept(ticket) { kept.append(ticket) } }
        self = kept
    }

    /// Grows to a size that is a power of two, so that a mask can wrap positions around.
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
