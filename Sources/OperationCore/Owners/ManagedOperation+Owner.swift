// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension CommonOperationMembers {
    /// On whose behalf the operation runs: an object, held weakly, or a name; nil, as from the start, for nobody's.
    ///
    /// All operations of an owner can be cancelled together, until they end. One whose owner is gone is not begun: it is
    /// cancelled with the cause `ownerGone` when it is started.
    public var owner: OperationOwner? {
        get { (self as ManagedOperation).assignedOwner }
        set { (self as ManagedOperation).assignedOwner = newValue }
    }
}

extension ManagedOperation {
    final var assignedOwner: OperationOwner? {
        get { core.withLock { $0.membership }?.owner }
        set {
            let membership = newValue.map { OwnerMembership(of: life, to: $0) }
            let (old, hasEnded) = core.withLock { core in
                (exchange(&core.membership, with: membership), core.machine.isFinished)
            }
            // Another thread may exchange the new one before it is entered here: one that was withdrawn stays outside.
            if let old { OwnerRegistry.shared.withdraw(old) }
            if let membership, !hasEnded { OwnerRegistry.shared.enter(membership) }
        }
    }

    /// Cancels an operation that is about to begin if its owner is gone.
    final func cancelIfOwnerIsGone() {
        guard let owner = core.withLock({ $0.machine.ending == nil ? $0.membership : nil })?.owner, owner.isGone else {
            return
        }
        cancelIfUndecided(because: .ownerGone("\(owner)"))
    }
}
