// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// Epochs.
extension QueueMachine {
    mutating func joinEpoch(isBarrier: Bool) -> UInt32 {
        if later.isEmpty, !front.isBarrier, !isBarrier {
            front.live += 1
            return front.number
        }
        if isBarrier || later.last?.isBarrier != false { later.append(isBarrier: isBarrier) }
        let number = later.addToLast()
        if front.live == 0 { advance() }
        return number
    }

    mutating func leaveEpoch(_ number: UInt32) {
        guard front.covers(number) else {
            later.remove(from: number)
            return widenFront()
        }
        front.live -= 1
        if front.live == 0, front.isBarrier || !later.isEmpty { advance() }
    }

    /// The front epoch has ended: the next one that has entries may run.
    private mutating func advance() {
        repeat { front = later.popFirst() } while front.live == 0 && (front.isBarrier || !later.isEmpty)
        openFront(exchange(&front.ready, with: []), exchange(&front.held, with: SlotList()))
        widenFront()
    }

    /// Joins to the front what no barrier divides from it any more.
    private mutating func widenFront() {
        while !front.isBarrier, let next = later.first, next.live == 0 || !next.isBarrier {
            let epoch = later.popFirst()
            front.joined += 1
            front.live += epoch.live
            openFront(epoch.ready, epoch.held)
        }
    }

    /// These belong to the front from now on.
    private mutating func openFront(_ ready: [Ticket], _ held: SlotList) {
        for ticket in ready where ticket.isCurrent(entries) {
            counts.readyInFront += 1
            lines.append(ticket, entries[Int(ticket.slot)].level)
        }
        unasked.append(held)
    }

    /// Whether the entries of an epoch may run.
    func isFront(_ epoch: UInt32) -> Bool { front.covers(epoch) }

    func isBarrier(_ epoch: UInt32) -> Bool {
        front.covers(epoch) ? front.isBarrier : later.isBarrier(epoch)
    }
}

// Admission.
extension QueueMachine {
    /// Something else than a dependency must let the entry begin; returns whether it may ask for that now.
    ///
    /// Not behind a barrier, and not while the queue is suspended: it would keep others from what it cannot use. It is
    /// among the `takeUnasked` later.
    mutating func hold(_ slot: Slot) -> Bool {
        place(slot, .held)
        let epoch = entries[Int(slot)].epoch
        guard front.covers(epoch) else {
            later.addHeld(slot, to: epoch)
            return false
        }
        if isSuspended { unasked.append(slot) }
        return !isSuspended
    }

    /// Whether there may be some that may ask for their admission now.
    var hasUnasked: Bool { !unasked.isEmpty && !isSuspended }

    /// Takes out those that may ask for their admission now.
    mutating func takeUnasked() -> [ManagedOperation] {
        guard hasUnasked else { return [] }
        return unasked.takeAll().compactMap { slot in
            // The slot may be gone, or another entry's by now.
            guard entries.indices.contains(Int(slot)) else { return nil }
            let entry = entries[Int(slot)]
            guard entry.stage == .held, front.covers(entry.epoch), case .operation(let operation) = entry.work else {
                return nil
            }
            return operation
        }
    }
}
