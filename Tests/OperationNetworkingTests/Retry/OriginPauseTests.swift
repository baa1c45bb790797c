// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests servers that ask for a pause, and the effect on other operations.
@Suite("Pauses of origins", .timeLimit(.minutes(1)))
struct OriginPauseTests {
    private let setting: RetryBench
    private let origins: [RequestOrigin]
    private var bench: OperationBench { setting.bench }
    private var clock: ManualClock { setting.clock }

    init() throws {
        setting = try RetryBench()
        origins = try ["com", "org"].map { try #require(RequestOrigin(ofPlain: "http://example.\($0)/")) }
        bench.server.route("GET", "/*") { .text($0.path) }
        bench.server.route("GET", "/busy") { $0.number == 0 ? .status(429, ["Retry-After": "10"]) : .text("busy") }
        bench.server.route("POST", "/down") { _ in .status(503, ["Retry-After": "3600"]) }
        bench.server.route("GET", "/teapot") { _ in .status(418, ["Retry-After": "10"]) }
    }

    private func pauses(
        _ meanwhile: OriginPauses.Meanwhile = .wait, pace: PostponementPace = PostponementPace(2, every: .seconds(1))
    ) -> OriginPauses {
        OriginPauses(meanwhile, pace: pace, clock: clock)
    }

    private func operation(
        _ target: String, _ pauses: OriginPauses?, method: String = "GET"
    ) -> NetworkUploadOperation<String> {
        let operation = bench.upload(target, method: method, body: .none)
        operation.clock = clock
        operation.retry = setting.retry {
            $0.originPauses = pauses
            $0.policy.maximumAttempts = 1
        }
        return operation
    }

    private func moment(_ seconds: Int) -> OperationInstant { OperationInstant(offset: .seconds(seconds)) }

    @Test func `a pause applies to all operations that share it, and they resume in order at the pace`() async throws {
        let pauses = pauses(), queue = QueueManager("api", width: 1)
        do {
            #expect(await failure(of: operation("/busy", pauses))?.retryAfter == .seconds(10))
            #expect(pauses.left(for: bench.server.url("/other")) == .seconds(10))
            let operations = (0..<5).map { operation("/\($0)", pauses) }
            for (index, operation) in operations.enumerated() {
                try queue.add(operation)
                await until { pauses.waitingCount == index + 1 && operation.waitReason?.kind == .pause }
            }
            #expect(queue.counts.resting == 5)
            #expect(operations[0].waitReason?.description == "waiting 10.0 s, because the server asked clients to wait")
            let free = operation("/free", nil)
            #expect(try await free.run() == "/free", "the operation does not share the pause")
            operations[1].cancel()
            #expect(pauses.waitingCount == 4)
            clock.advance(by: .milliseconds(9_999))
            #expect(pauses.waitingCount == 4)
            clock.advance(by: .milliseconds(1))
            #expect(pauses.waitingCount == 2)
            for index in [0, 2] { #expect(try await operations[index].value == "/\(index)") }
            clock.advance(by: .seconds(1))
            for index in [3, 4] { #expect(try await operations[index].value == "/\(index)") }
            await queue.drained()
        }
        #expect(clock.pendingCount == 0 && pauses.left(for: bench.server.url("/")) == nil)
        try await bench.checkNothingIsLeft()
    }

    @Test func `operations fail if pauses are not awaited, or if the pause is too long for them`() async throws {
        var pauses = pauses(.fail)
        _ = await failure(of: operation("/busy", pauses))
        clock.advance(by: .seconds(4))
        let error = await failure(of: operation("/other", pauses))
        #expect(error?.code == .originPaused && error?.retryAfter == .seconds(6) && error?.isUnsent == true)
        #expect(error?.retryEnd == .notWorthwhile)
        #expect(error.map { ($0 as NSError).code } ?? 0 > 0)
        clock.advance(by: .seconds(6))
        #expect(try await operation("/other", pauses).run() == "/other")
        pauses = self.pauses()
        // An hour exceeds the longest pause, so it counts as one minute.
        #expect(await failure(of: operation("/down", pauses, method: "POST"))?.status == 503)
        #expect(pauses.left(for: bench.server.url("/")) == .seconds(60))
        let hurried = operation("/other", pauses)
        hurried.timeout = .seconds(30)
        #expect(await failure(of: hurried)?.code == .originPaused)
    }

    @Test func `until a refresh is over, its requests wait only for a short pause`() async throws {
        let origin = try #require(RequestOrigin(ofPlain: bench.server.url("/").absoluteString))
        let late = Locked<NetworkUploadOperation<String>?>(nil)
        for (pause, isShort) in [(5, true), (6, false)] {
            let pauses = pauses()
            let options = with(AuthenticationOptions()) { $0.clock = clock }
            let authenticator = Authenticator<String>(
                options: options, apply: { token, request in try request.with("Authorization", token) },
                refresh: { [self] _ in
                    late.withLock { $0 = operation("/late", pauses) }
                    return try await operation("/token", pauses).run()
                })
            pauses.record(.seconds(pause), for: origin)
            let asking = operation("/asking", nil)
            asking.authenticate(by: authenticator)
            asking.start()
            if isShort {
                await until { pauses.waitingCount == 1 && clock.pendingCount > 1 }
                clock.advance(by: .seconds(pause))
                #expect(try await asking.value == "/asking")
            } else {
                let error = await failure(of: asking)
                #expect(error?.code == .refreshFailed)
                #expect(error.map { "\($0.cause as Any)".contains("asked clients to wait") } ?? false)
                clock.advance(by: .seconds(pause))
            }
            pauses.record(.seconds(50), for: origin)
            let waiting = try #require(late.withLock { exchange(&$0, with: nil) })
            waiting.start()
            await until { pauses.waitingCount == 1 && waiting.waitReason?.kind == .pause }
            clock.advance(by: .seconds(50))
            #expect(try await waiting.value == "/late")
        }
    }

    @Test
    func `if the server extends a pause, operations keep waiting, but not longer than their limit`() async throws {
        let pauses = pauses(), url = bench.server.url("/").absoluteString
        let origin = try #require(RequestOrigin(ofPlain: url))
        let early = operation("/early", pauses), late = operation("/late", pauses)
        pauses.record(.seconds(10), for: origin)
        early.start()
        await until { pauses.waitingCount == 1 }
        clock.advance(by: .seconds(5))
        pauses.record(.seconds(35), for: origin)
        late.start()
        await until { pauses.waitingCount == 2 }
        clock.advance(by: .seconds(10))
        // The new end of the pause would be 65 seconds after the first operation began to wait.
        pauses.record(.seconds(50), for: origin)
        await early.ended()
        #expect(early.outcome?.error?.code == .originPaused && early.outcome?.error?.retryAfter == .seconds(50))
        await until { pauses.waitingCount == 1 && late.waitReason?.kind == .pause }
        clock.advance(by: .seconds(49))
        #expect(pauses.waitingCount == 1)
        clock.advance(by: .seconds(1))
        #expect(try await late.value == "/late")
        #expect(clock.pendingCount == 0)
    }

    @Test func `other statuses, and responses from the target of a redirect, cause no pause`() async throws {
        let pauses = pauses(), other = try LoopbackServer()
        other.route("GET", "/") { _ in .status(503, ["Retry-After": "10"]) }
        let target = other.url("/").absoluteString
        bench.server.route("GET", "/away") { _ in .redirect(to: target) }
        for target in ["/teapot", "/away"] {
            #expect(await failure(of: operation(target, pauses))?.status != nil)
        }
        #expect(pauses.left(for: bench.server.url("/")) == nil && pauses.left(for: other.url("/")) == nil)
    }

    @Test func `operations of several origins share a timer, and the last one that leaves cancels it`() throws {
        let pauses = pauses(pace: PostponementPace(1, every: .seconds(1))), told = EventRecorder<Int>()
        var ticket: UInt64?
        for (origin, seconds) in [(0, 10), (1, 4), (0, 10)] {
            pauses.record(.seconds(seconds), for: origins[origin])
            ticket = pauses.wait(for: origins[origin]) { told.record(seconds) }
            #expect(clock.pendingCount == 1)
        }
        for (passed, released) in [(4, [4]), (6, [4, 10])] {
            clock.advance(by: .seconds(passed))
            #expect(told.events == released && clock.pendingCount == 1)
        }
        pauses.leave(try #require(ticket), for: origins[0])
        #expect(clock.pendingCount == 0 && pauses.waitingCount == 0)
    }

    @Test func `an operation that arrives during a release waits at the end, and old tickets are ignored`() throws {
        var machine = OriginPauseMachine<Int>(pace: PostponementPace(1, every: .seconds(1)))
        let origin = origins[0]
        _ = machine.record(.seconds(10), for: origin, now: moment(0))
        let first = machine.wait(1, for: origin, now: moment(0))
        let second = machine.wait(2, for: origin, now: moment(0))
        #expect(machine.timePassed(now: moment(10)) == [1])
        #expect(machine.left(for: origin, hasWaited: true, now: moment(10)) == nil)
        #expect(machine.left(for: origin, now: moment(10)) == .seconds(1))
        let third = machine.wait(3, for: origin, now: moment(10))
        #expect(machine.timePassed(now: moment(11)) == [2])
        #expect(machine.timePassed(now: moment(12)) == [3])
        _ = machine.record(.seconds(10), for: origin, now: moment(20))
        _ = machine.wait(4, for: origin, now: moment(20))
        for case let old? in [first, second, third] { #expect(machine.leave(old, for: origin, now: moment(20)) == nil) }
        #expect(machine.timePassed(now: moment(30)) == [4])
        // Such a small extension does not make the operations ask again.
        _ = machine.record(.seconds(10), for: origin, now: moment(40))
        _ = machine.wait(5, for: origin, now: moment(40))
        #expect(machine.record(.milliseconds(10_500), for: origin, now: moment(40)) == [])
        #expect(machine.record(.milliseconds(11_500), for: origin, now: moment(40)).count == 1)
    }

    @Test func `a longer pause replaces a shorter one, and an ended pause is forgotten`() throws {
        var machine = OriginPauseMachine<Int>(pace: PostponementPace(1, every: .seconds(1)))
        let (origin, other) = (origins[0], origins[1])
        #expect(machine.record(.seconds(10), for: origin, now: moment(0)) == [])
        #expect(machine.record(.seconds(5), for: origin, now: moment(1)) == [])
        #expect(machine.left(for: origin, now: moment(1)) == .seconds(9))
        #expect(machine.wait(1, for: other, now: moment(1)) == nil && machine.nextDue == nil)
        for number in 2...3 {
            _ = machine.wait(number, for: origin, now: moment(number))
            #expect(machine.nextDue == moment(10), "one timer is set for all")
        }
        #expect(machine.record(.seconds(5), for: origin, now: moment(4)) == [])
        #expect(machine.record(.seconds(20), for: origin, now: moment(4)) == [2, 3])
        for number in 5...6 { _ = machine.wait(number, for: origin, now: moment(number)) }
        #expect(machine.timePassed(now: moment(10)) == [] && machine.nextDue == moment(24))
        #expect(machine.timePassed(now: moment(24)) == [5] && machine.nextDue == moment(25))
        #expect(machine.timePassed(now: moment(25)) == [6] && machine.nextDue == nil)
        #expect(machine.count == 0 && machine.wait(7, for: origin, now: moment(25)) == nil)
        _ = machine.record(.seconds(1), for: origin, now: moment(30))
        _ = machine.record(.seconds(1), for: other, now: moment(40))
        #expect(machine.count == 1)
    }
}
