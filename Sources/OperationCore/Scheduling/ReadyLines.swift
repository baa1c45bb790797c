// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Those of a queue that are ready and that no barrier holds back: a line for each level, and which of them comes next.
///
/// The most urgent line comes first, unless one that is less urgent was passed over too often. Such a turn is followed
/// by one of the most urgent line, whatever the number of lines: so neither is held back for ever.
struct ReadyLines {
    /// How many starts a line may be passed over before one of it is taken; nil for never.
    var ageing: Int? = 32

    private static let leastBeforeAwaited = 32

    private var lines = [TicketRing](repeating: TicketRing(), count: QueueLevel.count)
    /// A bit for each line that is not empty.
    private var occupied: UInt8 = 0
    /// How often each line was passed over since one of it was taken.
    private var passedOver = [Int](repeating: 0, count: QueueLevel.count)
    /// Whether the last that was taken had been passed over too often.
    private var wasAged = false
    private var staleCount = 0

    /// How many tickets there are, those included that are stale.
    var count: Int { lines.reduce(0) { $0 + $1.count } }

    mutating func append(_ ticket: Ticket, _ level: QueueLevel) {
        lines[Int(level.rank)].append(ticket)
        occupied |= 1 << level.rank
    }

    /// Puts a ticket before all others of its level.
    mutating func prepend(_ ticket: Ticket, _ level: QueueLevel) {
        lines[Int(level.rank)].prepend(ticket)
        occupied |= 1 << level.rank
    }

    func hasOther(than level: QueueLevel) -> Bool { occupied & ~(1 << level.rank) != 0 }

    /// Whether all are equally urgent.
    var isOne: Bool { occupied & (occupied &- 1) == 0 }

    /// Takes out whose turn it is; nil if there is none.
    mutating func takeNext(of entries: EntryTable) -> QueueMachine.Slot? {
        while occupied != 0 {
            let first = occupied.trailingZeroBitCount
            let line = next(first)
            guard let ticket = lines[line].popFirst() else { return nil }
            let others = occupied
            if lines[line].isEmpty { occupied &= ~(1 << UInt8(line)) }
            guard ticket.isCurrent(entries) else {
                staleCount -= 1
                continue
            }
            wasAged = line != first
            if others & (others - 1) != 0 { noteTurn(of: line, first: first, others) }
            return ticket.slot
        }
        return nil
    }

    /// Whose turn it is; nil if there is none, or what stands there is stale.
    func peekNext(of entries: EntryTable) -> QueueMachine.Slot? {
        guard occupied != 0, let ticket = lines[next(occupied.trailingZeroBitCount)].first else { return nil }
        return ticket.isCurrent(entries) ? ticket.slot : nil
    }

    /// The most urgent line, or the one that was passed over most often, and too often.
    private func next(_ first: Int) -> Int {
        guard let ageing, !wasAged, occupied & (occupied - 1) != 0 else { return first }
        var choice = first
        // While bodies wait that hold threads, few come in between, for they may wait as well and hold more.
        var most = (first == QueueLevel.awaited.rank ? max(ageing, Self.leastBeforeAwaited) : ageing) - 1
        for line in first + 1..<QueueLevel.count where occupied & (1 << UInt8(line)) != 0 && passedOver[line] > most {
            choice = line
            most = passedOver[line]
        }
        return choice
    }

    private mutating func noteTurn(of line: Int, first: Int, _ occupied: UInt8) {
        for other in first + 1..<QueueLevel.count where occupied & (1 << UInt8(other)) != 0 { passedOver[other] += 1 }
        passedOver[line] = 0
    }

    /// A ticket became stale; clears the lines of such once they are the most.
    ///
    /// So changing a priority for ever takes no memory.
    mutating func noteStale(_ entries: EntryTable, ready: Int) {
        staleCount += 1
        guard staleCount > 64, staleCount > 2 * ready else { return }
        staleCount = 0
        for line in lines.indices {
            lines[line].filter { $0.isCurrent(entries) }
            if lines[line].isEmpty { occupied &= ~(1 << UInt8(line)) }
        }
    }
}

extension Ticket {
    /// Whether its entry still stands where the ticket says.
    func isCurrent(_ entries: EntryTable) -> Bool {
        // Not the entry as a whole: a copy would hold its operation and let go of it again.
        Int(slot) < entries.count && entries[Int(slot)].stamp == stamp && entries[Int(slot)].stage == .ready
    }
}
