// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Synchronization
import Testing

@testable import OperationNetworking

/// Tests the time limit of an attempt, and the effects of a timeout.
@Suite("Time limit of an attempt", .timeLimit(.minutes(1)))
struct AttemptTimeTests {
    private let setting: RetryBench
    private var bench: OperationBench { setting.bench }

    init() throws {
        setting = try RetryBench()
    }

    private var hurried: Retry { setting.retry { $0.attemptTimeout = .seconds(5) } }

    @Test
    func `after a complete response, an attempt cannot time out, however long its evaluation takes`() async throws {
        bench.server.route("GET", "/") { _ in .text("Hello") }
        let (entered, leave) = (Gate(), Gate())
        let operation = setting.undriven(
            NetworkDataOperation(url: bench.server.url("/"), urlSession: bench.session) { data, _ in
                entered.open()
                leave.wait()
                return data.count
            }, hurried)
        operation.start()
        await entered.passage()
        setting.clock.advance(by: .seconds(100))
        leave.open()
        #expect(try await operation.value == 5)
        #expect(operation.attemptCount == 1)
        #expect(bench.server.counts.heads == 1)
    }

    @Test func `a timeout of an attempt has no effect once the response is complete`() {
        var machine = AttemptMachine()
        _ = machine.start()
        var early = machine
        let gotEarly = early.exceededTimeLimit(1)
        #expect(gotEarly == .decide)
        _ = machine.prepared(1)
        _ = machine.created(1)
        var open = machine
        let gotOpen = open.exceededTimeLimit(1)
        #expect(gotOpen == .decide)
        let gotOther = machine.exceededTimeLimit(2)
        #expect(gotOther == .none)
        _ = machine.transferred(1)
        let got = machine.exceededTimeLimit(1)
        #expect(got == .none && machine.phase == .evaluating)
    }

    @Test
    func `a task that a hook creates after the timeout is canceled, and its request counts as sent`() async throws {
        bench.server.route("GET", "/") { _ in .text("Hello") }
        let made = EventRecorder<Recorded>()
        let clock = setting.clock
        let operation = Hooked(
            bench, method: "GET",
            make: { request, session in
                let recorded = Recorded(session.makeTask(with: request))
                made.record(recorded)
                if made.events.count == 1 { clock.advance(by: .seconds(6)) }
                return recorded
            })
        let seen = EventRecorder<NetworkError>()
        let retry = setting.retry {
            $0.attemptTimeout = .seconds(5)
            $0.policy.decide = { attempt in
                seen.record(attempt.error)
                return .asPolicySays
            }
        }
        #expect(try await setting.driven(operation, retry).run() == "Hello")
        #expect(seen.events.map(\.code) == [.timedOut])
        #expect(seen.events.map(\.isUnsent) == [false])
        let first = try #require(made.events.first)
        #expect(await first.calls.events(atLeast: 1) == ["cancel"])
        #expect(made.events.count == 2)
    }

    @Test func `a temporary download that timed out resumes from its bytes`() async throws {
        let size = 900_000
        let resource = LoopbackResource(.pattern(count: size), etag: "\"one\"")
        bench.server.route("GET", "/") { request in
            guard request.number == 0 else { return resource.answer(to: request) }
            let begin = TestPattern.bytes(count: 400_000)
            return LoopbackAnswer(
                .head(200, ["Content-Length": "\(size)", "ETag": "\"one\""]), .send(begin), .stallForever)
        }
        let folder = try TemporaryFolder()
        let operation = DownloadTo(folder.url, bench, "/") { file, _ in
            let bytes = try Data(contentsOf: file)
            return bytes.count == size && bytes.withUnsafeBytes { TestPattern.matches($0, from: 0) }
        }
        let half = Gate()
        operation.downloadProgressHandler = { if $0.completedBytes >= 380_000 { half.open() } }
        _ = setting.driven(operation, hurried)
        operation.start()
        await half.passage()
        setting.clock.advance(by: .seconds(6))
        #expect(try await operation.value)
        #expect(operation.attemptCount == 2)
        #expect((operation.downloadedFile?.resumedBytes ?? 0) > 300_000)
        #expect(bench.server.requests.last?["Range"] != nil)
        #expect(try await folder.contentAtRest() == [])
    }

    @Test func `the remaining time of an attempt does not apply to the next attempt`() async throws {
        bench.server.route("GET", "/") { $0.number == 0 ? .status(500) : .text("Hello") }
        // Like some clocks, this one calls overdue actions immediately.
        let manual = setting.clock
        let clock = ClosureClock(
            over: manual,
            schedule: { instant, action in
                guard instant <= manual.now else { return manual.schedule(at: instant, action) }
                action()
                return ClosureClock.Done()
            })
        let operation = bench.watched(bench.text())
        operation.clock = clock
        operation.retry = setting.retry {
            $0.attemptTimeout = .seconds(5)
            $0.backoff = .constant(.seconds(20), jitter: .none)
            $0.policy.window = nil
        }
        operation.start()
        try await setting.pause(of: operation)
        setting.clock.advance(by: .seconds(19))
        operation.suspend()
        setting.clock.advance(by: .seconds(2))
        operation.resume()
        #expect(try await operation.value == "Hello")
        #expect(operation.attemptCount == 2)
    }

