// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests keys, bodies and hooks of repeated requests.
@Suite("Requests that are sent again", .timeLimit(.minutes(1)))
struct RetryRequestTests {
    private let setting: RetryBench
    private var bench: OperationBench { setting.bench }

    init() throws {
        setting = try RetryBench()
    }

    @Test func `if a hook creates an idempotency key in each attempt, the first one is used for all`() async throws {
        bench.server.route("POST", "/") { $0.number < 2 ? .status(503) : .text("done") }
        let operation = Hooked(bench) { try $0.with("Idempotency-Key", UUID().uuidString) }
        #expect(try await setting.driven(operation, setting.retry()).run() == "done")
        let keys = bench.server.requests.map { $0["Idempotency-Key"] }
        #expect(keys.count == 3 && keys[0] != nil && Set(keys).count == 1)
    }

    @Test func `an idempotency key that a hook removes is restored`() async throws {
        bench.server.route("POST", "/") { $0.number < 1 ? .status(503) : .text("done") }
        let operation = Hooked(bench) { try $0.with("Idempotency-Key", nil) }
        operation.idempotencyKey = IdempotencyKey("one")
        #expect(try await setting.driven(operation, setting.retry()).run() == "done")
        #expect(bench.server.requests.map { $0["Idempotency-Key"] } == ["one", "one"])
    }

    @Test func `each attempt sends the idempotency key also after a redirect to another origin`() async throws {
        let other = try LoopbackServer()
        bench.server.route("POST", "/") { _ in .redirect(to: other.url("/").absoluteString, status: 307) }
        other.route("POST", "/") { $0.number < 1 ? .hangUp : .text("done") }
        let operation = Hooked(bench)
        operation.idempotencyKey = IdempotencyKey("one")
        #expect(try await setting.driven(operation, setting.retry()).run() == "done")
        #expect(other.requests.map { $0["Idempotency-Key"] } == ["one", "one"])
    }

    @Test(arguments: [true, false])
    func `an empty idempotency key does not count`(isOfHook: Bool) async throws {
        bench.server.route("POST", "/") { _ in .status(503) }
        let operation = Hooked(bench) { isOfHook ? try $0.with("Idempotency-Key", "") : $0 }
        if !isOfHook { operation.idempotencyKey = IdempotencyKey("") }
        #expect(await failure(of: setting.driven(operation, setting.retry()))?.status == 503)
        #expect(bench.server.counts.heads == 1)
    }

    @Test func `the JSON of a request is the same in all attempts, whatever the order of a dictionary`() async throws {
        bench.server.route("POST", "/*") { $0.number < 2 ? .status(503) : .json("{}") }
        /// Like an endpoint of an app, it is created again in each attempt.
        final class Adding: EndpointOperation<NoContent>, @unchecked Sendable {
            let place: NetworkBase
            let round = Locked(0)
            init(_ place: NetworkBase) {
                self.place = place
                super.init()
            }
            override var base: NetworkBase { place }
            override var endpoint: Endpoint<NoContent> {
                // A different capacity changes the order of the dictionary.
                let round = round.next()
                var values: [String: Int] = [:]
                values.reserveCapacity(10 << (round * 2))
                for number in 0..<40 { values["key \(number)"] = number }
                return .post("add", json: values)
            }
        }
        let base = with(NetworkBase(bench.server.url("/"))) { $0.session = bench.session }
        let operation = Adding(base)
        operation.idempotencyKey = .random()
        _ = try await setting.driven(operation, setting.retry()).run()
        let bodies = bench.server.requests.map(\.text)
        #expect(bodies.count == 3 && Set(bodies).count == 1)
        #expect(bodies[0].hasPrefix(#"{"key 0":0,"key 1":1,"key 10":10"#))
        #expect(try RequestBody.json(["b": 1, "a": 2, "c": 3] as [String: Int]).length == 19)
    }

    @Test func `a failed hook is not repeated unless a custom decision says so`() async throws {
        bench.server.route("POST", "/") { _ in .text("done") }
        let asked = Locked(0)
        let refusal = NetworkError(code: .unacceptableStatus, phase: .evaluating, message: "The token server is down.")
        let hook: @Sendable (NetworkRequest) throws -> NetworkRequest = { request in
            let count = asked.next()
            if count <= 2 {
                var refusal = refusal
                refusal.status = 503
                throw refusal
            }
            return request
        }
        let error = await failure(of: setting.driven(Hooked(bench, method: "PUT", change: hook), setting.retry()))
        #expect(error?.code == .preparationFailed)
        #expect((error?.cause as? NetworkError)?.status == 503)
        #expect(error?.status == nil)
        #expect(error?.request?.method == "PUT")
        #expect(asked.withLock { $0 } == 1)
        let budget = RetryBudget(reserve: 5, refillPerSecond: 0, clock: setting.clock)
        let patient = setting.retry {
            $0.budget = budget
            $0.policy.decide = { $0.error.code == .preparationFailed ? .again : .asPolicySays }
        }
        #expect(try await setting.driven(Hooked(bench, change: hook), patient).run() == "done")
        // The retry costs the same as any other retry.
        #expect(budget.left(for: bench.server.url("/")) == 4)
        #expect(bench.server.counts.heads == 1)
    }

