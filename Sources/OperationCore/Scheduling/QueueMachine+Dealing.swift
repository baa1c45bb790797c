// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// Entries that a thread is given in advance: see `WorkerHand`.
extension QueueMachine {
    /// Takes out up to so many of those that come next, all equally urgent, for one thread to run in its slot.
    mutating func deal(_ count: Int) -> [Job] {
        guard lines.isOne else { return [] }
        var jobs: [Job] = []
        while jobs.count < count, let slot = lines.takeNext(of: entries) {
            let index = Int(slot)
            if entries[index].asks {
                lines.prepend(Ticket(slot: slot, stamp: entries[index].stamp), entries[index].level)
                break
            }
            entries[index].stamp &+= 1
            entries[index].stage = .dealt
            dealtLevel = counts.dealt == 0 ? entries[index].level : min(dealtLevel, entries[index].level)
            counts.ready -= 1
            counts.readyInFront -= 1
            counts.dealt += 1
            jobs.append(lend(Key(slot: slot, generation: entries[index].generation)))
        }
        return jobs
    }

    /// Gives away what an entry does, so that whoever runs it can let go of it as soon as it ended.
    mutating func lend(_ key: Key) -> Job {
        Job(key: key, work: exchange(&entries[Int(key.slot)].work, with: .none))
    }

    /// So many that were dealt have begun and ended.
    mutating func noteStarts(_ count: Int) { starts &+= UInt64(count) }

    /// Whether something else than what was dealt may have its turn.
    var isDealtRivalled: Bool { counts.dealt > 0 && lines.hasOther(than: dealtLevel) }

    /// An entry of a hand runs; if it was dealt, in the slot of those before it.
    mutating func beginDealt(_ job: Job) {
        let index = Int(job.key.slot)
        guard entries.has(job.key) else { return }
        entries[index].work = job.work
        guard entries[index].stage == .dealt else { return }
        starts &+= 1
        counts.dealt -= 1
        counts.running += 1
        running += 1
        entries[index].stage = .running
    }

    /// An entry that a thread took has not begun, and is the first of its line again; false if it is not there any more.
    mutating func giveBack(_ key: Key) -> Bool {
        let index = Int(key.slot)
        guard entries.has(key), entries[index].stage == .running || entries[index].isAsking else { return false }
        let old = entries[index].stage
        running -= 1
        counts[old] -= 1
        entries[index].isAsking = false
        counts.ready += 1
        counts.readyInFront += 1
        entries[index].stage = .ready
        lines.prepend(Ticket(slot: key.slot, stamp: entries[index].stamp), entries[index].level)
        journal?.note(.placed(key.slot, entries[index], from: old))
        return true
    }

    /// An entry that was dealt has not begun: it is the first of its line again.
    mutating func takeBack(_ job: Job) {
        let index = Int(job.key.slot)
        entries[index].work = job.work
        counts.dealt -= 1
        counts.ready += 1
        counts.readyInFront += 1
        entries[index].stage = .ready
        lines.prepend(Ticket(slot: job.key.slot, stamp: entries[index].stamp), entries[index].level)
    }
}
