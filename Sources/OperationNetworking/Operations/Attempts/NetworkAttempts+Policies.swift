// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

// Policies decide before a request is sent, and after an attempt failed.
extension NetworkAttempts {
    var policies: AttemptPolicies? { state.withLock { $0.policies } }

    /// Changes the policies.
    ///
    /// Call this method before the start.
    ///
    /// - Parameters:
    ///   - setting: The setting that the user changes, which the operation then does not inherit from a group.
    ///   - change: A closure that changes the policies, and returns the old ones to be released without holding the
    ///     lock, because they may hold a user's object.
    package func changePolicies<Left>(
        bySetting setting: ExplicitPolicies = [], _ change: (inout AttemptPolicies) -> Left
    ) {
        state.release { state in
            state.explicitPolicies.formUnion(setting)
            var policies = exchange(&state.policies, with: nil) ?? AttemptPolicies()
            defer { state.policies = policies }
            return change(&policies)
        }
    }

    /// Changes the handlers, unless the operation has ended, and releases the old ones without holding the lock.
    func changeHandlers(_ change: (inout State.Handlers) -> Void) {
        state.release { state in
            let old = state.$handlers
            var handlers = state.handlers ?? (nil, nil)
            change(&handlers)
            if state.machine.phase != .ended { state.handlers = handlers }
            return old
        }
    }

    // Before a request is sent.

    func clear() -> AttemptMachine.Action {
        let (owner, request, policies, round) = state.withLock {
            ($0.owner, $0.attempt.request, $0.policies, $0.machine.round)
        }
        guard let owner, let request, let policies else { return .none }
        return pass(policies, from: 0, request, round, owner)
    }

    /// Asks the policies one after another, which usually answer immediately.
    private func pass(
        _ policies: AttemptPolicies, from index: Int, _ request: NetworkRequest, _ round: Int, _ owner: any AttemptOwner
    ) -> AttemptMachine.Action {
        var (request, next) = (request, index)
        do throws(NetworkError) {
            while let (policy, index) = policies.next(from: next) {
                next = index + 1
                guard let passed = try policy.pass(request, for: owner) else {
                    ask(policy, then: (policies, next), request, round, owner)
                    return .none
                }
                request = passed
            }
            return cleared(request, round)
        } catch {
            refuse(error, round)
            return .none
        }
    }

    /// Returns whether the request of the attempt may be sent now.
    ///
    /// If the request may not be sent, the operation prepares it again, unless the attempt is over or a group is
    /// canceling the operation.
    func maySend(_ number: Int) -> Bool {
        let (owner, policies) = state.withLock { ($0.receivingOwner(number), $0.policies) }
        // Requests that a group has canceled must not use connections that other requests need.
        guard let owner, !owner.isCancelledByGroup else {
            _ = takeBack(number)
            return false
        }
        var mayBeSent = true
        policies?.forEach { if mayBeSent { mayBeSent = $0.maySend(number) } }
        if mayBeSent { return true }
        let (action, isTakenBack) = takeBack(number)
        // The attempt may have ended in the meantime, for example because of its time limit.
        guard isTakenBack else { return false }
        policies?.forEach { $0.takenBack(number) }
        record(.takenBack, number, owner)
        // The hooks are user code, and this is the thread of the session.
        DispatchQueue.global().async { self.perform(action) }
        return false
    }

    private func takeBack(_ number: Int) -> (action: AttemptMachine.Action, isTakenBack: Bool) {
        var timer: (any OperationTimer)?
        let result = state.withLock { state in
            let isTakenBack = state.machine.acceptsEvents(number)
            timer = isTakenBack ? state.attempt.stopTime() : nil
            return (state.machine.takenBack(number), isTakenBack)
        }
        timer?.cancel()
        return result
    }

    private func cleared(_ request: NetworkRequest, _ round: Int) -> AttemptMachine.Action {
        let (action, left) = state.withLock { state in
            let (action, left) = (state.machine.cleared(round), state.attempt.request)
            if state.machine.phase == .creating, state.machine.round == round { state.attempt.request = request }
            return (action, left)
        }
        extendLifetime(left)
        return action
    }

