// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What a thread that works for a queue has in hand.
///
/// Not Sendable on purpose: only touched by that thread.
package final class WorkerSeat {
    let engine: QueueEngine
    /// The seat around, where a body works off another queue.
    let outer: WorkerSeat?
    /// The entry that is being run.
    var slot: QueueMachine.Slot = -1
    /// The operation whose body it is.
    var operation: ManagedOperation?
    /// Whether the body returned, so that nothing of the user's comes before the thread asks for more work.
    var isConcluding = false
    /// Whether the entry ended: told to the queue together with the question for the next.
    var hasEnded = false
    var ending = LifecycleMachine.Ending.success
    /// Operations of the same queue about which something changed while the thread concluded.
    var readied: [ManagedOperation] = []

    package init(engine: QueueEngine, outer: WorkerSeat? = nil) {
        self.engine = engine
        self.outer = outer
    }

    func clear() {
        slot = -1
        hasEnded = false
        isConcluding = false
        if readied.count == 1 {
            readied.removeLast()
        } else if !readied.isEmpty {
            readied.removeAll(keepingCapacity: readied.count <= 1024)
        }
    }
}
