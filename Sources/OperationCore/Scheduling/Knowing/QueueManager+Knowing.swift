// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// Knowing what is in the queue.
extension QueueManager {
    /// How many entries stand where, and how many ended how; at the same cost however many there are.
    public var counts: QueueCounts { engine.counts }

    /// What the queue holds at this moment, as lists and numbers that belong together.
    ///
    /// Its cost grows with the number of entries, and the queue stands still meanwhile; where numbers are enough, ask for
    /// ``counts``.
    public var snapshot: QueueSnapshot { engine.snapshot }

    /// The changes of the queue as they come, its present state first; 1,024 that were not read yet are kept.
    public var events: QueueEvents { events(keeping: 1024) }

    /// The changes of the queue as they come, its present state first.
    ///
    /// - Parameter capacity: How many events that were not read yet are kept, with their operations, before a slow reader
    ///   misses some. Below one, it is one.
    public func events(keeping capacity: Int) -> QueueEvents {
        QueueEvents(engine: WeakEngine(engine), capacity: capacity)
    }
}

// Knowing why.
extension QueueManager {
    /// Says why an operation does not run: what it waits for, which limit, who has the places.
    ///
    /// It may be of any kind, and in this queue or not. The cost grows with the number of entries, and the queue stands
    /// still meanwhile: it is for people who look for the reason, not for each operation.
    public func explain(_ operation: Operation) -> QueueExplanation { engine.explain(operation) }
}

// Knowing how far it is.
extension QueueManager {
    /// How many of all entries that were ever added have ended, in whatever way.
    ///
    /// Both numbers only ever grow, and never is there more done than there is. The fraction of the two falls where more
    /// is added than ends. Cancelling it cancels all that has not ended. It is brought up to date by the threads of the
    /// queue from the first call on; those who observe it are called on them.
    public var progress: Progress { engine.progress }
}