    private func ask(
        _ policy: AttemptPolicy, then others: (policies: AttemptPolicies, index: Int), _ request: NetworkRequest,
        _ round: Int, _ owner: any AttemptOwner
    ) {
        policy.clear(request, for: owner) { [weak self] answer in
            guard let self, let (owner, number) = running() else { return }
            switch answer {
            case .go(let request): perform(pass(others.policies, from: others.index, request, round, owner))
            case .hold(let reason):
                let now = owner.clock.now
                let action = state.withLock { state in
                    let action = state.machine.held(reason, round)
                    if action != .none { state.history.markHeldOrPaused(now: now) }
                    return action
                }
                if action != .none { record(.held(reason, self.request), number, owner) }
                perform(action)
            case .again:
                let (isHeldOrPaused, action) = state.withLock {
                    ($0.machine.isHeldOrPaused, $0.machine.released(round))
                }
                if isHeldOrPaused { performElsewhere(action) } else { perform(action) }
            case .refuse(let error): refuse(error, round)
            }
        }
    }

    private func refuse(_ error: NetworkError, _ round: Int) {
        let (isHeldOrPaused, number) = state.withLock { ($0.machine.isHeldOrPaused, $0.machine.attempt) }
        let (action, isFirst) = keep(error) { $0.refused(round) }
        if isHeldOrPaused {
            // The thread that ends the waits of many operations must run no user code.
            performElsewhere(action) { if isFirst { self.reportFailure(number) } }
        } else {
            if isFirst { reportFailure(number) }
            perform(action)
        }
    }

    // After an attempt failed.

    func decide() -> AttemptMachine.Action {
        let (owner, number, error, policies) = state.withLock {
            ($0.owner, $0.machine.attempt, $0.attempt.error, $0.policies)
        }
        guard let owner, let error else { return .none }
        reportFailure(number)
        guard let policies, policies.mayTryAgain else { return state.withLock { $0.machine.decided(.fail, number) } }
        let now = owner.clock.now
        let attempt = state.withLock { state in
            state.history.fail(number, saved: state.attempt.saved, replays: state.machine.replays, now: now)
            var attempt = FailedAttempt(
                number: number, replays: state.history.uncounted(state.machine.replays), error: error,
                request: state.attempt.currentRequest, head: state.attempt.head,
                elapsed: state.history.elapsed(at: now), earlier: state.history.records)
            attempt.advances = state.history.advances
            return attempt
        }
        // Only the retry policy, which repeats no canceled request, is notified of a cancellation of the task.
        let first: AttemptPolicies.Kind = error.code == .cancelled ? .retry : .manual
        ask(policies, from: first.rawValue, attempt, owner)
        return .none
    }

    private func ask(
        _ policies: AttemptPolicies, from index: Int, _ attempt: FailedAttempt, _ owner: any AttemptOwner
    ) {
        guard let (policy, index) = policies.next(from: index) else {
            return take(AttemptPolicyDecision(.fail), attempt, owner)
        }
        policy.decide(attempt, for: owner) { [weak self] answer in
            guard let self, let (owner, _) = running() else { return }
            if let answer { take(answer, attempt, owner) } else { ask(policies, from: index + 1, attempt, owner) }
        }
    }

    private func take(_ answer: AttemptPolicyDecision, _ attempt: FailedAttempt, _ owner: any AttemptOwner) {
        let (awaits, isHeldOrPaused) = state.withLock {
            ($0.machine.awaitsDecision(attempt.number), $0.machine.isHeldOrPaused)
        }
        guard awaits else { return }
        if !isHeldOrPaused { record(.decided(answer), attempt.number, owner) }
        let now = owner.clock.now
        let order = NotificationOrder()
        // An error may hold a user's object, so it is released without holding the lock.
        var left: NetworkError?
        let action: AttemptMachine.Action? = state.withLock { state in
            guard state.machine.awaitsDecision(attempt.number) else { return nil }
            state.history.record(attempt.number, attempt.error, answer.decision, now: now)
            if let error = answer.error { left = exchange(&state.attempt.error, with: error) }
            let records = state.history.records
            if answer.decision == .fail { state.attempt.error?.attempts = records }
            let action = state.machine.decided(answer.decision, attempt.number)
            if action == .none, isHeldOrPaused { state.delayedStep = order }
            return action
        }
        extendLifetime(left)
        guard let action else { return }
        // A paused operation that keeps waiting runs no user code here. Its next steps are reported after this one.
        if case .pause = answer.decision, isHeldOrPaused {
            record(.decided(answer), attempt.number, owner)
            return perform(action)
        }
        guard isHeldOrPaused else {
            // The hooks of the next attempt are code of the user, which must not block the thread of a session.
            return action == .takeSlot && !BorrowedThread.mayBlock ? performElsewhere(action) : perform(action)
        }
        performElsewhere(action, order) { self.record(.decided(answer), attempt.number, owner) }
    }
}
