// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests the time limits of retry and the release of its objects, on a real server.
@Suite("Limits of retry", .timeLimit(.minutes(1)))
struct RetryWindowTests {
    private let setting: RetryBench
    private var bench: OperationBench { setting.bench }
    private var clock: ManualClock { setting.clock }

    init() throws {
        setting = try RetryBench()
    }

    @Test func `the time of custom decisions and hooks counts toward the window`() async throws {
        bench.server.route("PUT", "/") { _ in .status(500) }
        let clock = clock
        let slow = setting.retry {
            $0.policy.maximumAttempts = 50
            $0.policy.decide = { attempt in
                if attempt.number == 1 { clock.advance(by: .seconds(61)) }
                return .asPolicySays
            }
        }
        let told = EventRecorder<RetryEvent>()
        let asked = setting.text(slow, method: "PUT")
        asked.retryHandler = { told.record($0) }
        let error = await failure(of: asked)
        await bench.settled()
        #expect(told.events.map(\.reason) == [.windowOver])
        #expect(told.events.first?.timeLeft == .zero)
        #expect(error?.retryEnd == .windowOver)
        #expect(bench.server.counts.heads == 1)
        // The preparation of the first attempt counts as well.
        let prepared = Hooked(bench, method: "PUT") { request in
            clock.advance(by: .seconds(31))
            return request
        }
        let late = await failure(of: setting.driven(prepared, setting.retry()))
        #expect(late?.retryEnd == .windowOver)
        // The second preparation exceeded the window. Nothing is sent, and the failure is that of the server.
        #expect(bench.server.counts.heads == 2)
        #expect(late?.status == 500)
        #expect(late?.attempts.map(\.number) == [1, 2])
        #expect(late?.attempts.last?.phase == .waiting)
    }

    @Test func `the window does not run while the operation waits for a slot in its queue`() async throws {
        bench.server.route("GET", "/") { $0.number < 1 ? .status(500) : .text("Hello") }
        let queue = QueueManager("api", width: 1), open = Gate()
        let operation = setting.undriven(bench.text(), setting.retry())
        try queue.add(operation)
        try await setting.pause(of: operation)
        let long = ClosureOperation { open.wait() }
        try queue.add(long)
        await until { queue.counts.running - queue.counts.resting == 1 }
        clock.advance(by: .seconds(1))
        await until { operation.waitReason?.kind == .place }
        clock.advance(by: .seconds(300))
        open.open()
        #expect(try await operation.value == "Hello")
        #expect(operation.attemptCount == 2)
    }

    @Test func `the window does not run while the operation is suspended`() async throws {
        bench.server.route("GET", "/") { $0.number < 2 ? .status(500) : .text("Hello") }
        let operation = setting.undriven(bench.text(), setting.retry())
        operation.start()
        try await setting.pause(of: operation)
        #expect(operation.suspend())
        clock.advance(by: .seconds(3600))
        #expect(operation.attemptCount == 2)
        #expect(operation.resume())
        try await setting.pause(of: operation)
        #expect(operation.failedAttempts.count == 2)
        clock.advance(by: .seconds(1))
        #expect(try await operation.value == "Hello")
    }

    @Test func `no attempt begins too late for the timeout, as with the deadline`() async throws {
        bench.server.route("GET", "/") { _ in .status(500) }
        let told = EventRecorder<RetryEvent>()
        let operation = setting.text(setting.retry { $0.policy.maximumAttempts = 50 })
        operation.timeout = .seconds(4)
        operation.deadline = clock.now.advanced(by: .seconds(3600))
        operation.retryHandler = { told.record($0) }
        #expect(await failure(of: operation)?.retryEnd == .deadlineTooNear)
        await bench.settled()
        #expect(told.events.map(\.reason) == [.mayPass, .mayPass, .deadlineTooNear])
        #expect(told.events.map(\.deadlineLeft) == [.seconds(4), .milliseconds(3500), .milliseconds(2500)])
        #expect(bench.server.counts.heads == 3)
    }

    @Test func `a deadline within an attempt ends it, and no other attempt begins`() async throws {
        bench.server.route("GET", "/") { $0.number == 0 ? .status(500) : .silence }
        let operation = setting.undriven(bench.text(), setting.retry())
        operation.deadline = clock.now.advanced(by: .seconds(10))
        operation.start()
        try await setting.pause(of: operation)
        clock.advance(by: .milliseconds(500))
        _ = await bench.server.heads(atLeast: 2)
        clock.advance(by: .seconds(10))
        #expect(await operation.finalOutcome.cancellationCause?.code == .deadlinePassed)
        #expect(operation.failedAttempts.map(\.status) == [500])
        clock.advance(by: .seconds(100))
        #expect(bench.server.counts.heads == 2)
    }

    @Test func `the budget for an attempt that is never made is refunded`() async throws {
        bench.server.route("GET", "/") { _ in .status(500) }
        let budget = RetryBudget(reserve: 3, refillPerSecond: 0, clock: clock)
        let url = bench.server.url("/")
        let retry = setting.retry { $0.budget = budget }
        for _ in 0..<5 {
            let operation = setting.undriven(bench.text(), retry)
            operation.start()
            try await setting.pause(of: operation)
            #expect(budget.left(for: url) == 2 || budget.left(for: url) == 3)
            operation.cancel()
            #expect(operation.failedAttempts.map(\.status) == [500])
        }
        // A fifth of each first attempt was earned as well.
        #expect(budget.left(for: url) == 4)
    }

