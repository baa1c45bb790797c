// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

// Adding and ending children.
extension GroupEngine {
    /// Makes an operation a child, without beginning it before the next `apply`.
    ///
    /// - Returns: The reason why the operation cannot be a child, or `nil`. A refused operation is unchanged.
    func adopt(_ child: ManagedOperation, _ terms: ChildTerms = ChildTerms()) -> OperationSetupError? {
        let child = child.held
        var answer = nest(child) { tryToAdopt(child, terms, isProbed: false) }
        if case .probe = answer {
            // This check holds no lock, because it calls Foundation.
            if child.isHeldByQueue(isByQueue: false) { return OperationSetupError(.inQueue, child) }
            answer = nest(child) { tryToAdopt(child, terms, isProbed: true) }
        }
        if case .refused(let reason) = answer { return OperationSetupError(reason, child) }
        beginMeasuring(child)
        if case .toCancel(let slot) = answer { cancelChildren([slot]) }
        return nil
    }

    enum Adoption {
        case taken, probe
        case toCancel(GroupMachine.Slot)
        case refused(GroupRefusal)
    }

    /// Held while a group becomes the child of another one.
    ///
    /// Without it, two threads could each put one of two groups into the other.
    private static let nesting = Locked(())

    /// Makes the operation a child with the closure `adopt`, and refuses a group that encloses this one.
    func nest(_ child: ManagedOperation, _ adopt: () -> Adoption) -> Adoption {
        guard let inner = child.groupEngine else { return adopt() }
        // These may be the last references to groups of the user, so they are released without holding the lock.
        var met: [GroupEngine] = []
        defer { extendLifetime(met) }
        return Self.nesting.withLock { _ in
            if isEnclosed(by: inner, &met) { return .refused(.cycle) }
            let answer = adopt()
            switch answer {
            case .taken, .toCancel:
                inner.state.withLock { state in
                    if !state.machine.isOver { state.outer = self }
                }
            case .probe, .refused: break
            }
            return answer
        }
    }

    private func tryToAdopt(_ child: ManagedOperation, _ terms: ChildTerms, isProbed: Bool) -> Adoption {
        state.withLock { state in
            if state.machine.isOver { return .refused(.ended) }
            var isCancelledByGroup = false
            var taken: GroupMachine.Slot = -1
            let answer = child.core.withLock { core -> Adoption? in
                if let reason = core.reasonAgainstAdoption { return .refused(reason) }
                if core.mayBeInFoundationQueue, !isProbed { return .probe }
                let isReady = !state.machine.asksForReadiness || core.isReadyOrListens(for: child)
                switch state.machine.add(isShielded: terms.isShielded, isReady: isReady, isMade: terms.tag >= 0) {
                case .refused: return .refused(.ended)
                case .taken(let slot): taken = slot
                case .toCancel(let slot): (taken, isCancelledByGroup) = (slot, true)
                }
                core.parent = self
                core.parentSlot = taken
                core.parentTag = terms.tag
                if let record = child.mapRecord { core.recordAddition(record) }
                return nil
            }
            if let answer { return answer }
            state.store(child, terms, at: taken)
            if terms.waiter.isTask { state.waits.begin() }
            return isCancelledByGroup ? .toCancel(taken) : .taken
        }
    }

    /// Notes that an operation that was made to be a child cannot be one.
    func fail(_ child: ManagedOperation, _ error: OperationSetupError, _ tag: Int32 = -1) {
        let failure = GroupFailure.Child(name: name(of: child, tag), failure: .failed(error))
        state.release { state in
            switch state.machine.add() {
            case .taken(let slot), .toCancel(let slot): _ = state.machine.ended(slot, .failure)
            case .refused: break
            }
            return state.record(failure)
        }
    }

    /// Whether this group is the other one, or is inside it.
    private func isEnclosed(by other: GroupEngine, _ met: inout [GroupEngine]) -> Bool {
        if other === self { return true }
        // A group without children encloses nothing.
        guard other.state.withLock({ $0.machine.present > 0 }) else { return false }
        var next = state.withLock { $0.outer }
        while let engine = next {
            met.append(engine)
            if engine === other { return true }
            next = engine.state.withLock { $0.outer }
        }
        return false
    }

