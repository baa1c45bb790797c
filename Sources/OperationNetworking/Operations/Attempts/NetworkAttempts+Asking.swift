// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

// Gates decide before a request is sent, and policies after an attempt failed.
extension NetworkAttempts {
    /// Sets or removes the policy of a type.
    ///
    /// Call this method before the start.
    package func set<Policy: AttemptPolicy>(_ policy: Policy?, of type: Policy.Type = Policy.self) {
        // The policy may hold a user's object, so it is released without holding the lock.
        state.release { state in
            state.policies.put(policy, insteadOf: { Swift.type(of: $0) == Policy.self }) { $0.rank }
        }
    }

    /// Returns the policy of a type.
    package func policy<Policy: AttemptPolicy>(of type: Policy.Type = Policy.self) -> Policy? {
        state.withLock { $0.policies.first { Swift.type(of: $0) == Policy.self } } as? Policy
    }

    /// Returns the policy with a rank.
    func policy(ofRank rank: Int) -> (any AttemptPolicy)? { state.withLock { $0.policies }.first { $0.rank == rank } }

    /// Sets or removes the gate of a type.
    ///
    /// Call this method before the start.
    package func set<Gate: AttemptGate>(gate: Gate?, of type: Gate.Type = Gate.self) {
        state.release { state in
            state.gates.put(gate, insteadOf: { Swift.type(of: $0) == Gate.self }) { $0.rank }
        }
    }

    /// Returns the gate of a type.
    package func gate<Gate: AttemptGate>(of type: Gate.Type = Gate.self) -> Gate? {
        state.withLock { $0.gates.first { Swift.type(of: $0) == Gate.self } } as? Gate
    }

    // Before a request is sent.

    /// Restricts the credentials of realms without origins to one origin: see ``AttemptGate/keepCredentials(at:)``.
    func keepCredentials(at origin: RequestOrigin?) {
        for gate in state.withLock({ $0.gates }) { gate.keepCredentials(at: origin) }
    }

    func clear() -> AttemptMachine.Action {
        guard let (host, _) = running(), let request else { return .none }
        let (round, gates) = state.withLock { ($0.machine.round, $0.gates) }
        return pass(gates[...], request, round, host)
    }

