// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Retry decisions")
struct RetryMachineTests {
    private let machine = RetryMachine()

    typealias Moment = RetryMachine.Moment

    private func attempt(
        _ number: Int = 1, status: Int = 503, asks retryAfter: Duration? = nil, method: String = "GET",
        replays: Int = 0
    ) throws -> FailedAttempt {
        var error = NetworkError(code: .unacceptableStatus, phase: .evaluating, message: "No.")
        error.status = status
        error.retryAfter = retryAfter
        let url = try #require(URL(string: "http://127.0.0.1/"))
        return FailedAttempt(
            number: number, replays: replays, error: error, request: try NetworkRequest(method, url: url))
    }

    private func retry(_ change: (inout Retry) -> Void = { _ in }) -> Retry {
        var retry = Retry(budget: nil)
        change(&retry)
        return retry
    }

    @Test(arguments: [55, 56, 57, 58, 59, 60] as [Int64])
    func `a requested pause is kept up to the limit, with an addition of up to a tenth`(asked: Int64) throws {
        for chance in [0.0, 1.0] {
            let evaluation = machine.evaluate(
                try attempt(asks: .seconds(asked)), .asPolicySays, of: retry(), Moment(elapsed: .zero, chance: chance))
            let pause = try #require(evaluation.pause)
            #expect(pause >= .seconds(asked) && pause <= .seconds(60))
            if chance == 1 { #expect(pause == min(.seconds(60), .seconds(asked) + .milliseconds(asked * 100))) }
        }
        // The window and the deadline take precedence.
        let late = machine.evaluate(
            try attempt(asks: .seconds(asked)), .asPolicySays, of: retry(), Moment(elapsed: .seconds(10), chance: 0))
        #expect(late.pause == nil && late.reason == .windowOver)
        let hurried = machine.evaluate(
            try attempt(asks: .seconds(asked)), .asPolicySays, of: retry(),
            Moment(elapsed: .zero, left: .seconds(asked + 1), chance: 1))
        #expect(hurried.pause == .seconds(asked))
        let tooHurried = machine.evaluate(
            try attempt(asks: .seconds(asked)), .asPolicySays, of: retry(),
            Moment(elapsed: .zero, left: .seconds(asked), chance: 0))
        #expect(tooHurried.reason == .deadlineTooNear)
    }

    @Test func `if a server requests more than the longest accepted pause, there is no other attempt`() throws {
        let wide = retry { $0.policy.window = nil }
        func reason(_ asked: Duration, _ answer: RetryAnswer = .asPolicySays) throws -> RetryReason {
            machine.evaluate(try attempt(asks: asked), answer, of: wide, Moment(elapsed: .zero, chance: 1)).reason
        }
        #expect(try reason(.seconds(60)) == .mayPass)
        #expect(try reason(.milliseconds(60_001)) == .askedToWaitTooLong)
        #expect(try reason(.seconds(Int64.max)) == .askedToWaitTooLong)
        #expect(try reason(.seconds(61), .again) == .askedToWaitTooLong)
        // An explicit pause overrides the limit.
        #expect(try reason(.seconds(61), .again(after: .seconds(2))) == .userSaidSo)
        var boundless = wide
        boundless.policy.longestRetryAfter = .seconds(Int64.max)
        let endless = machine.evaluate(
            try attempt(asks: .seconds(Int64.max)), .asPolicySays, of: boundless, Moment(elapsed: .zero, chance: 1))
        #expect((endless.pause ?? .zero) >= .seconds(Int64.max))
    }

    @Test func `a custom decision uses the pauses of the policy, and longer ones for an overloaded server`() throws {
        func pause(_ attempt: FailedAttempt, _ answer: RetryAnswer) -> Duration? {
            machine.evaluate(attempt, answer, of: retry(), Moment(elapsed: .zero, chance: 1)).pause
        }
        // The policy rejects a POST, but the rule for its status still applies.
        let post = try attempt(status: 503, method: "POST")
        #expect(pause(post, .asPolicySays) == nil)
        #expect(pause(post, .again) == .seconds(1))
        #expect(pause(try attempt(status: 500, method: "POST"), .again) == .milliseconds(500))
        #expect(pause(try attempt(status: 404), .again) == .milliseconds(500))
        #expect(pause(try attempt(status: 503, asks: .seconds(10)), .again) == .seconds(11))
        #expect(pause(try attempt(status: 503, asks: .seconds(10)), .again(after: .seconds(2))) == .seconds(2))
        #expect(pause(try attempt(status: 503), .again(after: .seconds(-2))) == .zero)
        #expect(pause(try attempt(3), .again(after: .seconds(2))) == nil)
    }

    @Test func `an invalid value of chance neither crashes nor shortens a requested pause`() throws {
        for chance in [Double.nan, .infinity, -.infinity, -1, 2, 1e300] {
            let moment = Moment(elapsed: .zero, chance: chance)
            let asked = machine.evaluate(try attempt(asks: .seconds(7)), .asPolicySays, of: retry(), moment)
            let pause = try #require(asked.pause)
            #expect(pause >= .seconds(7) && pause <= .milliseconds(7700))
            let free = machine.evaluate(try attempt(), .asPolicySays, of: retry(), moment)
            #expect((free.pause ?? .seconds(-1)) >= .zero)
        }
    }

    @Test func `only attempts that count use up the maximum`() throws {
        let moment = Moment(elapsed: .zero, chance: 1)
        #expect(machine.evaluate(try attempt(3), .asPolicySays, of: retry(), moment).reason == .attemptsUsedUp)
        let further = machine.evaluate(try attempt(3, replays: 2), .asPolicySays, of: retry(), moment)
        #expect(further.pause == .seconds(1))
    }

    @Test func `by default only idempotent methods are retried, and with anyMethod all methods`() throws {
        let moment = Moment(elapsed: .zero, chance: 1)
        for method in ["POST", "PATCH", "REPORT", "PROPFIND"] {
            let failed = try attempt(method: method)
            #expect(machine.evaluate(failed, .asPolicySays, of: retry(), moment).reason == .notIdempotent)
            let any = retry { $0.policy = .anyMethod }
            #expect(machine.evaluate(failed, .asPolicySays, of: any, moment).reason == .mayPass)
        }
    }

    @Test func `custom rules work like the rules of the default table`() throws {
        let rule = RetryRule.status(418, because: "The pot may be a teapot for a moment only.")
            .limited(to: 1).throttling()
        let own = retry { $0.policy.rules = [rule] }
        var machine = RetryMachine()
        let moment = Moment(elapsed: .zero, chance: 1)
        let first = machine.evaluate(try attempt(status: 418), .asPolicySays, of: own, moment)
        #expect(first.pause == .seconds(1) && first.rule == rule)
        machine.record(first)
        #expect(machine.evaluate(try attempt(2, status: 418), .asPolicySays, of: own, moment).reason == .notWorthwhile)
        #expect(RetryRule.status(409, because: "").onlyWithKey().needsKey)
    }

    @Test func `the history counts time from the first preparation, without suspensions`() {
        func at(_ seconds: Int64) -> OperationInstant { OperationInstant(offset: .seconds(seconds)) }
        let error = NetworkError(code: .connectionLost, phase: .receiving, message: "")
        var story = AttemptHistory()
        #expect(story.elapsed(at: at(5)) == .zero)
        story.suspend(true, now: at(5))
        story.begin(1, now: at(10), isSuspended: false)
        story.begin(1, now: at(12), isSuspended: false)
        story.fail(1, now: at(15))
        #expect(story.elapsed(at: at(15)) == .seconds(5))
        story.record(1, error, .again(after: .seconds(3)), now: at(19))
        story.suspend(true, now: at(20))
        story.suspend(true, now: at(25))
        #expect(story.elapsed(at: at(30)) == .seconds(10))
        story.begin(2, now: at(31), isSuspended: true)
        story.suspend(false, now: at(40))
        story.suspend(false, now: at(41))
        #expect(story.elapsed(at: at(42)) == .seconds(12))
        story.fail(2, now: at(43))
        story.record(2, error, .fail, now: at(43))
        #expect(story.records.map(\.began) == [.zero, .seconds(21)])
        // The time of the decision is not part of the attempt.
        #expect(story.records.map(\.duration) == [.seconds(5), .seconds(12)])
        #expect(story.uncounted(1) == 1)
    }

    @Test func `a download that made progress starts counting again, but a dripping one does not`() {
        func at(_ seconds: Int64) -> OperationInstant { OperationInstant(offset: .seconds(seconds)) }
        var story = AttemptHistory()
        story.begin(1, now: at(0), isSuspended: false)
        story.fail(1, saved: 1 << 20, now: at(100))
        #expect(story.uncounted(0) == 0 && story.elapsed(at: at(101)) == .seconds(1))
        story.begin(2, now: at(101), isSuspended: false)
        story.fail(2, saved: 1 << 20 + 100, now: at(110))
        #expect(story.uncounted(0) == 0 && story.elapsed(at: at(110)) == .seconds(10))
        story.begin(3, now: at(111), isSuspended: false)
        story.fail(3, saved: 2 << 20, now: at(200))
        #expect(story.uncounted(0) == 2 && story.elapsed(at: at(200)) == .zero)
        // A download that started again must exceed its earlier progress.
        story.begin(4, now: at(201), isSuspended: false)
        story.fail(4, saved: 1 << 20, now: at(210))
        #expect(story.uncounted(0) == 2 && story.elapsed(at: at(210)) == .seconds(10))
    }

    @Test func `times are described in seconds, to the millisecond`() {
        let error = NetworkError(code: .timedOut, phase: .awaitingResponse, message: "")
        var event = RetryEvent(attempt: 1, error: error, pause: .nanoseconds(1_234_567_890), reason: .mayPass)
        (event.budgetLeft, event.timeLeft, event.deadlineLeft) = (3, .microseconds(59_999_499), .seconds(-1))
        #expect(
            event.description == "attempt 1 failed (timedOut): next attempt in 1.235 s, mayPass, 3 left in the budget, "
                + "59.999 s left in the window, 0.000 s until the deadline")
    }
}