    /// Notes that a child has ended and is not recovered any more.
    func settle(
        _ child: ManagedOperation, _ slot: GroupMachine.Slot, _ tag: Int32, _ ending: LifecycleMachine.Ending,
        _ failure: GroupFailure.Child?
    ) {
        if tag >= 0 { source?.take(child, tag: tag) }
        var waiter = GroupWaiter.none
        var released: (ManagedOperation?, RecoveryHook?)
        var forgotten: GroupFailure.Child?
        var isMeasuring = false
        apply { state in
            let hasWon = state.machine.ended(slot, ending)
            if hasWon, state.machine.policy.hasWinners { state.winners.append(child) }
            if let failure { forgotten = state.record(failure) }
            guard state.children.indices.contains(Int(slot)) else { return }
            waiter = exchange(&state.children[Int(slot)].waiter, with: .none)
            state.meter.end(slot)
            isMeasuring = state.meter.isOn
            let operation = exchange(&state.children[Int(slot)].operation, with: nil)
            released = (operation, state.recoveries?.own.removeValue(forKey: slot))
            if !waiter.isNone, state.machine.isSuspended, !state.machine.isCancellingChildren {
                state.waits.hold(waiter)
                waiter = .none
            }
        }
        extendLifetime((released, forgotten))
        if isMeasuring { reportProgress() }
        if !waiter.isNone { release(waiter, .ended) }
    }

    /// Returns the failure of a child that gave no result, or `nil` if the child was canceled because of the group.
    func failure(
        of child: ManagedOperation, _ tag: Int32, _ ending: LifecycleMachine.Ending
    ) -> GroupFailure.Child? {
        if ending == .cancelled, state.withLock({ $0.machine.isCancellingChildren }) { return nil }
        let name = name(of: child, tag)
        if let error = child.failureAsError { return GroupFailure.Child(name: name, failure: .failed(error)) }
        return GroupFailure.Child(name: name, failure: .cancelled(child.cancellationCause ?? .requested))
    }

    /// Returns the name of a child for errors, with the element from which it was made.
    ///
    /// The name of a mapped child is the name of its original.
    private func name(of child: ManagedOperation, _ tag: Int32) -> String {
        let name = child.life.displayName
        guard tag >= 0, let element = source?.describe(tag: tag) else { return name }
        return "\(name), \(element)"
    }

    /// The cause with which children are canceled.
    var causeForChildren: CancellationCause {
        let (known, phase, ownCause, operation, first, sourceError) = state.withLock { state in
            // With a body, it is not known which failure of a child made it fail.
            let first = state.machine.policy == .bodyDecides ? nil : state.failures.first
            return (
                state.cancellationCauseOfChildren, state.machine.phase, state.ownCause, state.operation, first,
                state.sourceError
            )
        }
        if let known { return known }
        let place = keepPlace(operation?.name)
        let cause: CancellationCause =
            switch phase {
            case .cancellingChildren(.failure): .groupFailed(place, first, sourceError)
            case .cancellingChildren(.success): .groupDecided(place)
            default: .groupCancelled(place, because: ownCause ?? operation?.cancellationCause)
            }
        return state.withLock { state in
            let kept = state.cancellationCauseOfChildren ?? cause
            state.cancellationCauseOfChildren = kept
            return kept
        }
    }

    /// Returns the place of the group in the tree of groups, and keeps it.
    @discardableResult
    func keepPlace(_ name: String?) -> GroupPlace {
        // The loop goes outward until a group knows its place, and then back.
        var chain: [(GroupEngine, String?)] = []
        var known: GroupPlace?
        var next: GroupEngine? = self
        while let engine = next, known == nil {
            let (place, operation, outer) = engine.state.withLock { ($0.place, $0.operation, $0.outer) }
            known = place
            if place == nil { chain.append((engine, engine === self ? name ?? operation?.name : operation?.name)) }
            next = outer
        }
        for (engine, name) in chain.reversed() {
            let made = GroupPlace(name, in: known)
            known = engine.state.withLock { state in
                let place = state.place ?? made
                state.place = place
                return place
            }
        }
        return known ?? GroupPlace(name, in: nil)
    }
}

extension GroupEngine.State {
    /// The maximum number of failures that are kept for a body, which may run children as long as the program lives.
    private static let mostFailuresOfBody = 100

