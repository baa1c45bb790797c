// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The attempts of one operation as far as repeating goes: a pure value, told time and chance.
///
/// It weighs what failed; what it may cost (``RetryBudget``) and how the wait is done is others' business.
package struct RetryMachine: Sendable {
    /// What the moment of a decision is like.
    package struct Moment: Sendable {
        /// How much of the window passed, what the user's rule took included.
        let elapsed: Duration
        /// How long until the operation's deadline or the end of its timeout, whichever comes first; nil without either.
        let left: Duration?
        /// From 0 to 1.
        let chance: Double

        /// Takes whatever number the chance is.
        package init(elapsed: Duration, left: Duration? = nil, chance: Double) {
            self.elapsed = elapsed
            self.left = left
            self.chance = chance >= 0 ? min(chance, 1) : 0
        }
    }

    /// What comes of it.
    package struct Weighing: Sendable, Equatable {
        /// Nil if there is no other attempt.
        package let pause: Duration?
        package let reason: RetryReason
        /// The rule that the failure is about, if there is one.
        package let rule: RetryRule?
    }

    private var uses: [RetryRule: Int] = [:]
    private var lastPause: Duration?

    package init() {}

    /// What becomes of an attempt, if it may cost something.
    package func weigh(
        _ attempt: FailedAttempt, _ answer: RetryAnswer, of retry: Retry, _ moment: Moment
    ) -> Weighing {
        let rule = retry.policy.rule(for: attempt.error)
        func stop(_ reason: RetryReason) -> Weighing { Weighing(pause: nil, reason: reason, rule: rule) }
        guard !attempt.error.isFinal else { return stop(.notWorthwhile) }
        switch answer.kind {
        case .fail: return stop(.userSaidSo)
        case .asPolicySays:
            if let reason = retry.policy.objection(to: attempt, rule, uses: uses) { return stop(reason) }
        case .again: break
        }
        guard attempt.countedNumber < max(retry.policy.maximumAttempts, 1) else { return stop(.attemptsUsedUp) }
        switch pause(attempt, answer, rule, retry, moment) {
        case .failure(let no): return stop(no.reason)
        case .success(let pause):
            // What all else allows is asked for last: the error of the body takes the place of the failure.
            guard attempt.request?.body.canBeSentNow != false else { return stop(.bodyNotRepeatable) }
            return Weighing(pause: pause, reason: answer.kind == .asPolicySays ? .mayPass : .userSaidSo, rule: rule)
        }
    }

    /// Why there is none.
    private struct NoPause: Error {
        let reason: RetryReason
    }

    private func pause(
        _ attempt: FailedAttempt, _ answer: RetryAnswer, _ rule: RetryRule?, _ retry: Retry, _ moment: Moment
    ) -> Result<Duration, NoPause> {
        var (least, extra): (Duration, Duration)
        if case .again(let wanted?) = answer.kind {
            // Whoever says a pause knows what the server asks for.
            (least, extra) = (max(wanted, .zero).clamped, .zero)
        } else {
            let asked = attempt.error.retryAfter.map { max($0, .zero).clamped }
            if let asked, asked > retry.policy.longestRetryAfter {
                return .failure(NoPause(reason: .askedToWaitTooLong))
            }
            let backoff = rule?.isThrottling == true ? retry.throttledBackoff : retry.backoff
            least = backoff.pause(after: attempt.countedNumber, previous: lastPause, chance: moment.chance)
            // Never earlier than told, and not all at the moment told.
            if let asked { least = max(least, asked) }
            extra = asked.map { $0 / 10 * moment.chance } ?? .zero
        }
        if let window = retry.policy.window {
            let room = window - moment.elapsed
            guard least <= room else { return .failure(NoPause(reason: .windowOver)) }
            extra = min(extra, room - least)
        }
        if let left = moment.left {
            let room = left - Self.leastTime
            guard least <= room else { return .failure(NoPause(reason: .deadlineTooNear)) }
            extra = min(extra, room - least)
        }
        return .success(least + extra)
    }

    /// An attempt that gets less than this before the deadline is not worth its request.
    private static let leastTime = Duration.seconds(1)

    /// What became of it: to be called for each attempt that failed.
    package mutating func note(_ weighing: Weighing) {
        if let rule = weighing.rule, weighing.pause != nil { uses[rule, default: 0] += 1 }
        lastPause = weighing.pause
    }
}

extension NetworkError {
    /// Whether the operation was stopped from outside, or its session is gone, so that no attempt would be another one.
    var isFinal: Bool { [.cancelled, .sessionClosed, .sessionUnavailable].contains(code) }
}
