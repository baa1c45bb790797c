// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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

    func noteBodyBegins() { begun.store(true, ordering: .releasing) }
}

extension AdmissionTicket: Hashable {
    static func == (left: AdmissionTicket, right: AdmissionTicket) -> Bool { left === right }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