    @Test func `an invalid request of a hook fails with its own error`() async throws {
        let operation = Hooked(bench) { try $0.with("X-Bad", "one\ntwo") }
        #expect(await failure(of: setting.driven(operation, setting.retry()))?.code == .invalidHeaderValue)
    }

    @Test func `a one-shot body is the last reason not to retry, and its error keeps the response`() async throws {
        bench.server.route("PUT", "/") { _ in .text("Sorry, not now", status: 503) }
        func stream() -> RequestBody { .stream(InputStream(data: Data("once".utf8))) }
        let told = EventRecorder<RetryReason>()
        let single = setting.text(setting.retry { $0.policy.maximumAttempts = 1 }, method: "PUT", body: stream())
        single.retryHandler = { told.record($0.reason) }
        #expect(await failure(of: single)?.code == .unacceptableStatus)
        let error = await failure(of: setting.text(setting.retry(), method: "PUT", body: stream()))
        await bench.settled()
        #expect(told.events == [.attemptsUsedUp])
        #expect(error?.code == .bodyNotRepeatable && error?.status == 503 && error?.isUnsent == false)
        #expect(error?.bodyPrefix == Data("Sorry, not now".utf8))
        #expect((error?.cause as? NetworkError)?.code == .unacceptableStatus)
        #expect(bench.server.counts.heads == 2)
    }

    @Test func `a one-shot body that was not read yet can be sent in a later attempt`() async throws {
        let made = Locked(0)
        let body = RequestBody.stream(length: 4, canBeSentAgain: false) {
            made.withLock { $0 += 1 }
            return PieceProducer(Array("once".utf8), size: 4)
        }
        // No server listens on this port.
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let operation = NetworkUploadOperation(url: url, body: body, urlSession: bench.session) { _, _ in 0 }
        let error = await failure(of: setting.driven(operation, setting.retry()))
        #expect(error?.code == .cannotConnect)
        #expect(error?.attempts.count == 3)
        #expect(made.withLock { $0 } == 0)
    }

    @Test func `the error contains the requested Retry-After pause, with and without retry`() async throws {
        bench.server.route("GET", "/") { _ in .status(503).with("Retry-After", "7") }
        #expect(await failure(of: bench.text())?.retryAfter == .seconds(7))
        let seen = EventRecorder<Duration?>()
        let asking = setting.retry {
            $0.policy.decide = { attempt in
                seen.record(attempt.error.retryAfter)
                return .fail
            }
        }
        let error = await failure(of: setting.text(asking))
        #expect(error?.retryAfter == .seconds(7))
        #expect(seen.events == [.seconds(7)])
        #expect(error?.report().contains("7.000 s") == true)
    }

    @Test(
        "Invalid Retry-After headers are ignored, and the longest of several pauses counts",
        arguments: [
            (["1,2"], Duration?.none), (["1e30"], nil), (["0x10"], nil), (["7.5"], nil), (["3", "9"], .seconds(9)),
            (["soon", "4"], .seconds(4)), ([" 5 "], .seconds(5)),
        ])
    func oddFields(fields: [String], pause: Duration?) async throws {
        bench.server.route("GET", "/") { _ in
            fields.reduce(.status(503)) { answer, field in answer.adding("Retry-After", field) }
        }
        #expect(await failure(of: bench.text())?.retryAfter == pause)
    }

    @Test func `a response that is followed by another attempt does not count as progress`() async throws {
        bench.server.route("GET", "/") { request in
            request.number == 0
                ? .text(String(repeating: "sorry ", count: 20_000), status: 503) : .text("0123456789")
        }
        let told = EventRecorder<TransferProgress>()
        let fractions = EventRecorder<Double>()
        let operation = setting.text(setting.retry())
        let progress = operation.progress
        operation.progressPacing = ProgressPacing(smallestStep: 1)
        operation.downloadProgressHandler = {
            told.record($0)
            fractions.record(progress.fractionCompleted)
        }
        _ = try await operation.run()
        await bench.settled()
        #expect(told.events.last == TransferProgress(completedBytes: 10, totalBytes: 10))
        #expect(told.events.allSatisfy { $0.completedBytes <= 10 })
        #expect(operation.downloadProgress == TransferProgress(completedBytes: 10, totalBytes: 10))
        #expect(progress.isFinished)
    }

    @Test func `the rule of a replaced retry is released outside of every lock`() {
        let operation = bench.text(), asked = Locked(0)
        do {
            let asker = LastWord { [weak operation] in
                if operation?.retry == nil { asked.withLock { $0 += 1 } }
            }
            var retry = Retry.standard
            retry.policy.decide = { _ in withExtendedLifetime(asker) { .asPolicySays } }
            operation.retry = retry
        }
        operation.retry = nil
        #expect(asked.withLock { $0 } == 1)
    }
}
