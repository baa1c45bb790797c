// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// Children that gave no result, and for which there may be a way out.
extension GroupEngine {
    /// Adds a hook for all children that it fits.
    func add(_ hook: RecoveryHook) {
        state.withLock { state in
            var recoveries = state.recoveries ?? GroupRecoveries()
            recoveries.hooks.append(hook)
            state.recoveries = recoveries
        }
    }

    /// A child ended without a result, or one that took the place of another ended in whatever way.
    ///
    /// - Returns: Whether its end is told later, when it was recovered or not.
    func recover(
        _ child: ManagedOperation, _ slot: GroupMachine.Slot, _ tag: Int32, _ ending: LifecycleMachine.Ending
    ) -> Bool {
        guard let recoveries = state.withLock({ $0.recoveries }) else { return false }
        if tag == GroupRescue.tag, let rescue = recoveries.running[slot] {
            replacementDidEnd(child, ending, rescue)
            return true
        }
        guard let hook = recoveries.hook(for: child, at: slot), let failure = failure(of: child, tag, ending),
            !failure.failure.isNotForRecovery
        else { return false }
        return begin(GroupRescue(child, (slot, tag), ending, failure, hook), failure.failure)
    }

    /// The child is out of the way; its hook is asked.
    private func begin(_ rescue: GroupRescue, _ failure: OperationFailure<any Error>) -> Bool {
        var hasBegun = false
        var ended: ManagedOperation?
        apply { state in
            hasBegun =
                !state.children[Int(rescue.slot)].isGivenUp && state.machine.beginRecovery(rescue.slot)
            guard hasBegun else { return }
            state.recoveries?.running[rescue.slot] = rescue
            ended = exchange(&state.children[Int(rescue.slot)].operation, with: nil)
        }
        withExtendedLifetime(ended) {}
        // Doomed meanwhile, it is over, and nobody is asked.
        guard hasBegun, let attempt = rescue.nextAttempt() else { return hasBegun }
        let task = Task { [weak self] in
            var answer: RecoveryAnswer
            do {
                answer = try await rescue.hook.ask(rescue.original, failure, attempt)
            } catch {
                answer = .fail(error)
            }
            self?.take(answer, for: rescue)
        }
        rescue.keep(task, of: attempt)
        return true
    }

    private func take(_ answer: RecoveryAnswer, for rescue: GroupRescue) {
        switch answer {
        case .result(let standIn): conclude(rescue, with: standIn)
        case .fail(let error): conclude(rescue, after: error.map { .failed($0) })
        case .operation(let other, let result):
            rescue.keep(result)
            if let error = replace(rescue, by: other) { conclude(rescue, after: .failed(error)) }
        }
    }

    /// Another operation takes the place of the child; returns why not.
    private func replace(_ rescue: GroupRescue, by other: ManagedOperation) -> GroupError? {
        // Outside the lock: it asks Foundation.
        if other.isHeldByQueue(isByQueue: false) { return GroupError(.inQueue, other) }
        let answer = nest(other) {
            state.withLock { state in
                // Doomed meanwhile: the answer comes too late, and nobody asks for the reason.
                guard state.recoveries?.running[rescue.slot] === rescue else { return .refused(.ended) }
                return other.core.withLock { core in
                    if let code = core.reasonAgainstGroup { return .refused(code) }
                    let isReady = !state.machine.asksForReadiness || core.isReadyOrListens(for: other)
                    guard state.machine.replace(rescue.slot, isReady: isReady) else { return .refused(.ended) }
                    (core.parent, core.parentSlot, core.parentTag) = (self, rescue.slot, GroupRescue.tag)
                    core.noteAdded(other)
                    state.children[Int(rescue.slot)].operation = other
                    return .taken
                }
            }
        }
        if case .refused(let code) = answer { return GroupError(code, other) }
        beginMeasuring(other)
        apply { _ in }
        return nil
    }

