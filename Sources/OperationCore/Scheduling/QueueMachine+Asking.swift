// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension QueueMachine.Entry {
    /// Whether the entry comes first when it is ready again, because its turn had come before.
    ///
    /// It does so only some times. The operation that holds the category may need what is behind the entry.
    var keepsTurn: Bool { asks && 1...16 ~= refusals }
}

// Entries that have a slot and ask for their categories. They count as held until they have them.
extension QueueMachine {
    /// Gives an entry a slot, for a thread that is to ask for its categories.
    mutating func take(asking slot: Slot) -> Job {
        let index = Int(slot)
        entries[index].stage = .held
        entries[index].isAsking = true
        counts.held += 1
        journal?.note(.placed(slot, entries[index], from: .ready))
        return Job(
            key: Key(slot: slot, generation: entries[index].generation), work: entries[index].work, asks: true)
    }

    /// Whether a thread asks for the categories of the entry.
    func isAsking(_ key: Key) -> Bool { entries.has(key) && entries[Int(key.slot)].isAsking }

    /// Lets an entry run whose categories were granted; returns false and changes nothing if it may not begin now.
    ///
    /// The queue may have been suspended or made narrower since the entry got its slot.
    mutating func beginAsked(_ key: Key) -> Bool {
        guard isAsking(key), !isSuspended, holds == 0, running <= width else { return false }
        let index = Int(key.slot)
        entries[index].isAsking = false
        entries[index].stage = .running
        counts.held -= 1
        counts.running += 1
        starts &+= 1
        journal?.note(.placed(key.slot, entries[index], from: .held))
        return true
    }

    /// Gives up the slot with which an entry asked; returns false if the entry does not ask any more.
    mutating func stopAsking(_ key: Key) -> Bool {
        guard isAsking(key) else { return false }
        let index = Int(key.slot)
        entries[index].refusals = min(entries[index].refusals, .max - 1) + 1
        stopAsking(index)
        return true
    }

    mutating func stopAsking(_ index: Int) {
        guard entries[index].isAsking else { return }
        entries[index].isAsking = false
        running -= 1
    }
}
