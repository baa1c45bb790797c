// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Repeats the attempts of one operation: the shell of ``RetryMachine``.
final class RetryAgent: AttemptPolicy {
    private struct State {
        var machine = RetryMachine()
        /// Where the user's own rule is asked.
        var question: Task<Void, Never>?
        var isForgotten = false
    }

    let retry: Retry
    private let state = Locked(State())

    init(_ retry: Retry) {
        self.retry = retry
    }

    var attemptTimeout: Duration? { retry.attemptTimeout }

    func begins(_ number: Int, _ request: NetworkRequest, of host: any AttemptHost) {
        if number == 1 { retry.budget?.earn(for: request.origin) }
    }

    func decide(
        _ report: AttemptReport, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptAnswer?) -> Void
    ) {
        let attempt = FailedAttempt(report)
        guard let rule = retry.policy.decide else {
            return answer(conclude(attempt, .asPolicySays, for: host))
        }
        // The operation is kept by its attempts until it ends, which is also the end of this question.
        let question = Task { [weak host] in
            let said = await rule(attempt)
            guard let host, !Task.isCancelled else { return }
            answer(conclude(attempt, said, for: host))
        }
        let isForgotten = state.withLock { state in
            if !state.isForgotten { state.question = question }
            return state.isForgotten
        }
        if isForgotten { question.cancel() }
    }

    private func conclude(_ attempt: FailedAttempt, _ said: RetryAnswer, for host: any AttemptHost) -> AttemptAnswer {
        let moment = RetryMachine.Moment(
            now: host.clock.now, date: Date(), deadline: host.deadline, chance: retry.chance())
        var weighing = state.withLock { $0.machine.weigh(attempt, said, of: retry, moment) }
        if weighing.pause != nil, let budget = retry.budget, let origin = attempt.request?.origin,
            !budget.spend(for: origin)
        {
            weighing = .stop(.budgetUsedUp, retryAfter: weighing.retryAfter)
        }
        state.withLock { state in
            state.machine.note(weighing)
            state.question = nil
        }
        let event = event(attempt, weighing)
        if let handler = host.retryHandler { host.callbackQueueOfAttempts.async { handler(event) } }
        guard let pause = weighing.pause else {
            return AttemptAnswer(.fail, note: "\(event)", error: error(attempt, weighing))
        }
        return AttemptAnswer(.again(after: pause), note: "\(event)")
    }

    private func event(_ attempt: FailedAttempt, _ weighing: RetryMachine.Weighing) -> RetryEvent {
        let left = attempt.request.flatMap { request in retry.budget.map { $0.left(for: request.origin) } }
        return RetryEvent(
            attempt: attempt.number, error: attempt.error, pause: weighing.pause, reason: weighing.reason,
            retryAfter: weighing.retryAfter, budgetLeft: left,
            timeLeft: retry.policy.window.map { max($0 - attempt.elapsed, .zero) })
    }

    /// The error at the end.
    private func error(_ attempt: FailedAttempt, _ weighing: RetryMachine.Weighing) -> NetworkError {
        var error = attempt.error
        if weighing.reason == .bodyNotRepeatable {
            error = NetworkError(
                code: .bodyNotRepeatable, phase: attempt.error.phase,
                message: "The request would be sent again, but its body can be read only once. Send data or a file, or "
                    + "a stream that can be made anew. The request had failed so: \(attempt.error.message)",
                request: attempt.error.request, underlying: attempt.error.underlying)
            error.status = attempt.error.status
            error.cause = attempt.error
        }
        error.retryAfter = weighing.retryAfter
        return error
    }

    func forget() {
        let question = state.withLock { state in
            state.isForgotten = true
            return exchange(&state.question, with: nil)
        }
        question?.cancel()
    }
}