    @Test func `a request that is prepared again in the same attempt leaves only one timer`() async throws {
        bench.server.route("GET", "/") { _ in LoopbackAnswer(.stallForever) }
        let operation = setting.undriven(bench.text(), hurried)
        let (authenticator, applied) = suspendingOnce(operation)
        operation.authenticate(by: authenticator)
        // The thread that starts the operation also calls the authenticator. So the first call is already recorded.
        operation.start()
        #expect(applied.events.count == 1)
        operation.resume()
        await until { bench.server.counts.heads == 1 }
        #expect(operation.attemptCount == 1 && applied.events.count == 2 && setting.clock.pendingCount == 1)
        operation.cancel()
        await operation.ended()
        #expect(setting.clock.pendingCount == 0)
    }

    @Test
    func `a preparation that ends after the time limit does not disturb the next attempt`() async throws {
        let answers = Gate()
        bench.server.route("GET", "/") { _ in
            LoopbackAnswer(.stall(until: answers), .head(200, ["Content-Length": "5"]), .send(Array("Hello".utf8)))
        }
        let retry = setting.retry {
            $0.attemptTimeout = .seconds(5)
            $0.backoff = .constant(.zero, jitter: .none)
        }
        let operation = setting.undriven(bench.text(), retry)
        operation.authenticate(by: suspendingOnce(operation).authenticator)
        let delaying = Delaying()
        operation.networkAttempts.state.withLock { $0.observation = delaying }
        operation.networkAttempts.isObserved.store(true, ordering: .relaxed)
        operation.start()
        let resumed = Gate()
        Thread.detachNewThread {
            operation.resume()
            resumed.open()
        }
        await delaying.entered.passage()
        setting.clock.advance(by: .seconds(6))
        await until { bench.server.counts.heads == 1 }
        delaying.leave.open()
        await resumed.passage()
        answers.open()
        #expect(try await operation.value == "Hello")
        #expect(operation.attemptCount == 2 && bench.server.counts.heads == 1)
    }

    /// Returns an authenticator that suspends the operation when it first applies its credential, and a recorder of the
    /// authenticator's calls.
    ///
    /// During the suspension, the credential may become out of date. So the request is prepared again.
    private func suspendingOnce(
        _ operation: NetworkDataOperation<String>
    ) -> (authenticator: Authenticator<String>, applied: EventRecorder<Int>) {
        let applied = EventRecorder<Int>()
        let authenticator = Authenticator(
            "token",
            apply: { [weak operation] _, request in
                if applied.events.isEmpty { operation?.suspend() }
                applied.record(0)
                return request
            }, refresh: nil)
        return (authenticator, applied)
    }

    @Test func `the time runs only while an attempt is not suspended`() {
        func at(_ seconds: Int64) -> OperationInstant { OperationInstant(offset: .seconds(seconds)) }
        var time = AttemptTime(.seconds(5), now: at(2), isSuspended: false)
        #expect(time.end == at(7) && time.left(at: at(3)) == .seconds(4))
        time.suspend(now: at(4))
        #expect(time.end == nil && time.left(at: at(9)) == .seconds(3))
        time.resume(now: at(10))
        time.resume(now: at(11))
        #expect(time.end == at(13))
        time = AttemptTime(.seconds(5), now: at(20), isSuspended: true)
        #expect(time.end == nil)
        time.resume(now: at(30))
        #expect(time.end == at(35))
    }
}

/// An observation that delays the second preparation of the first attempt until the test lets it continue.
private final class Delaying: AttemptObservation {
    let (entered, leave) = (Gate(), Gate())
    private let begins = EventRecorder<Int>()

    func record(_ step: AttemptStep, _ number: Int, by operation: any AnyNetworkOperation) {
        guard case .begins = step else { return }
        begins.record(number)
        guard begins.events == [1, 1] else { return }
        entered.open()
        leave.wait()
    }
}

/// Records the calls of a task.
private final class Recorded: WrappingTask {
    let task: any NetworkTask
    let calls = EventRecorder<String>()

    init(_ task: any NetworkTask) {
        self.task = task
    }

    func resume() {
        calls.record("resume")
        task.resume()
    }

    func suspend() {
        calls.record("suspend")
        task.suspend()
    }

    func cancel() {
        calls.record("cancel")
        task.cancel()
    }
}
