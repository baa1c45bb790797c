// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// The steps of an attempt. Each returns what is to be done next on this thread.
extension NetworkAttempts {
    func prepare() -> AttemptMachine.Action {
        guard let (host, number) = running() else { return .none }
        note(.begins, number, host)
        forgetLastAttempt()
        beginStory(number, host)
        beginTime(number, host)
        noteRateLimit(of: host)
        do {
            let request = try withKey(try changed(host.requestOfAttempt()))
            let left = state.withLock { state in
                let left = state.draft
                if state.machine.phase == .preparing, state.machine.attempt == number { state.draft = request }
                return left
            }
            withExtendedLifetime(left) {}
            guard host.adaptsRequests else { return prepared(request, number) }
            adapt(request, host, number)
            return .none
        } catch {
            return failed(NetworkError.ofHook(error), .checking, number)
        }
    }

    /// From now on requests are changed so, too.
    func change(with change: @escaping @Sendable (NetworkRequest) throws -> NetworkRequest) {
        state.withLock { $0.changes.append(change) }
    }

    private func changed(_ request: NetworkRequest) throws -> NetworkRequest {
        try state.withLock { $0.changes }.reduce(request) { try $1($0) }
    }

    /// The request with the key by which the server knows it again: that of the first attempt, whatever a hook says since,
    /// or else the request's own, or else the operation's.
    private func withKey(_ request: NetworkRequest) throws(NetworkError) -> NetworkRequest {
        let (first, own) = state.withLock { ($0.firstKey, $0.idempotencyKey?.text) }
        guard let key = first ?? request.idempotencyKey ?? own, !key.isEmpty, key != request.idempotencyKey else {
            return request
        }
        var headers = request.headers
        headers[IdempotencyKey.field] = key
        return try NetworkRequest(
            request.method, url: request.url, headers: headers, body: request.body, options: request.options)
    }

    private func forgetLastAttempt() {
        // What they release may be the user's: outside of the lock.
        var (task, collector): ((any NetworkTask)?, AnyResponseCollector?)
        var (brakes, receiver): (BrakeLine?, AttemptReceiver?)
        var (draft, error): (NetworkRequest?, NetworkError?)
        state.withLock { state in
            swap(&task, &state.task)
            swap(&brakes, &state.brakes)
            swap(&collector, &state.collector)
            swap(&draft, &state.draft)
            swap(&receiver, &state.receiver)
            swap(&error, &state.error)
            state.isPrepared = false
            (state.isRefused, state.isLingering) = (false, false)
            state.head = nil
            state.response = nil
            (state.received, state.saved) = (0, nil)
        }
        receiver?.letGo()
        withExtendedLifetime((task, brakes, collector, draft, error)) {}
    }

    private func adapt(_ request: NetworkRequest, _ host: any AttemptHost, _ number: Int) {
        let adaptation = Task {
            do {
                perform(prepared(try withKey(try await host.adaptRequest(request)), number))
            } catch {
                perform(failed(NetworkError.ofHook(error), .checking, number))
            }
        }
        let isOver = state.withLock { state in
            guard state.machine.phase == .preparing, state.machine.attempt == number else {
                return state.machine.phase == .ended
            }
            state.adaptation = adaptation
            return false
        }
        if isOver { adaptation.cancel() }
    }

    private func prepared(_ request: NetworkRequest, _ number: Int) -> AttemptMachine.Action {
        // A body may be all that keeps something of the user's: the last request goes outside of the lock.
        let (action, left) = state.withLock { state in
            let left = state.request
            guard state.machine.phase == .preparing, state.machine.attempt == number else {
                return (AttemptMachine.Action.none, left)
            }
            state.request = request
            state.isPrepared = true
            if state.firstKey == nil { state.firstKey = request.idempotencyKey }
            state.adaptation = nil
            return (state.machine.prepared(number, isGated: !state.gates.isEmpty), left)
        }
        withExtendedLifetime(left) {}
        return action
    }

