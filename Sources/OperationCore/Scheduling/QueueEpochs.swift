// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The entries of a queue between two barriers, or one barrier.
struct QueueEpoch {
    let number: UInt32
    var isBarrier = false
    /// Entries that have not ended.
    var live = 0
    /// Those that got ready before the epoch was the front.
    var ready: [Ticket] = []
    /// Those that were held before the epoch was the front.
    var held: [QueueMachine.Slot] = []
}

/// The epochs that wait for the front one, numbered without gaps.
struct QueueEpochs {
    private var epochs: [QueueEpoch] = []
    private var head = 0
    private var nextNumber: UInt32 = 1

    var isEmpty: Bool { head == epochs.count }
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

    mutating func addReady(_ ticket: Ticket, to number: UInt32) {
        epochs[position(of: number)].ready.append(ticket)
    }

    mutating func addHeld(_ slot: QueueMachine.Slot, to number: UInt32) {
        epochs[position(of: number)].held.append(slot)
    }

    /// The first one that has entries, or a new one without.
    mutating func popFirst() -> QueueEpoch {
        defer { trim() }
        while head < epochs.count {
            let epoch = epochs[head]
            epochs[head].ready = []
            epochs[head].held = []
            head += 1
            if epoch.live > 0 { return epoch }
        }
        defer { nextNumber &+= 1 }
        return QueueEpoch(number: nextNumber)
    }

    func isBarrier(_ number: UInt32) -> Bool { epochs[position(of: number)].isBarrier }

    private func position(of number: UInt32) -> Int {
        head + Int(number &- epochs[head].number)
    }

    private mutating func trim() {
        guard head == epochs.count || head > 64, head * 2 >= epochs.count else { return }
        epochs.removeFirst(head)
        head = 0
    }
}
