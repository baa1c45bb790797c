// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The entries of a queue between two barriers, or one barrier.
struct QueueEpoch {
    let number: UInt32
    var isBarrier = false
    /// How many of the numbers that follow belong to it, too: what stood between them was a barrier that is gone.
    var joined: UInt32 = 0
    /// Entries that have not ended.
    var live = 0
    /// Those that got ready before the epoch was the front.
    var ready: [Ticket] = []
    private var readyLimit = 64
    /// Those that were held before the epoch was the front.
    var held = SlotList()

    init(number: UInt32, isBarrier: Bool = false) {
        self.number = number
        self.isBarrier = isBarrier
    }

    func covers(_ other: UInt32) -> Bool { other &- number <= joined }

    /// Changing a priority for ever must take no memory here, either.
    mutating func addReady(_ ticket: Ticket, _ entries: EntryTable) {
        if ready.count >= readyLimit {
            ready.removeAll { !$0.isCurrent(entries) }
            readyLimit = max(ready.count * 2, 64)
        }
        ready.append(ticket)
    }
}

/// The epochs that wait for the front one, numbered without gaps.
struct QueueEpochs {
    private var epochs: [QueueEpoch] = []
    private var head = 0
    private var nextNumber: UInt32 = 1

    var isEmpty: Bool { head == epochs.count }
    var first: QueueEpoch? { isEmpty ? nil : epochs[head] }
    var last: QueueEpoch? { isEmpty ? nil : epochs[epochs.count - 1] }

    mutating func append(isBarrier: Bool) {
        epochs.append(QueueEpoch(number: nextNumber, isBarrier: isBarrier))
        nextNumber &+= 1
    }

    /// Counts an entry in; returns its epoch's number.
    mutating func addToLast() -> UInt32 {
        epochs[epochs.count - 1].live += 1
        return epochs[epochs.count - 1].number
    }

    mutating func remove(from number: UInt32) {
        epochs[position(of: number)].live -= 1
    }

    mutating func addReady(_ ticket: Ticket, to number: UInt32, _ entries: EntryTable) {
        epochs[position(of: number)].addReady(ticket, entries)
    }

    mutating func addHeld(_ slot: QueueMachine.Slot, to number: UInt32) {
        epochs[position(of: number)].held.append(slot)
    }

    /// Takes out the next one; a new one without entries if there is none.
    mutating func popFirst() -> QueueEpoch {
        guard head < epochs.count else {
            defer { nextNumber &+= 1 }
            return QueueEpoch(number: nextNumber)
        }
        let epoch = exchange(&epochs[head], with: QueueEpoch(number: epochs[head].number))
        head += 1
        trim()
        return epoch
    }

    func isBarrier(_ number: UInt32) -> Bool { epochs[position(of: number)].isBarrier }

    /// How many tickets and slots the epochs hold, those included that are stale.
    var storedCount: Int { epochs[head...].reduce(0) { $0 + $1.ready.count + $1.held.count } }

    private func position(of number: UInt32) -> Int {
        head + Int(number &- epochs[head].number)
    }

    private mutating func trim() {
        guard head == epochs.count || head > 64, head * 2 >= epochs.count else { return }
        // An array of its own after a burst of barriers, for the old one would keep its room.
        if epochs.capacity > 1024, (epochs.count - head) * 4 < epochs.capacity {
            epochs = Array(epochs[head...])
        } else {
            epochs.removeFirst(head)
        }
        head = 0
    }
}
