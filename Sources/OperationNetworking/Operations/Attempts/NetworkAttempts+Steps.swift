// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// The steps of an attempt, each of which returns the next action on this thread.
extension NetworkAttempts {
    func prepare() -> AttemptMachine.Action {
        let (owner, number, round, policies) = state.withLock {
            ($0.owner, $0.machine.attempt, $0.machine.round, $0.policies)
        }
        guard let owner else { return .none }
        record(.begins, number, owner)
        // In the first round, there is no last attempt, and without an observer no code of the user has run.
        if round > 1 || isObserved.load(ordering: .relaxed), !forgetLastAttempt(round) { return .none }
        if let policies { begin(policies, number, owner) }
        if RateLimit.isUsedBySessions.load(ordering: .relaxed) { addRateLimitGate(of: owner) }
        do {
            var request = try owner.requestOfAttempt()
            for change in state.withLock({ $0.changes }) {
                request = owner.checked(try change(request), madeOf: request)
            }
            request = try withKey(request)
            guard owner.adaptsRequests else { return prepared(request, number) }
            adapt(request, owner, number)
            return .none
        } catch {
            return failed(NetworkError.ofHook(error), .checking, number)
        }
    }

    /// Adds a change that is applied to all later requests, unless the operation has ended.
    package func change(with change: @escaping @Sendable (NetworkRequest) throws -> NetworkRequest) {
        state.withLock { if $0.machine.phase != .ended { $0.changes.append(change) } }
    }

    /// Returns the request with its idempotency key.
    ///
    /// The key is the one of the first attempt, even if a hook sets another one later. Otherwise, it is the key of
    /// the request or of the operation.
    private func withKey(_ request: NetworkRequest) throws(NetworkError) -> NetworkRequest {
        guard let keys = state.withLock({ $0.keys }) else { return request }
        let present = request.idempotencyKey
        guard let key = keys.first ?? present ?? keys.own?.text, !key.isEmpty, key != present else { return request }
        var headers = request.headers
        headers[IdempotencyKey.field] = key
        return try NetworkRequest(
            request.method, url: request.url, headers: headers, body: request.body, options: request.options)
    }

    /// Replaces the state of the last attempt, and returns `false` if this preparation is over.
    ///
    /// While the observers are notified, the attempt may exceed its time limit, and the next attempt may begin.
    private func forgetLastAttempt(_ round: Int) -> Bool {
        var last = Attempt()
        var lastRequest: NetworkRequest?
        let isPresent = state.withLock { state in
            guard state.machine.phase == .preparing, state.machine.round == round else { return false }
            lastRequest = exchange(&state.lastRequest, with: state.request)
            swap(&last, &state.attempt)
            return true
        }
        last.receiver?.detach()
        last.timeout?.cancel()
        extendLifetime(lastRequest)
        return isPresent
    }

    private func adapt(_ request: NetworkRequest, _ owner: any AttemptOwner, _ number: Int) {
        var draft: NetworkRequest? = request
        let round = state.withLock { state in
            if state.machine.phase == .preparing, state.machine.attempt == number { swap(&draft, &state.attempt.draft) }
            return state.machine.round
        }
        extendLifetime(draft)
        let scope = scopeForTask
        let adaptation = Task {
            do {
                let adapted = try await RefreshScope.$current.withValue(scope) { try await owner.adaptRequest(request) }
                perform(prepared(try withKey(adapted), number))
            } catch {
                perform(failed(NetworkError.ofHook(error), .checking, number))
            }
        }
        let isOver = state.withLock { state in
            // Another round has its own adaptation.
            guard state.machine.phase == .preparing, state.machine.attempt == number, state.machine.round == round
            else { return state.machine.phase == .ended }
            state.attempt.adaptation = adaptation
            return false
        }
        if isOver { adaptation.cancel() }
    }

