// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Synchronization

/// One operation on one round of its admission, as those know it whom it asks.
///
/// It does not keep the operation alive. An operation that is freed hands in its ticket.
final class AdmissionTicket: Sendable {
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var reference: ManagedOperation?
    let round: UInt32
    private let begun = Atomic(false)

    init(_ operation: ManagedOperation, round: UInt32) {
        reference = operation
        self.round = round
    }

    /// The operation, unless it is gone.
    ///
    /// Not to be asked for under a lock: the answer may be its last reference.
    var operation: ManagedOperation? { reference }

    /// Whether the body began, so that a throttled key rests when the ticket is handed in.
    var hasBegun: Bool { begun.load(ordering: .acquiring) }

    /// The semaphore of the thread that has a slot for the operation and waits for the categories.
    private let asker = Locked<DispatchSemaphore?>(nil)

    /// Waits with a slot in hand until the categories are granted, something changes, or the time is over.
    func wait(_ semaphore: DispatchSemaphore, atMost time: Duration) {
        _ = semaphore.wait(timeout: .now() + .nanoseconds(Int(clamping: time.saturatedNanoseconds)))
        asker.withLock { $0 = nil }
    }

    /// Creates the semaphore on which the thread is going to wait.
    func prepareToWait() -> DispatchSemaphore {
        let semaphore = DispatchSemaphore(value: 0)
        asker.withLock { $0 = semaphore }
        return semaphore
    }

    func wakeAsker() { asker.withLock { $0 }?.signal() }

    func noteBodyBegins() { begun.store(true, ordering: .releasing) }
}

extension AdmissionTicket: Hashable {
    static func == (left: AdmissionTicket, right: AdmissionTicket) -> Bool { left === right }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
