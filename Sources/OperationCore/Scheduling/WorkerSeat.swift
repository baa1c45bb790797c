// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What a thread that works for a queue has in hand.
///
/// Not Sendable on purpose: only touched by that thread, in steps that do not overlap. So no access to it is checked at run
/// time.
package final class WorkerSeat {
    let engine: QueueEngine
    /// The seat around, where a body works off another queue.
    let outer: WorkerSeat?
    /// What the thread was dealt beyond that.
    let hand = WorkerHand()
    /// Whether the queue knows the hand.
    @exclusivity(unchecked) var isHandKnown = false
    @exclusivity(unchecked) var pace = DealingPace()
    /// How many bodies returned since the pace was looked at.
    @exclusivity(unchecked) var finishedCount = 0
    /// The entry that is being run.
    @exclusivity(unchecked) private(set) var key = none
    /// The operation whose body it is.
    @exclusivity(unchecked) var operation: ManagedOperation?
    /// What the thread has taken and not begun, as long as it lets go of what ended before.
    @exclusivity(unchecked) var unbegun: QueueMachine.Key?
    /// Whether it counts as one of the queue's threads no more.
    @exclusivity(unchecked) var hasLeft = false
    /// Whether the body returned, so that nothing of the user's comes before the thread asks for more work.
    @exclusivity(unchecked) var isConcluding = false
    /// Whether the entry ended: told to the queue together with the question for the next.
    @exclusivity(unchecked) var hasEnded = false
    @exclusivity(unchecked) var ending = LifecycleMachine.Ending.success
    /// Operations of the same queue about which something changed while the thread concluded.
    @exclusivity(unchecked) var readied: [ManagedOperation] = []

    package init(engine: QueueEngine, outer: WorkerSeat? = nil) {
        self.engine = engine
        self.outer = outer
    }

    var slot: QueueMachine.Slot { key.slot }

    /// How urgent the entry is that is being run.
    var urgency: QueueLevel {
        operation.map { $0.core.withLock { $0.urgency } } ?? engine.level(of: key) ?? .veryLow
    }

    private static let none = QueueMachine.Key(slot: -1, generation: 0)

    func take(_ key: QueueMachine.Key) {
        self.key = key
        unbegun = nil
        finishedCount += 1
    }

    /// The next of those that the thread was dealt, if all that is to be told of the last is that it succeeded.
    func nextDealt() -> QueueMachine.Job? {
        guard isHandKnown, hasEnded, ending == .success, readied.isEmpty else { return nil }
        guard let (next, old) = hand.next(after: key) else { return nil }
        let last = exchange(&operation, with: nil)
        clear()
        unbegun = next.key
        // What it holds may make something ready as it goes, or wait: by now there is nothing that this thread keeps back.
        withExtendedLifetime((last, old)) {}
        return next
    }

    /// Tells the queue what this thread kept back for it, before a rule or a conversion of the user's runs.
    static func flushCurrent() {
        guard let seat = ThreadNotes.current.seat else { return }
        // What the user's code makes ready is told at once: it may wait for it.
        seat.isConcluding = false
        if seat.hasEnded || !seat.readied.isEmpty { seat.engine.flush(seat) }
    }

    /// Tells the queue what got ready, before something is let go of that may be the user's.
    static func tellReadied() {
        guard let seat = ThreadNotes.current.seat, !seat.readied.isEmpty else { return }
        seat.isConcluding = false
        seat.engine.flush(seat, isBackSoon: true)
    }

    func clear() {
        key = Self.none
        isConcluding = false
        forgetNews()
    }

    /// The queue has been told.
    func forgetNews() {
        hasEnded = false
        if readied.count == 1 {
            readied.removeLast()
        } else if !readied.isEmpty {
            readied.removeAll(keepingCapacity: readied.count <= 1024)
        }
    }
}
