// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The attempts of one operation as far as repeating goes: a pure value, told time and chance.
///
/// It weighs what failed; what it may cost (``RetryBudget``) and how the wait is done is others' business.
struct RetryMachine: Sendable {
    /// What the moment of a decision is like.
    struct Moment: Sendable {
        /// On the operation's clock.
        let now: OperationInstant
        /// The time of day, for dates in responses.
        let date: Date
        let deadline: OperationInstant?
        /// From 0 up to 1.
        let chance: Double
    }

    /// What comes of it.
    struct Weighing: Sendable, Equatable {
        /// Nil if there is no other attempt.
        var pause: Duration?
        var reason: RetryReason
        var retryAfter: Duration?
        /// The rule that was used, if it was one.
        var rule: RetryRule?

        static func stop(_ reason: RetryReason, retryAfter: Duration? = nil) -> Weighing {
            Weighing(pause: nil, reason: reason, retryAfter: retryAfter)
        }
    }

    private var uses: [RetryRule: Int] = [:]
    private var lastPause: Duration?

    /// What becomes of it, if it may cost something.
    func weigh(_ attempt: FailedAttempt, _ answer: RetryAnswer, of retry: Retry, _ moment: Moment) -> Weighing {
        let policy = retry.policy
        // The operation was stopped from outside, or its session is gone: no attempt would be another one.
        guard ![.cancelled, .sessionClosed, .sessionUnavailable].contains(attempt.error.code) else {
            return .stop(.notWorthwhile)
        }
        let rule: RetryRule?
        switch (answer.kind, policy.judge(attempt, uses: uses)) {
        case (.fail, _): return .stop(.userSaidSo)
        case (.asPolicySays, .stop(let reason)): return .stop(reason)
        case (_, .repeating(let found)): rule = found
        case (.again, .stop): rule = nil
        }
        guard attempt.request?.body.canBeSentAgain != false else { return .stop(.bodyNotRepeatable) }
        guard attempt.countedNumber < max(policy.maximumAttempts, 1) else { return .stop(.attemptsUsedUp) }
        return pause(attempt, answer, rule, retry, moment)
    }

    private func pause(
        _ attempt: FailedAttempt, _ answer: RetryAnswer, _ rule: RetryRule?, _ retry: Retry, _ moment: Moment
    ) -> Weighing {
        let asked = attempt.head.flatMap { RetryAfter.pause(in: $0, now: moment.date) }
        if let asked, asked > retry.policy.longestRetryAfter {
            return .stop(.askedToWaitTooLong, retryAfter: asked)
        }
        let backoff = rule?.isThrottling == true ? retry.throttledBackoff : retry.backoff
        var pause = backoff.pause(after: attempt.countedNumber, previous: lastPause, chance: moment.chance)
        if case .again(let wanted?) = answer.kind {
            pause = max(wanted, .zero).clamped
        } else if let asked {
            // Never earlier than told, and not all at the moment told.
            pause = max(pause, asked) + asked / 10 * moment.chance
        }
        if let window = retry.policy.window, attempt.elapsed + pause > window {
            return .stop(.windowOver, retryAfter: asked)
        }
        if let deadline = moment.deadline, moment.now.advanced(by: pause + Self.leastTime) > deadline {
            return .stop(.deadlineTooNear, retryAfter: asked)
        }
        let reason: RetryReason = answer.kind == .asPolicySays ? .mayPass : .userSaidSo
        return Weighing(pause: pause, reason: reason, retryAfter: asked, rule: rule)
    }

    /// An attempt that gets less than this before the deadline is not worth its request.
    private static let leastTime = Duration.seconds(1)

    /// What became of it: to be called for each attempt that failed.
    mutating func note(_ weighing: Weighing) {
        if let rule = weighing.rule, weighing.pause != nil { uses[rule, default: 0] += 1 }
        lastPause = weighing.pause
    }
}