    func createTask() -> AttemptMachine.Action {
        let (creation, isObserved, instead) = takeCreation()
        guard let (host, number, request) = creation else { return instead }
        // Before the task is made, for a hook may resume it.
        if let length = request.body.length { teller.note(.upload, nil, of: length, for: host) }
        if let refusal = refusal(of: request, number, host) { return failed(refusal, .waiting, number) }
        note(.sends(request), number, host)
        let receiver = AttemptReceiver(self, number, isObserved: isObserved)
        do {
            let task = try host.makeTask(isForRefresh ? request.ahead : request, receiver)
            request.ratePass?.markSent()
            let brakes = BrakeLine(task)
            let (action, isOver) = state.withLock { state in
                // One that failed meanwhile wants none, also while that is being told.
                let isOver = !state.machine.wantsTask(number) || state.error != nil
                if !isOver { (state.task, state.brakes, state.receiver) = (task, brakes, receiver) }
                return (state.machine.created(number), isOver)
            }
            // Over meanwhile, or out of time: the task is not resumed, and tells its end to nobody.
            if isOver {
                task.endForAttempt()
                receiver.letGo()
            }
            return action
        } catch {
            receiver.letGo()
            return failed(error, .waiting, number)
        }
    }

    /// What the task of the present attempt is made of; nil if that attempt is over, or another thread makes it, or the
    /// request has to be made anew instead.
    ///
    /// Since the request was ready the attempt may have run out of time, and the next one have come just as far.
    private func takeCreation() -> (
        creation: (any AttemptHost, Int, NetworkRequest)?, isObserved: Bool, instead: AttemptMachine.Action
    ) {
        state.withLock { state in
            let number = state.machine.attempt
            guard state.machine.phase == .creating, state.lastCreation != number, let host = state.host,
                let request = state.request
            else { return (nil, false, .none) }
            let action = state.machine.creation()
            guard action == .createTask else { return (nil, false, action) }
            state.lastCreation = number
            return ((host, number, request), state.observation != nil, .none)
        }
    }

    /// Tells those who have a say, of whom one may say that it is too late.
    private func refusal(of request: NetworkRequest, _ number: Int, _ host: any AttemptHost) -> NetworkError? {
        for policy in state.withLock({ $0.policies }) {
            if let refusal = policy.begins(number, request, of: host) { return refusal }
        }
        return nil
    }

    /// Brings the task to what is wanted: another thread may do so at the same time, and the task goes by the numbers.
    func settleTask() -> AttemptMachine.Action {
        let (brakes, order): (BrakeLine?, BrakeOrder) = state.withLock { state in
            (state.machine.phase == .transferring ? state.brakes : nil, state.machine.order)
        }
        // A task that was never resumed stands still anyway.
        brakes?.pass(order)
        return .none
    }

    func evaluate() -> AttemptMachine.Action {
        guard let (host, number) = running() else { return .none }
        let (request, head, collector, isRefused) = state.withLock {
            ($0.request, $0.head, $0.collector, $0.isRefused)
        }
        guard let request, let head, let collector else {
            return failed(
                NetworkError(code: .invalidResponse, phase: .receiving, message: "The session gave no response."),
                .receiving, number)
        }
        do {
            if isRefused, host.accepts(head) { throw NetworkError.refusedByPolicy(head) }
            let answer = Answer(request: request, head: head, collector: collector, maker: self)
            let conclusion = try host.evaluate(answer)
            let counts = state.withLock { state in
                // A failure that was decided meanwhile stays one.
                let counts = state.machine.phase == .evaluating && state.machine.attempt == number
                if counts { state.conclusion = conclusion }
                return counts
            }
            if counts {
                teller.complete(for: host)
                // Before the machine knows it: from then on who resumes the operation may bring it to its end.
                note(.evaluated(body: (collector as? DataCollector)?.finish(), count: receivedCount), number, host)
            }
            return state.withLock { $0.machine.evaluated(number) }
        } catch {
            var error = NetworkError(error, phase: .evaluating)
            if error.bodyPrefix == nil { error.bodyPrefix = collector.prefix(host.errorBodyBytes) }
            return failed(error, .evaluating, number)
        }
    }

