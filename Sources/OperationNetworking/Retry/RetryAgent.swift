// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// Repeats the attempts of one operation: the shell of ``RetryMachine``.
final class RetryAgent: AttemptPolicy {
    private struct State {
        var retry: Retry
        var machine = RetryMachine()
        /// Where the user's own rule is asked, and about which attempt.
        var question: (number: Int, task: Task<Void, Never>)?
        /// The last attempt of which it was decided what becomes of it.
        var decided = 0
        /// Why the next attempt is to be made, until it begins.
        var failure: NetworkError?
        /// Whether it was too late for that when it was prepared.
        var isTooLate = false
        /// The last attempt of whose answer all were told that share the pauses.
        var heeded = 0
        /// Where that was paid for.
        var paid: RequestOrigin?
        /// Both as they were before that attempt began, which may be taken back.
        var before: (number: Int, failure: NetworkError?, paid: RequestOrigin?)?
        var isForgotten = false
    }

    private let state: Locked<State>

    init(_ retry: Retry) {
        state = Locked(State(retry: retry))
    }

    /// Without the user's own rule once the operation ended.
    var retry: Retry { state.withLock { $0.retry } }

    var attemptTimeout: Duration? { state.withLock { $0.retry.attemptTimeout } }

    func begins(_ number: Int, _ request: NetworkRequest, of host: any AttemptHost) -> NetworkError? {
        guard number > 1 else {
            state.withLock { $0.retry.budget }?.earn(for: request.origin)
            return nil
        }
        let retry = retry
        let isAgain = state.withLock { $0.failure != nil }
        // The preparation may have taken its time.
        if isAgain, let window = retry.policy.window, host.networkAttempts.elapsed(at: host.clock.now) > window {
            state.withLock { $0.isTooLate = true }
            return NetworkError(
                code: .timedOut, phase: .waiting,
                message: "The preparation of another attempt took longer than the window of retry allows.")
        }
        state.withLock { state in
            state.before = (number, state.failure, state.paid)
            (state.failure, state.paid) = (nil, nil)
        }
        return nil
    }

    func takenBack(_ number: Int) {
        let isOver = state.withLock { state in
            guard let before = state.before, before.number == number else { return false }
            (state.failure, state.paid, state.before) = (before.failure, before.paid, nil)
            return state.isForgotten
        }
        if isOver { giveBack() }
    }

    /// What the server asks of this operation it asks of all, as soon as it is known.
    func refuses(_ head: ResponseHead, of request: NetworkRequest, _ number: Int) -> Bool {
        guard [429, 503].contains(head.status), let pauses = retry.originPauses,
            let pause = RetryAfter.pause(in: head, now: Date()), RequestOrigin(of: head.url) == request.origin,
            state.withLock({ exchange(&$0.heeded, with: number) }) != number
        else { return false }
        pauses.note(pause, for: request.origin)
        return false
    }