    private func replacementDidEnd(
        _ other: ManagedOperation, _ ending: LifecycleMachine.Ending, _ rescue: GroupRescue
    ) {
        if ending == .success, let standIn = rescue.result { return conclude(rescue, with: standIn) }
        let failure = failure(of: other, -1, ending)?.failure
        if let failure, rescue.mayAskAgain, begin(rescue, failure) { return }
        conclude(rescue, after: failure)
    }

    /// The child counts as one that gave that result.
    private func conclude(_ rescue: GroupRescue, with standIn: any AnyStandIn) {
        guard end(rescue) else { return }
        let old = rescue.original.core.withLock { core in exchange(&core.need().standIn, with: standIn) }
        withExtendedLifetime(old) {}
        ThreadWorklist.perform { self.settle(rescue.original, rescue.slot, rescue.tag, .success, nil) }
    }

    /// The child could not be recovered.
    private func conclude(_ rescue: GroupRescue, after failure: OperationFailure<any Error>?) {
        if end(rescue) { tellFailure(of: rescue, after: failure) }
    }

    /// Nobody waits any more for the child there; returns what is to be cancelled for that.
    func giveUp(_ child: ManagedOperation, at slot: GroupMachine.Slot) -> ManagedOperation? {
        var abandoned: GroupRescue?
        let standIn = state.withLock { state -> ManagedOperation? in
            guard state.children.indices.contains(Int(slot)) else { return nil }
            guard let rescue = state.recoveries?.running[slot], rescue.original.life === child.life else {
                // It may have just ended: it is not recovered then.
                let isPresent = state.children[Int(slot)].operation?.life === child.life
                if isPresent { state.children[Int(slot)].isGivenUp = true }
                return nil
            }
            state.children[Int(slot)].isGivenUp = true
            if !state.machine.isRecovering(slot) { return state.children[Int(slot)].operation }
            abandoned = state.recoveries?.running.removeValue(forKey: slot)
            return nil
        }
        if let abandoned { abandon(abandoned) }
        return standIn
    }

    /// The group is doomed, and the child with it.
    func abandon(_ rescue: GroupRescue) {
        rescue.end()
        tellFailure(of: rescue, after: nil)
    }

    private func tellFailure(of rescue: GroupRescue, after recoveryFailure: OperationFailure<any Error>?) {
        let failure = rescue.failure.adding(recoveryFailure)
        ThreadWorklist.perform { self.settle(rescue.original, rescue.slot, rescue.tag, rescue.ending, failure) }
    }

    /// Whether the recovery ends here and now; if not, it was over before.
    private func end(_ rescue: GroupRescue) -> Bool {
        let isCurrent = state.withLock { state in
            guard state.recoveries?.running[rescue.slot] === rescue else { return false }
            state.recoveries?.running[rescue.slot] = nil
            return true
        }
        if isCurrent { rescue.end() }
        return isCurrent
    }
}

extension OperationFailure {
    /// Whether nobody wants a result any more, or the group could not wait for one.
    fileprivate var isNotForRecovery: Bool {
        guard let code = cancellation?.code else { return false }
        return followsFromDependency || code == .taskCancelled || code == .tooManyWaits
    }

    /// Whether it is the mere consequence of what another operation did.
    var followsFromDependency: Bool {
        guard let code = cancellation?.code else { return false }
        return code == .dependencyFailed || code == .dependencyCancelled
    }
}

extension GroupEngine.State {
    /// Sets a hook for the child that has just been taken.
    mutating func setHook(_ hook: RecoveryHook, at slot: GroupMachine.Slot) {
        if recoveries == nil { recoveries = GroupRecoveries() }
        recoveries?.own[slot] = hook
    }

    /// The recoveries of children that are doomed, which end.
    mutating func takeRescues(at slots: [GroupMachine.Slot]) -> [GroupRescue] {
        guard recoveries?.running.isEmpty == false else { return [] }
        return slots.compactMap { slot in
            machine.isRecovering(slot) ? recoveries?.running.removeValue(forKey: slot) : nil
        }
    }
}
