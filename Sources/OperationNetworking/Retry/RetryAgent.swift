// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An attempt policy that sends the request of one operation again, as the ``RetryMachine`` decides.
final class RetryAgent: AttemptPolicy, @unchecked Sendable {
    // Sendable: all mutable state is behind a lock.

    private struct State {
        var retry: Retry
        var machine = RetryMachine()
        /// The running task of the user's ``RetryPolicy/decide`` closure, and the attempt that it decides about.
        var question: (number: Int, task: Task<Void, Never>)?
        /// The last attempt with a decision.
        var decided = 0
        /// The reason for the next attempt, until that attempt begins.
        var failure: NetworkError?
        /// Whether the window had ended when the next attempt was prepared.
        var isTooLate = false
        /// The last attempt whose response was recorded in the origin pauses.
        var respected = 0
        /// The origin whose budget paid for the next attempt.
        var paid: RequestOrigin?
        /// The values of `failure` and `paid` before that attempt began, because the attempt may be taken back.
        var before: (number: Int, failure: NetworkError?, paid: RequestOrigin?)?
        var isForgotten = false
    }

    private let state: Locked<State>

    init(_ retry: Retry) {
        state = Locked(State(retry: retry))
    }

    /// The description of the retry, without the user's closure after the operation has ended.
    var retry: Retry { state.withLock { $0.retry } }

    override var attemptTimeout: Duration? { state.withLock { $0.retry.attemptTimeout } }

    override func begins(_ number: Int, _ request: NetworkRequest, of owner: any AttemptOwner) -> NetworkError? {
        guard number > 1 else {
            state.withLock { $0.retry.budget }?.earn(for: request.origin)
            return nil
        }
        let retry = retry
        let isAgain = state.withLock { $0.failure != nil }
        // The preparation may have taken long.
        if isAgain, let window = retry.policy.window, owner.networkAttempts.elapsed(at: owner.clock.now) > window {
            state.withLock { $0.isTooLate = true }
            return NetworkError(
                code: .timedOut, phase: .waiting,
                message: "The preparation of another attempt took longer than the retry window allows.")
        }
        // An error may hold a user's object, so it is released without holding the lock, here and in other methods.
        state.release { state in
            let old = state.before
            state.before = (number, state.failure, state.paid)
            (state.failure, state.paid) = (nil, nil)
            return old
        }
        return nil
    }

    override func takenBack(_ number: Int) {
        let isOver = state.withLock { state in
            guard let before = state.before, before.number == number else { return false }
            (state.failure, state.paid, state.before) = (before.failure, before.paid, nil)
            return state.isForgotten
        }
        if isOver { giveBack() }
    }

    /// Records the pause that the server asks for, as soon as the headers arrive, for all operations that share the
    /// pauses.
    override func refuses(_ head: ResponseHead, of request: NetworkRequest, _ number: Int) -> Bool {
        guard [429, 503].contains(head.status), let pauses = retry.originPauses,
            let pause = head.retryAfter(now: Date()), RequestOrigin(of: head.url) == request.origin,
            state.withLock({ exchange(&$0.respected, with: number) }) != number
        else { return false }
        pauses.record(pause, for: request.origin)
        return false
    }

    override func decide(_ attempt: FailedAttempt, for owner: any AttemptOwner, _ answer: @escaping PolicyAnswer) {
        // A task of another kind of session reports its headers only at its end.
        if let head = attempt.head, let request = attempt.request { _ = refuses(head, of: request, attempt.number) }
        let (rule, failure) = state.withLock { ($0.retry.policy.decide, $0.isTooLate ? $0.failure : nil) }
        if let failure {
            return answer(end(attempt, failure, for: owner))
        }
        guard let rule, !attempt.error.isFinal else {
            return answer(conclude(attempt, .asPolicySays, for: owner))
        }
        let scope = owner.networkAttempts.scopeForTask
        // The attempts keep the operation alive until it ends, and its end also cancels this task.
        let question = Task { [weak owner] in
            let ruleAnswer = await RefreshScope.$current.withValue(scope) { await rule(attempt) }
            guard let owner, !Task.isCancelled else { return }
            answer(conclude(attempt, ruleAnswer, for: owner))
        }
        let isForgotten = state.withLock { state in
            // The closure may already have answered, and the next attempt may already have failed.
            if !state.isForgotten, state.decided < attempt.number { state.question = (attempt.number, question) }
            return state.isForgotten
        }
        if isForgotten { question.cancel() }
    }

