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
        forgetLastAttempt()
        beginTime(number, host)
        do {
            let request = try withKey(try changed(host.makeRequest()))
            guard host.adaptsRequests else { return prepared(request, number) }
            adapt(request, host, number)
            return .none
        } catch {
            return failed(error, .checking, number)
        }
    }

    /// From now on requests are changed so, too.
    func change(with change: @escaping PostponedOperations.Change) { state.withLock { $0.changes.append(change) } }

    private func changed(_ request: NetworkRequest) throws -> NetworkRequest {
        try state.withLock { $0.changes }.reduce(request) { try $1($0) }
    }

    /// The request with the key by which the server knows it again, if the operation has one and the request has none.
    private func withKey(_ request: NetworkRequest) throws(NetworkError) -> NetworkRequest {
        guard let key = state.withLock({ $0.idempotencyKey }), !request.headers.contains(IdempotencyKey.field) else {
            return request
        }
        var headers = request.headers
        headers.add(IdempotencyKey.field, key.text)
        return try NetworkRequest(
            request.method, url: request.url, headers: headers, body: request.body, options: request.options)
    }

    private func forgetLastAttempt() {
        // What they release may be the user's: outside of the lock.
        var (task, collector): ((any NetworkTask)?, AnyResponseCollector?)
        var brakes: BrakeLine?
        state.withLock { state in
            swap(&task, &state.task)
            swap(&brakes, &state.brakes)
            swap(&collector, &state.collector)
            state.head = nil
            state.response = nil
            state.error = nil
            state.received = 0
        }
        withExtendedLifetime((task, brakes, collector)) {}
    }

    private func adapt(_ request: NetworkRequest, _ host: any AttemptHost, _ number: Int) {
        let adaptation = Task {
            do {
                perform(prepared(try await host.adaptRequest(request), number))
            } catch {
                perform(failed(error, .checking, number))
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
        state.withLock { state in
            guard state.machine.phase == .preparing, state.machine.attempt == number else { return .none }
            state.request = request
            state.adaptation = nil
            return state.machine.prepared(number, isGated: !state.gates.isEmpty)
        }
    }

    func createTask() -> AttemptMachine.Action {
        guard let (host, number) = running(), let request else { return .none }
        // Before the task is made, for a hook may resume it.
        if let length = request.body.length { teller.note(.upload, nil, of: length, for: host) }
        tellPolicies(of: request, number, host)
        tell(.begins(request), number, host)
        do {
            let task = try host.makeTask(request, AttemptReceiver(self, number))
            let brakes = BrakeLine(task)
            let (action, isOver) = state.withLock { state in
                let isOver = state.machine.phase == .ended || state.machine.attempt != number
                if !isOver { (state.task, state.brakes) = (task, brakes) }
                return (state.machine.created(number), isOver)
            }
            // Over meanwhile: the task is not resumed, and tells its end to nobody.
            if isOver { task.cancel() }
            return action
        } catch {
            return failed(error, .waiting, number)
        }
    }

    private func tellPolicies(of request: NetworkRequest, _ number: Int, _ host: any AttemptHost) {
        let policies = state.withLock { $0.policies }
        guard !policies.isEmpty else { return }
        let now = host.clock.now
        state.withLock { $0.story.begin(number, now: now) }
        for policy in policies { policy.begins(number, request, of: host) }
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
        let (request, head, collector) = state.withLock { ($0.request, $0.head, $0.collector) }
        guard let request, let head, let collector, let response else {
            return failed(
                NetworkError(code: .invalidResponse, phase: .receiving, message: "The session gave no response."),
                .receiving, number)
        }
        do {
            let answer = Answer(request: request, head: head, response: response, collector: collector)
            let conclusion = try host.evaluate(answer)
            let action = state.withLock { state in
                let action = state.machine.evaluated(number)
                if state.machine.phase == .concluding { state.conclusion = conclusion }
                return action
            }
            tell(.evaluated, number, host)
            return action
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
        host.rest(waitNumber, because: reason)
        return .none
    }

    /// Gets a place again.
    func takePlace() -> AttemptMachine.Action {
        guard let (host, number) = running() else { return .none }
        let mayGoOn = host.wake(waitNumber) { [weak self] in
            guard let self else { return }
            perform(state.withLock { $0.machine.returned(number) })
        }
        return mayGoOn ? state.withLock { $0.machine.returned(number) } : .none
    }

    private var waitNumber: UInt32 { UInt32(truncatingIfNeeded: state.withLock { $0.machine.round }) }

    func wait(_ pause: Duration) -> AttemptMachine.Action {
        guard let (host, number) = running() else { return .none }
        stopTime()
        host.rest(waitNumber, because: .pause(pause, beforeAttempt: number + 1))
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
            if error.code == .cancelled { host.cancel(because: .networkTaskCancelled) } else { host.fail(with: error) }
        }
        return .none
    }

    private func dropCollector() {
        var collector: AnyResponseCollector?
        state.withLock { swap(&collector, &$0.collector) }
        withExtendedLifetime(collector) {}
    }

    /// The operation has its outcome, whichever: what is under way for it is stopped and let go of.
    func end() {
        var left = State()
        let isFirst = state.withLock { state in
            let wasConcluding = state.machine.phase == .concluding
            guard state.machine.end() else { return false }
            swap(&left.host, &state.host)
            swap(&left.adaptation, &state.adaptation)
            swap(&left.conclusion, &state.conclusion)
            swap(&left.timer, &state.timer)
            swap(&left.timeout, &state.timeout)
            swap(&left.retryHandler, &state.retryHandler)
            swap(&left.changes, &state.changes)
            state.time.stop()
            (left.policies, left.gates) = (state.policies, state.gates)
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
        for policy in left.policies { policy.forget() }
        for gate in left.gates { gate.forget() }
    }
}
