// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What a thread that works for a queue has in hand.
///
/// Only touched by that thread.
final class WorkerSeat {
    let engine: QueueEngine
    /// The seat of the queue around, where a body works off another queue.
    let outer: WorkerSeat?
    var slot: QueueMachine.Slot = -1
    /// The operation whose body it runs.
    var operation: ManagedOperation?
    /// Whether the body returned, so that nothing of the user's comes before the thread asks for more work.
    var isConcluding = false
    /// Whether the entry ended: told to the queue together with the question for the next.
    var hasEnded = false
    var ending = LifecycleMachine.Ending.success
    /// Operations of the same queue that got ready while the thread concluded.
    var readied: [ManagedOperation] = []

    init(engine: QueueEngine, outer: WorkerSeat?) {
        self.engine = engine
        self.outer = outer
    }
}
