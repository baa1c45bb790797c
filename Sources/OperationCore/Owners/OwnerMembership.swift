// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// That an operation belongs to an owner: held by the operation and, until it ends, by the owner's group.
package final class OwnerMembership: Sendable {
    enum Place {
        /// Not entered yet.
        case outside
        /// At this position of that group.
        case member(OwnerGroup, Int)
        /// Taken back, or never to be entered.
        case withdrawn
    }

    let owner: OperationOwner
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var reference: Operation?
    // Sendable: only touched under the lock of the registry.
    nonisolated(unsafe) var place = Place.outside

    package init(of operation: Operation, to owner: OperationOwner) {
        self.owner = owner
        reference = operation
    }

    /// The operation, if it is still there.
    ///
    /// Not to be asked for under a lock: what is returned may be the last reference.
    package var operation: Operation? { reference }
}
