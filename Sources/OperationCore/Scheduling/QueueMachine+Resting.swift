// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// Slots of bodies that wait.
extension QueueMachine {
    /// The body of an entry waits: if that runs, it needs no slot meanwhile.
    ///
    /// Said again with another reason, it changes that.
    mutating func rest(_ key: Key, because reason: WaitReason? = nil) {
        let index = Int(key.slot)
        guard entries.has(key), entries[index].stage == .running else { return }
        if !entries[index].isResting {
            entries[index].isResting = true
            running -= 1
            resting += 1
        }
        guard let reason, restReasons.updateValue(reason, forKey: key.slot) != reason else { return }
        journal?.note(.rested(key.slot, entries[index], reason))
    }

    /// Whether the entry gave up its slot, and has not ended since.
    func isResting(_ key: Key) -> Bool {
        entries.has(key) && entries[Int(key.slot)].isResting
    }

    /// The body wants to go on; false if it has to wait for a slot.
    mutating func resume(_ key: Key) -> Bool {
        guard isResting(key) else { return true }
        guard running < width else { return false }
        entries[Int(key.slot)].isResting = false
        resting -= 1
        running += 1
        if !restReasons.isEmpty, restReasons.removeValue(forKey: key.slot) != nil {
            journal?.note(.wentOn(key.slot, entries[Int(key.slot)]))
        }
        return true
    }
}