    /// Adds a failure, and returns an old one that was removed for it, to be released without holding the lock.
    fileprivate mutating func record(_ failure: GroupFailure.Child) -> GroupFailure.Child? {
        defer { failures.append(failure) }
        guard case .bodyDecides = machine.policy.rule, failures.count == Self.mostFailuresOfBody else { return nil }
        return failures.removeFirst()
    }
}

extension ManagedOperation {
    /// The engine that runs the children, if the operation is a group.
    package final var groupEngine: GroupEngine? { ownGroup.map { unsafeDowncast($0, to: GroupEngine.self) } }
}

extension ManagedOperation.Core {
    /// The engine of the group of which the operation is a child.
    var parentEngine: GroupEngine? { parent.map { unsafeDowncast($0, to: GroupEngine.self) } }

    /// The reason why the operation cannot become a child of a group, or `nil`.
    var reasonAgainstAdoption: GroupRefusal? {
        if host != nil { return .inQueue }
        if parent != nil { return .inGroup }
        if machine.isFinished { return .alreadyFinished }
        return machine.isStartUnderWay ? .alreadyStarted : nil
    }

    /// Returns whether the dependencies of the operation have ended, and otherwise has it notified when they have.
    func isReadyOrListens(for operation: ManagedOperation) -> Bool {
        isReady || node?.listen(operation.life) ?? true
    }
}

extension ManagedOperation {
    /// Whether the dependencies of the operation have ended.
    ///
    /// If not, its group is notified when they have.
    final var isReadyInGroup: Bool { core.withLock { $0.isReadyOrListens(for: self) } }

    /// Leaves a group that is being freed and never ran.
    final func leaveGroup() {
        core.release { core in
            core.parentSlot = -1
            core.extras?.maps?.added = nil
            return exchange(&core.parent, with: nil)
        }
    }
}

/// The settings that a group offers to all operations in it, with at most one value of each type.
///
/// The core does not know the types. Networking stores its policies there.
typealias GroupOffers = [ObjectIdentifier: any Sendable]

extension GroupOffers {
    subscript<Offer: Sendable>(_ type: Offer.Type) -> Offer? {
        get { isEmpty ? nil : self[ObjectIdentifier(type)] as? Offer }
        set { self[ObjectIdentifier(type)] = newValue }
    }
}

extension GroupEngine {
    /// Returns the setting of a type, or `nil` if the group has none or has ended.
    package func offer<Offer: Sendable>(of type: Offer.Type = Offer.self) -> Offer? {
        state.withLock { $0.offers[type] }
    }

    /// Changes a setting for the operations that begin from now on.
    ///
    /// - Parameters:
    ///   - start: The value to change if the group has none.
    ///   - change: Makes the change, under the lock of the group.
    /// - Returns: `false` if the group has ended.
    @discardableResult
    package func changeOffer<Offer: Sendable>(from start: Offer, _ change: (inout Offer) -> Void) -> Bool {
        // The old value may hold user values, so it is released without holding the lock.
        let (old, isTaken) = state.withLock { state -> (Offer?, Bool) in
            if state.machine.isOver { return (nil, false) }
            let old = state.offers[Offer.self]
            var offer = old ?? start
            change(&offer)
            state.offers[Offer.self] = offer
            return (old, true)
        }
        extendLifetime(old)
        return isTaken
    }
}

// The groups around an operation.
extension ManagedOperation {
    /// Passes the settings of the groups around the operation to `take`, the nearest group first, until it returns
    /// true.
    package final func askGroups<Offer: Sendable>(for type: Offer.Type, _ take: (Offer) -> Bool) {
        askGroups { offers in offers[type].map(take) ?? false }
    }

    /// Passes the settings of the groups around the operation to a closure until it returns `true`.
    ///
    /// The method is not generic, because most operations are in no group.
    private func askGroups(_ take: (GroupOffers) -> Bool) {
        var next: ManagedOperation? = self
        while let operation = next {
            guard let parent = operation.core.withLock({ $0.parentEngine }) else { return }
            // A group whose children begin has begun itself, and has not ended.
            let (offers, group) = parent.state.withLock { ($0.offers, $0.operation) }
            if !offers.isEmpty, take(offers) { return }
            next = group
        }
    }
}