    func decide(
        _ report: AttemptReport, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptAnswer?) -> Void
    ) {
        let attempt = FailedAttempt(report)
        // A task that is not of our sessions tells its head with its end.
        if let head = report.head, let request = report.request { _ = refuses(head, of: request, report.number) }
        let (rule, failure) = state.withLock { ($0.retry.policy.decide, $0.isTooLate ? $0.failure : nil) }
        if let failure {
            return answer(end(attempt, failure, for: host))
        }
        guard let rule, !attempt.error.isFinal else {
            return answer(conclude(attempt, .asPolicySays, for: host))
        }
        // The operation is kept by its attempts until it ends, which is also the end of this question.
        let question = Task { [weak host] in
            let said = await rule(attempt)
            guard let host, !Task.isCancelled else { return }
            answer(conclude(attempt, said, for: host))
        }
        let isForgotten = state.withLock { state in
            // It may have been answered before it could be kept, and the next attempt have failed.
            if !state.isForgotten, state.decided < attempt.number { state.question = (attempt.number, question) }
            return state.isForgotten
        }
        if isForgotten { question.cancel() }
    }

    private func conclude(_ attempt: FailedAttempt, _ said: RetryAnswer, for host: any AttemptHost) -> AttemptAnswer {
        let (retry, now) = (retry, host.clock.now)
        let moment = RetryMachine.Moment(
            elapsed: host.networkAttempts.elapsed(at: now), left: host.timeLeft(at: now), chance: retry.chance())
        var weighing = state.withLock { $0.machine.weigh(attempt, said, of: retry, moment) }
        giveBack()
        let origin = attempt.request?.origin
        if weighing.pause != nil, let origin, retry.budget?.spend(for: origin) == false {
            weighing = .init(pause: nil, reason: .budgetUsedUp, rule: weighing.rule)
        }
        let isForgotten = state.withLock { state in
            state.machine.note(weighing)
            state.decided = max(state.decided, attempt.number)
            if state.question?.number == attempt.number { state.question = nil }
            if weighing.pause != nil { (state.failure, state.paid) = (attempt.error, origin) }
            return state.isForgotten
        }
        if isForgotten { giveBack() }
        let event = RetryEvent(attempt, weighing, moment, of: retry)
        host.tell(event)
        guard let pause = weighing.pause else {
            let error = Self.error(attempt.error, weighing.reason)
            return AttemptAnswer(.fail, note: "\(event)", error: error, reason: weighing.reason)
        }
        return AttemptAnswer(.again(after: pause), note: "\(event)", reason: weighing.reason)
    }

    /// The window was over before the attempt could begin: the operation fails as it would have before.
    private func end(_ attempt: FailedAttempt, _ failure: NetworkError, for host: any AttemptHost) -> AttemptAnswer {
        giveBack()
        let now = host.clock.now
        let moment = RetryMachine.Moment(
            elapsed: host.networkAttempts.elapsed(at: now), left: host.timeLeft(at: now), chance: 0)
        let event = RetryEvent(attempt, .init(pause: nil, reason: .windowOver, rule: nil), moment, of: retry)
        host.tell(event)
        let error = Self.error(failure, .windowOver)
        return AttemptAnswer(.fail, note: "\(event)", error: error, reason: .windowOver)
    }

    /// The error at the end.
    private static func error(_ failure: NetworkError, _ reason: RetryReason) -> NetworkError {
        var error = failure
        if reason == .bodyNotRepeatable {
            error = NetworkError(
                code: .bodyNotRepeatable, phase: failure.phase,
                message: "The request would be sent again, but its body can be read only once. Send data or a file, or "
                    + "a stream that can be made anew. The request had failed so: \(failure.message)",
                request: failure.request, underlying: failure.underlying)
            error.status = failure.status
            error.isUnsent = failure.isUnsent
            error.details = failure.details
            error.cause = failure
        }
        error.retryEnd = reason
        return error
    }

    /// What was spent for an attempt that never began.
    private func giveBack() {
        let (budget, origin) = state.withLock { ($0.retry.budget, exchange(&$0.paid, with: nil)) }
        if let origin { budget?.refund(for: origin) }
    }

    func forget() {
        var rule: (@Sendable (FailedAttempt) async -> RetryAnswer)?
        let question = state.withLock { state in
            state.isForgotten = true
            // It may hold the operation.
            swap(&rule, &state.retry.policy.decide)
            return exchange(&state.question, with: nil)
        }
        question?.task.cancel()
        giveBack()
    }
}

extension AttemptHost {
    /// Tells handler and delegates of a decision, unless the operation is cancelled before they could hear of it.
    fileprivate func tell(_ event: RetryEvent) {
        var call: (@Sendable () -> Void)?
        if let handler = retryHandler { call = { handler(event) } }
        notify(call, unless: { [self] in isCancelled }) { [self] delegate in
            delegate.networkOperation(self, didDecide: event)
        }
    }
}