    private func prepared(_ request: NetworkRequest, _ number: Int) -> AttemptMachine.Action {
        // The body of the last request may hold a user's object, so it is released without holding the lock.
        var lastRequest: NetworkRequest?
        let action = state.withLock { state in
            guard state.machine.phase == .preparing, state.machine.attempt == number else {
                return AttemptMachine.Action.none
            }
            swap(&lastRequest, &state.lastRequest)
            state.attempt.request = request
            if let key = request.idempotencyKey, state.keys?.first == nil { state.keys = (state.keys?.own, key) }
            state.attempt.adaptation = nil
            return state.machine.prepared(number, isGated: state.policies?.mayHoldBack == true)
        }
        extendLifetime(lastRequest)
        return action
    }

    func createTask() -> AttemptMachine.Action {
        // There is nothing to create if the attempt is over, if another thread creates the task, or if the request must
        // be created again.
        var creation: (any AttemptOwner, Int, NetworkRequest, AttemptPolicies?)?
        let action = state.withLock { state in
            let action = state.machine.creation()
            guard action == .createTask else { return action }
            if let owner = state.owner, let request = state.attempt.request {
                creation = (owner, state.machine.attempt, request, state.policies)
            }
            return .none
        }
        guard let (owner, number, request, policies) = creation else { return action }
        // Record the length before creating the task, because a hook may resume the task.
        if let length = request.body.length { reporter.record(.upload, nil, of: length, for: owner) }
        if let refusal = policies?.refusal(of: request, number, owner) { return failed(refusal, .waiting, number) }
        record(.sends(request), number, owner)
        let receiver = AttemptReceiver(self, number)
        do {
            let task = try owner.makeTask(isForRefresh ? request.ahead : request, receiver)
            request.ratePass?.markSent()
            let orderTarget = PauseOrderTarget(task)
            let (isOver, order): (Bool, PauseOrder?) = state.withLock { state in
                // An attempt that failed in the meantime needs no task, even if the failure is still being reported.
                guard state.machine.needsTask(number), state.attempt.error == nil else { return (true, nil) }
                (state.attempt.orderTarget, state.attempt.receiver) = (orderTarget, receiver)
                // A hook may have resumed the task, so the response may already be complete.
                return (false, state.machine.created(number) == .none ? nil : state.machine.order)
            }
            // The attempt is over, so the task is not resumed, and its end is not reported.
            if isOver {
                task.endForAttempt()
                receiver.detach()
            }
            // If another thread passes a newer order first, the task ignores this one.
            if let order { orderTarget.pass(order) }
            return .none
        } catch {
            receiver.detach()
            return failed(error, .waiting, number)
        }
    }

    /// Runs or suspends the task.
    ///
    /// Another thread may do the same, so the task compares the numbers of the orders.
    func resumeOrSuspendTask() -> AttemptMachine.Action {
        let (orderTarget, order): (PauseOrderTarget?, PauseOrder) = state.withLock { state in
            (state.machine.phase == .transferring ? state.attempt.orderTarget : nil, state.machine.order)
        }
        // A task that was never resumed is suspended anyway.
        orderTarget?.pass(order)
        return .none
    }

    func evaluate() -> AttemptMachine.Action {
        let (owner, number, isRefused, (request, head, collector)) = state.withLock {
            (
                $0.owner, $0.machine.attempt, $0.machine.isResponseRefused,
                ($0.attempt.request, $0.attempt.head, $0.attempt.collector)
            )
        }
        guard let owner else { return .none }
        guard let request, let head, let collector else {
            return failed(
                NetworkError(code: .invalidResponse, phase: .receiving, message: "The session delivered no response."),
                .receiving, number)
        }
        do {
            if isRefused, owner.accepts(head) { throw NetworkError.refusedByPolicy(head) }
            let answer = ReceivedResponse(request: request, head: head, collector: collector)
            let conclusion = try owner.evaluate(answer)
            let counts = state.withLock { state in
                // A failure that was decided in the meantime remains a failure.
                guard state.machine.phase == .evaluating, state.machine.attempt == number else { return false }
                state.attempt.conclusion = conclusion
                return true
            }
            if counts {
                reporter.complete(for: owner)
                // Record the evaluation before the machine's event. After that event, a thread that resumes the
                // operation may end it.
                record(.evaluated(body: (collector as? DataCollector)?.finish(), count: receivedCount), number, owner)
            }
            return state.withLock { $0.machine.evaluated(number) }
        } catch {
            var error = NetworkError(error, phase: .evaluating)
            if error.bodyPrefix == nil { error.bodyPrefix = collector.prefix(owner.errorBodyBytes) }
            return failed(error, .evaluating, number)
        }
    }