    @Test func `a rule that holds its operation is released at the end of the operation`() async throws {
        bench.server.route("GET", "/") { _ in .status(500) }
        do {
            let operation = setting.text(setting.retry { $0.policy.maximumAttempts = 2 })
            operation.retry?.policy.decide = { [operation] _ in
                withExtendedLifetime(operation) { .asPolicySays }
            }
            _ = await failure(of: operation)
            await bench.settled()
            operation.retryHandler = { [operation] _ in withExtendedLifetime(operation) {} }
            #expect(operation.retryHandler == nil)
            #expect(operation.retry != nil)
        }
        try await bench.checkNothingIsLeft()
    }

    @Test func `Retry that is set after the start has no effect`() async throws {
        bench.server.route("GET", "/") { _ in .status(500) }
        let operation = bench.text()
        operation.start()
        operation.retry = .standard
        #expect(operation.retry == nil)
        _ = await operation.finalOutcome
    }

    @Test func `a custom decision is not requested for a cancellation`() async throws {
        bench.server.route("GET", "/") { _ in .silence }
        let asked = Locked(false)
        let operation = setting.undriven(
            bench.text(),
            setting.retry {
                $0.policy.decide = { _ in
                    asked.withLock { $0 = true }
                    return .again
                }
            })
        await bench.server.isReached(by: operation)
        operation.networkTask?.cancel()
        #expect(await operation.finalOutcome.cancellationCause == .networkTaskCancelled)
        #expect(!asked.withLock { $0 })
    }

    @Test("The handler and the delegate get the decision before the failure, but not after a cancellation")
    func order() async throws {
        bench.server.route("GET", "/") { _ in .status(500) }
        let lines = EventRecorder<String>()
        let told = Deciding(lines)
        let operation = setting.text(setting.retry { $0.policy.maximumAttempts = 1 })
        operation.delegate = told
        operation.retryHandler = { lines.record("event \($0.reason)") }
        operation.failureHandler = { lines.record("failure \($0.retryEnd.map { "\($0)" } ?? "none")") }
        _ = await failure(of: operation)
        await operation.ended()
        await bench.settled()
        #expect(
            lines.events.prefix(3) == ["event attemptsUsedUp", "delegate attemptsUsedUp", "failure attemptsUsedUp"])
        let (blocked, free) = (Gate(), Gate())
        let quiet = setting.undriven(bench.text(), setting.retry())
        quiet.retryHandler = { lines.record("late \($0.reason)") }
        bench.callbacks.async {
            blocked.open()
            free.wait()
        }
        await blocked.passage()
        quiet.start()
        try await setting.pause(of: quiet)
        quiet.cancel()
        free.open()
        await bench.settled()
        #expect(!lines.events.contains { $0.hasPrefix("late") })
    }

    @Test func `each text of the error says why the request was not sent again`() async throws {
        bench.server.route("GET", "/") { _ in .status(503).with("Retry-After", "1") }
        let error = try #require(await failure(of: setting.text(setting.retry())))
        #expect(error.retryEnd == .attemptsUsedUp && error.attempts.count == 3)
        #expect("\(error)".contains("attempts: 3, attemptsUsedUp"))
        #expect(error.report().contains("not sent again: attemptsUsedUp"))
        #expect(error.report().contains("attempt 2: unacceptableStatus 503"))
        #expect(error.errorUserInfo["retryEnd"] as? String == "attemptsUsedUp")
        #expect(error.errorUserInfo["attempts"] as? Int == 3)
        #expect(error.errorUserInfo["retryAfter"] as? Double == 1)
    }

    @Test func `a base has one retry handler for all its operations, and each event has the reason`() async throws {
        bench.server.route("GET", "/album") { $0.number == 0 ? .status(503) : .json("[1]") }
        let told = EventRecorder<RetryEvent>()
        var base = NetworkBase(bench.server.url("/"))
        base.session = bench.session
        base.callbackQueue = bench.callbacks
        base.retry = setting.retry { $0.throttledBackoff = .constant(.zero) }
        base.retryHandler = { told.record($0) }
        #expect(try await base.get("album", as: [Int].self).run() == [1])
        await bench.settled()
        #expect(told.events.map(\.rule?.reason) == ["The server is temporarily unavailable."])
        #expect(told.events.first.map { "\($0)" }?.contains("The server is temporarily unavailable.") == true)
    }

    @Test func `a download that makes progress may exceed the window and the maximum of attempts`() async throws {
        let size = 900_000
        let resource = LoopbackResource(.pattern(count: size), etag: "\"one\"")
        let clock = clock
        bench.server.route("GET", "/") { request in
            clock.advance(by: .seconds(50))
            let answer = resource.answer(to: request)
            return request.number < 6 ? answer.cut(at: 100_000) : answer
        }
        let folder = try TemporaryFolder()
        let operation = DownloadTo(folder.url, bench, "/") { file, _ in
            let bytes = try Data(contentsOf: file)
            return bytes.count == size && bytes.withUnsafeBytes { TestPattern.matches($0, from: 0) }
        }
        #expect(try await setting.driven(operation, setting.retry()).run())
        #expect(operation.attemptCount == 7)
        // A download without progress ends like any other operation.
        bench.server.route("GET", "/stuck") { resource.answer(to: $0).cut(at: 10) }
        let stuck = DownloadTo(folder.url, bench, "/stuck") { _, _ in 0 }
        #expect(await failure(of: setting.driven(stuck, setting.retry()))?.attempts.count == 3)
    }
}

private final class Deciding: NetworkOperationDelegate {
    private let lines: EventRecorder<String>

    init(_ lines: EventRecorder<String>) {
        self.lines = lines
    }

    func networkOperation(_ operation: any AnyNetworkOperation, didDecide event: RetryEvent) {
        lines.record("delegate \(event.reason)")
    }
}