    private func conclude(_ attempt: FailedAttempt, _ ruleAnswer: RetryAnswer, for owner: any AttemptOwner)
        -> AttemptPolicyDecision
    {
        let (retry, now) = (retry, owner.clock.now)
        let moment = RetryMachine.Moment(
            elapsed: owner.networkAttempts.elapsed(at: now), left: owner.timeLeft(at: now), chance: retry.chance())
        var evaluation = state.withLock { $0.machine.evaluate(attempt, ruleAnswer, of: retry, moment) }
        giveBack()
        let origin = attempt.request?.origin
        if evaluation.pause != nil, let origin, retry.budget?.spend(for: origin) == false {
            evaluation = .init(pause: nil, reason: .budgetUsedUp, rule: evaluation.rule)
        }
        var left: NetworkError?
        let isForgotten = state.withLock { state in
            state.machine.record(evaluation)
            state.decided = max(state.decided, attempt.number)
            if state.question?.number == attempt.number { state.question = nil }
            if evaluation.pause != nil {
                left = exchange(&state.failure, with: state.isForgotten ? nil : attempt.error)
                state.paid = origin
            }
            return state.isForgotten
        }
        extendLifetime(left)
        if isForgotten { giveBack() }
        let event = RetryEvent(attempt, evaluation, moment, of: retry)
        owner.report(event)
        guard let pause = evaluation.pause else {
            let error = Self.error(attempt.error, evaluation.reason)
            return AttemptPolicyDecision(.fail, note: "\(event)", error: error, reason: evaluation.reason)
        }
        return AttemptPolicyDecision(.again(after: pause), note: "\(event)", reason: evaluation.reason)
    }

    /// Fails the operation with its earlier error, because the window ended before the next attempt could begin.
    private func end(_ attempt: FailedAttempt, _ failure: NetworkError, for owner: any AttemptOwner)
        -> AttemptPolicyDecision
    {
        giveBack()
        let now = owner.clock.now
        let moment = RetryMachine.Moment(
            elapsed: owner.networkAttempts.elapsed(at: now), left: owner.timeLeft(at: now), chance: 0)
        let event = RetryEvent(attempt, .init(pause: nil, reason: .windowOver, rule: nil), moment, of: retry)
        owner.report(event)
        let error = Self.error(failure, .windowOver)
        return AttemptPolicyDecision(.fail, note: "\(event)", error: error, reason: .windowOver)
    }

    /// Returns the error with which the operation fails.
    private static func error(_ failure: NetworkError, _ reason: RetryReason) -> NetworkError {
        var error = failure
        if reason == .bodyNotRepeatable {
            error = NetworkError(
                code: .bodyNotRepeatable, phase: failure.phase,
                message: "The request must be sent again, but its body can be read only once. Send data, a file, or a "
                    + "stream that can be created again. The request failed with this error: \(failure.message)",
                request: failure.request, underlying: failure.underlying)
            error.status = failure.status
            error.isUnsent = failure.isUnsent
            error.details = failure.details
            error.cause = failure
        }
        error.retryEnd = reason
        return error
    }

    /// Refunds the budget for an attempt that never began.
    private func giveBack() {
        let (budget, origin) = state.withLock { ($0.retry.budget, exchange(&$0.paid, with: nil)) }
        if let origin { budget?.refund(for: origin) }
    }

    override func forget() {
        var rule: (@Sendable (FailedAttempt) async -> RetryAnswer)?
        var failures: (NetworkError?, NetworkError?)
        let question = state.withLock { state in
            state.isForgotten = true
            // The closure and the errors may keep the operation alive.
            swap(&rule, &state.retry.policy.decide)
            failures = (exchange(&state.failure, with: nil), state.before?.failure)
            state.before?.failure = nil
            return exchange(&state.question, with: nil)
        }
        extendLifetime(failures)
        question?.task.cancel()
        giveBack()
    }
}

extension AttemptOwner {
    /// Notifies the handler and the delegates of a decision, unless the operation is canceled first.
    fileprivate func report(_ event: RetryEvent) {
        var call: (@Sendable () -> Void)?
        if let handler = retryHandler { call = { handler(event) } }
        notify(call, unless: { [self] in isCancelled }) { [self] delegate in
            delegate.networkOperation(self, didDecide: event)
        }
    }
}

extension NetworkError {
    /// Whether the operation was canceled or its session cannot be used, so that another attempt would fail, too.
    var isFinal: Bool { [.cancelled, .sessionClosed, .sessionUnavailable].contains(code) }
}