    /// Releases the operation's slot until a policy lets the operation continue.
    func rest(_ reason: WaitReason) -> AttemptMachine.Action {
        guard let (owner, _) = running() else { return .none }
        stopTime()
        rest(owner, reason)
        return .none
    }

    func wait(_ pause: Duration) -> AttemptMachine.Action {
        guard let (owner, number) = running() else { return .none }
        stopTime()
        rest(owner, .waiting(.pause, pause, " before attempt \(number + 1)"))
        let timer = owner.clock.schedule(after: pause) { [weak self] in
            guard let self else { return }
            var timer: (any OperationTimer)?
            let action = state.withLock { state in
                swap(&timer, &state.timer)
                return state.machine.waited(number)
            }
            extendLifetime(timer)
            perform(action)
        }
        state.keep(timer, in: \.timer) { $0.machine.phase == .waiting && $0.machine.attempt == number }
        return .none
    }

    func conclude() -> AttemptMachine.Action {
        var conclusion: Work?
        let (owner, error): ((any AttemptOwner)?, NetworkError?) = state.withLock { state in
            guard state.machine.phase == .concluding else { return (nil, nil) }
            swap(&conclusion, &state.attempt.conclusion)
            return (state.owner, state.attempt.error)
        }
        guard let owner, !owner.isCancelled else {
            // A collector whose result is not needed is released, and a temporary file with it.
            if conclusion != nil { state.release { exchange(&$0.attempt.collector, with: nil) } }
            return .none
        }
        if let conclusion {
            conclusion.perform()
        } else if let error {
            if error.code == .cancelled {
                owner.cancelIfUndecided(because: .networkTaskCancelled)
            } else {
                owner.fail(with: error)
            }
        }
        return .none
    }

    /// Stops and releases everything that is in progress, because the operation has its outcome.
    ///
    /// - Parameters:
    ///   - operation: The operation, which may be about to be freed.
    ///   - outcome: A closure that returns the error of the operation, if the operation failed, and the cause of its
    ///     cancellation, if the operation was canceled. The method calls the closure only if there is an observer.
    func end(
        of operation: any AnyNetworkOperation, _ outcome: () -> (error: NetworkError?, cause: CancellationCause?)
    ) {
        // These values are released without holding the lock, because they may hold a user's objects.
        var attempt = Attempt()
        var left: (owner: (any AttemptOwner)?, timer: (any OperationTimer)?, handlers: State.Handlers?)
        var changes: [@Sendable (NetworkRequest) throws -> NetworkRequest] = []
        let (isFirst, task, policies, observation, received) = state.withLock { state in
            // A task whose response is complete is not canceled.
            let isConcluding = state.machine.phase == .concluding
            let isFirst = state.machine.end()
            if isFirst {
                swap(&left.owner, &state.owner)
                swap(&left.timer, &state.timer)
                swap(&left.handlers, &state.handlers)
                swap(&changes, &state.changes)
                state.attempt.end(madeResult: isConcluding, leaving: &attempt)
            }
            let task = isConcluding ? nil : state.task
            return (isFirst, task, state.policies, state.observation, state.attempt.received)
        }
        guard isFirst else { return }
        attempt.adaptation?.cancel()
        left.timer?.cancel()
        attempt.timeout?.cancel()
        task?.cancel()
        attempt.receiver?.detach()
        policies?.forEach { $0.forget() }
        extendLifetime((left.owner, left.handlers, changes))
        guard let observation else { return }
        let (error, cause) = outcome()
        observation.record(.ended(error, cause, received: received), 0, by: operation)
    }
}