    /// Asks the gates one after another, which usually answer immediately.
    private func pass(
        _ gates: ArraySlice<any AttemptGate>, _ request: NetworkRequest, _ round: Int, _ host: any AttemptHost
    ) -> AttemptMachine.Action {
        var request = request
        do throws(NetworkError) {
            for index in gates.indices {
                guard let passed = try gates[index].pass(request, for: host) else {
                    ask(gates[index], then: gates[(index + 1)...], request, round, host)
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
    /// If not, the request is created again.
    func maySend(_ number: Int) -> Bool {
        let (host, gates, policies) = state.withLock { state in
            (state.machine.acceptsEvents(number) ? state.host : nil, state.gates, state.policies)
        }
        // Requests that a group has canceled must not use connections that other requests need.
        guard let host, !host.isCancelledByGroup else {
            _ = takeBack(number)
            return false
        }
        if gates.allSatisfy({ $0.maySend(number) }) { return true }
        let (action, isTakenBack) = takeBack(number)
        // The attempt may have ended in the meantime, for example because of its time limit.
        guard isTakenBack else { return false }
        for policy in policies { policy.takenBack(number) }
        gate(of: RateLimitGate.self)?.goNext()
        record(.takenBack, number, host)
        // The hooks are user code, and this is the thread of the session.
        DispatchQueue.global().async { self.perform(action) }
        return false
    }

    private func takeBack(_ number: Int) -> (action: AttemptMachine.Action, isTakenBack: Bool) {
        var timer: (any OperationTimer)?
        let result = state.withLock { state in
            let isTakenBack = state.machine.acceptsEvents(number)
            timer = isTakenBack ? state.stopTime() : nil
            return (state.machine.takenBack(number), isTakenBack)
        }
        timer?.cancel()
        return result
    }

    private func cleared(_ request: NetworkRequest, _ round: Int) -> AttemptMachine.Action {
        let (action, left) = state.withLock { state in
            let (action, left) = (state.machine.cleared(round), state.request)
            if state.machine.phase == .creating, state.machine.round == round { state.request = request }
            return (action, left)
        }
        withExtendedLifetime(left) {}
        return action
    }

    private func ask(
        _ gate: any AttemptGate, then others: ArraySlice<any AttemptGate>, _ request: NetworkRequest, _ round: Int,
        _ host: any AttemptHost
    ) {
        gate.clear(request, for: host) { [weak self] answer in
            guard let self, let (host, number) = running() else { return }
            switch answer {
            case .go(let request): perform(pass(others, request, round, host))
            case .hold(let reason):
                let now = host.clock.now
                let action = state.withLock { state in
                    let action = state.machine.held(reason, round)
                    if action != .none { state.history.markHeldOrPaused(now: now) }
                    return action
                }
                if action != .none { record(.held(reason, self.request), number, host) }
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
        let (action, isFirst) = refused(error, round)
        if isHeldOrPaused {
            // The thread that ends the waits of many operations must run no user code.
            performElsewhere(action) { if isFirst { self.reportFailure(number) } }
        } else {
            if isFirst { reportFailure(number) }
            perform(action)
        }
    }

    private func refused(
        _ error: NetworkError, _ round: Int
    ) -> (action: AttemptMachine.Action, isFirst: Bool) {
        var timer: (any OperationTimer)?
        var left: NetworkError?
        let result = state.withLock { state in
            let before = state.machine.phase
            let action = state.machine.refused(round)
            let isFirst = state.machine.phase == .deciding && before != .deciding
            if isFirst {
                left = exchange(&state.error, with: error.completed(request: state.presentRequest, head: nil))
                timer = state.stopTime()
            }
            return (action, isFirst)
        }
        withExtendedLifetime(left) {}
        timer?.cancel()
        return result
    }

    // After an attempt failed.

    func decide() -> AttemptMachine.Action {
        guard let (host, number) = running() else { return .none }
        let (error, policies) = state.withLock { ($0.error, $0.policies) }
        guard let error else { return .none }
        reportFailure(number)
        if policies.isEmpty { return state.withLock { $0.machine.decided(.fail, number) } }
        let now = host.clock.now
        let report = state.withLock { state in
            state.history.fail(number, saved: state.saved, replays: state.machine.replays, now: now)
            return AttemptReport(
                number: number, replays: state.history.uncounted(state.machine.replays), request: state.presentRequest,
                head: state.head, error: error, elapsed: state.history.elapsed(at: now),
                advances: state.history.advances, earlier: state.history.records)
        }
        ask(policies[...], report, host)
        return .none
    }

    private func ask(_ policies: ArraySlice<any AttemptPolicy>, _ report: AttemptReport, _ host: any AttemptHost) {
        guard let policy = policies.first else { return take(AttemptPolicyDecision(.fail), report, host) }
        policy.decide(report, for: host) { [weak self] answer in
            guard let self, let (host, _) = running() else { return }
            if let answer { take(answer, report, host) } else { ask(policies.dropFirst(), report, host) }
        }
    }

    private func take(_ answer: AttemptPolicyDecision, _ report: AttemptReport, _ host: any AttemptHost) {
        let (awaits, isHeldOrPaused) = state.withLock {
            ($0.machine.awaitsDecision(report.number), $0.machine.isHeldOrPaused)
        }
        guard awaits else { return }
        if !isHeldOrPaused { record(.decided(answer), report.number, host) }
        let now = host.clock.now
        // An error may hold a user's object, so it is released without holding the lock.
        var left: NetworkError?
        let action: AttemptMachine.Action? = state.withLock { state in
            guard state.machine.awaitsDecision(report.number) else { return nil }
            state.history.record(report.number, report.error, answer.decision, now: now)
            if let error = answer.error { left = exchange(&state.error, with: error) }
            if answer.decision == .fail { state.error?.attempts = state.history.records }
            return state.machine.decided(answer.decision, report.number)
        }
        withExtendedLifetime(left) {}
        guard let action else { return }
        // A paused operation that keeps waiting runs no user code here. Its next steps are reported after this one.
        if case .pause = answer.decision, isHeldOrPaused {
            record(.decided(answer), report.number, host)
            return perform(action)
        }
        guard isHeldOrPaused else {
            // The hooks of the next attempt are code of the user, which must not block the thread of a session.
            return action == .takeSlot && SessionDeferredWork.current != nil
                ? performElsewhere(action) : perform(action)
        }
        performElsewhere(action) { self.record(.decided(answer), report.number, host) }
    }
}

extension Array {
    /// Replaces the element of the same type, sorted by rank, and returns the old element.
    fileprivate mutating func put(
        _ new: Element?, insteadOf isOld: (Element) -> Bool, by rank: (Element) -> Int
    ) -> Element? {
        let place = firstIndex(where: isOld)
        let old = place.map { remove(at: $0) }
        guard let new else { return old }
        if isEmpty { reserveCapacity(3) }
        insert(new, at: firstIndex { rank($0) > rank(new) } ?? endIndex)
        return old
    }
}