    /// Gives up the operation's place until somebody says that it may go on.
    func rest(_ reason: WaitReason) -> AttemptMachine.Action {
        guard let (host, _) = running() else { return .none }
        stopTime()
        rest(host, reason)
        return .none
    }

    func wait(_ pause: Duration) -> AttemptMachine.Action {
        guard let (host, number) = running() else { return .none }
        stopTime()
        rest(host, .pause(pause, beforeAttempt: number + 1))
        let timer = host.clock.schedule(after: pause) { [weak self] in
            guard let self else { return }
            var timer: (any OperationTimer)?
            let action = state.withLock { state in
                swap(&timer, &state.timer)
                return state.machine.waited(number)
            }
            withExtendedLifetime(timer) {}
            perform(action)
        }
        let isOver = state.withLock { state in
            guard state.machine.phase == .waiting, state.machine.attempt == number else { return true }
            state.timer = timer
            return false
        }
        if isOver { timer.cancel() }
        return .none
    }

    func conclude() -> AttemptMachine.Action {
        var conclusion: (@Sendable () -> Void)?
        let (host, error): ((any AttemptHost)?, NetworkError?) = state.withLock { state in
            guard state.machine.phase == .concluding else { return (nil, nil) }
            swap(&conclusion, &state.conclusion)
            return (state.host, state.error)
        }
        guard let host, !host.isCancelled else {
            // What was not made into a result goes, and with it a file.
            if conclusion != nil { dropCollector() }
            return .none
        }
        if let conclusion {
            conclusion()
        } else if let error {
            if error.code == .cancelled {
                host.cancelIfUndecided(because: .networkTaskCancelled)
            } else {
                host.fail(with: error)
            }
        }
        return .none
    }

    private func dropCollector() {
        var collector: AnyResponseCollector?
        state.withLock { swap(&collector, &$0.collector) }
        withExtendedLifetime(collector) {}
    }

    /// The operation has its outcome, whichever: what is under way for it is stopped and let go of.
    ///
    /// - Parameter step: What observers are told, with how much of a body was received.
    func end(of operation: any AnyNetworkOperation, as step: (Int64) -> AttemptStep) {
        var left = State()
        let isFirst = state.withLock { state in
            let wasConcluding = state.machine.phase == .concluding
            guard state.machine.end() else { return false }
            swap(&left.host, &state.host)
            swap(&left.adaptation, &state.adaptation)
            swap(&left.conclusion, &state.conclusion)
            swap(&left.timer, &state.timer)
            swap(&left.timeout, &state.timeout)
            swap(&left.receiver, &state.receiver)
            swap(&left.retryHandler, &state.retryHandler)
            swap(&left.offlineHandler, &state.offlineHandler)
            swap(&left.changes, &state.changes)
            state.standIn = nil
            state.time.stop()
            (left.policies, left.gates, left.observation) = (state.policies, state.gates, state.observation)
            left.received = state.received
            left.task = wasConcluding ? nil : state.task
            // What was not made into a result goes, and with it a file.
            if !wasConcluding || state.error != nil || left.conclusion != nil {
                swap(&left.collector, &state.collector)
            }
            return true
        }
        guard isFirst else { return }
        left.adaptation?.cancel()
        left.timer?.cancel()
        left.timeout?.cancel()
        left.task?.cancel()
        left.receiver?.letGo()
        for policy in left.policies { policy.forget() }
        for gate in left.gates { gate.forget() }
        left.observation?.note(step(left.received), 0, by: operation)
    }
}
