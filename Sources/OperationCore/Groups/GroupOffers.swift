// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What a group says to all that is beneath it: at most one value of each type.
///
/// What it is the core does not know: networking puts its policies there.
struct GroupOffers: Sendable {
    private var values: [ObjectIdentifier: any Sendable] = [:]

    subscript<Offer: Sendable>(_ type: Offer.Type) -> Offer? {
        get { values.isEmpty ? nil : values[ObjectIdentifier(type)] as? Offer }
        set { values[ObjectIdentifier(type)] = newValue }
    }
}

extension GroupEngine {
    /// What the group says of that kind; nil if it says nothing, and after its end.
    package func offer<Offer: Sendable>(of type: Offer.Type = Offer.self) -> Offer? {
        state.withLock { $0.offers[type] }
    }

    /// Changes what the group says, for what begins from now on; false if nothing begins any more.
    ///
    /// - Parameters:
    ///   - start: What is changed if it said nothing.
    ///   - change: Called under the lock of the group.
    @discardableResult
    package func changeOffer<Offer: Sendable>(from start: Offer, _ change: (inout Offer) -> Void) -> Bool {
        // It may be the user's what it held: let go of outside the lock.
        let (old, isTaken) = state.withLock { state -> (Offer?, Bool) in
            if state.machine.isOver { return (nil, false) }
            let old = state.offers[Offer.self]
            var offer = old ?? start
            change(&offer)
            state.offers[Offer.self] = offer
            return (old, true)
        }
        withExtendedLifetime(old) {}
        return isTaken
    }
}

// The way outwards.
extension ManagedOperation {
    /// Whether the operation is a child of a group.
    package final var isInGroup: Bool { core.withLock { $0.parent != nil } }

    /// The group whose child it is, once that has begun.
    final var groupOfChild: ManagedOperation? { core.withLock { $0.parent }?.state.withLock { $0.operation } }

    /// Asks the groups around the operation what they say of that kind, the nearest first, until `take` has enough.
    package final func askGroups<Offer: Sendable>(for type: Offer.Type, _ take: (Offer) -> Bool) {
        var next: ManagedOperation? = self
        while let operation = next {
            guard let parent = operation.core.withLock({ $0.parent }) else { return }
            // A group whose children begin has begun itself, and not ended.
            let (offer, group) = parent.state.withLock { ($0.offers[type], $0.operation) }
            if let offer, take(offer) { return }
            next = group
        }
    }

    /// How long until the first of the groups around the operation is cancelled since its time is over.
    ///
    /// What is shielded in a group is not cancelled with it.
    final var timeLeftOfGroups: Duration? {
        var least: Duration?
        var next: ManagedOperation? = self
        while let operation = next {
            let (parent, slot) = operation.core.withLock { ($0.parent, $0.parentSlot) }
            next = parent?.groupUnlessShielded(from: slot)
            guard let next, let left = next.ownTimeLeft(at: next.clock.now) else { continue }
            least = min(least ?? left, left)
        }
        return least
    }
}

extension GroupEngine {
    /// The group, unless the child there goes on when that is cancelled.
    fileprivate func groupUnlessShielded(from slot: GroupMachine.Slot) -> ManagedOperation? {
        state.withLock { state in
            let isShielded = state.children.indices.contains(Int(slot)) && state.machine.isShielded(slot)
            return isShielded ? nil : state.operation
        }
    }
}
