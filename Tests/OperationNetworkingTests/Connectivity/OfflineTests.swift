// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Tests operations while the network is gone, against a real server.
@Suite(.timeLimit(.minutes(1)))
struct OfflineTests {
    private let bench: OfflineBench

    init() throws {
        bench = try OfflineBench()
    }

    @Test func `66: an operation that starts offline waits, and is sent once when the network is there`() async throws {
        do {
            let operation = bench.operation()
            operation.start()
            #expect(operation.waitReason?.kind == .network)
            #expect(operation.state == .executing && bench.offlineWaiting.waitingCount == 1)
            bench.clock.advance(by: .seconds(100))
            #expect(bench.bench.server.counts.heads == 0)
            bench.network.write(.satisfied)
            #expect(bench.bench.server.counts.heads == 0, "not before the network has settled")
            bench.clock.advance(by: .milliseconds(1_500))
            #expect(try await operation.value == "Hello 0")
            #expect(operation.waitReason == nil && operation.attemptCount == 1)
            #expect(bench.bench.server.counts.heads == 1)
        }
        try await bench.checkNothingIsLeft()
    }

    @Test func `the hooks run again when the network is back`() async throws {
        let operation = Stamped(bench)
        operation.offline = bench.policy()
        await bench.startsToWait(operation)
        bench.comeBack()
        _ = try await operation.value
        #expect(bench.bench.server.requests.map { $0["X-Number"] } == ["2"])
    }

    @Test func `a request that is refused while offline is sent again when the network is back`() async throws {
        let port = bench.bench.server.port, url = bench.bench.server.url("/")
        bench.network.write(.satisfied)
        let operation = bench.operation("POST", body: .data(Data("x".utf8)), at: url) { $0.beforeSending = .send }
        bench.network.write(.unsatisfied)
        await bench.bench.server.stopped()
        await bench.startsToWait(operation)
        let options = with(LoopbackServer.Options()) { $0.addresses = [.ipv4(port: port)] }
        let server = try LoopbackServer(options)
        server.route("POST", "/") { _ in .text("here again") }
        bench.comeBack()
        #expect(try await operation.value == "here again")
        #expect(operation.attemptCount == 2)
    }

    @Test func `a connection that is lost within the body does not count as an attempt of retry`() async throws {
        bench.bench.server.route("GET", "/") { request in
            guard request.number == 0 else { return .text("whole") }
            return LoopbackAnswer(.head(200, ["Content-Length": "10"]), .send("Hello"), .stallForever)
        }
        bench.network.write(.satisfied)
        let operation = bench.operation()
        let retry = with(Retry(budget: RetryBudget(clock: bench.clock))) { $0.policy.maximumAttempts = 1 }
        operation.retry = retry
        operation.start()
        while operation.downloadProgress.completedBytes == 0 { await Task.yield() }
        bench.network.write(.unsatisfied)
        bench.bench.server.endConnections(by: .reset)
        await bench.waits(operation)
        bench.comeBack()
        #expect(try await operation.value == "whole")
        #expect(operation.attemptCount == 2)
    }

    @Test func `a request that may have been processed is sent again only with an idempotency key`() async throws {
        for hasKey in [false, true] {
            let bench = try OfflineBench()
            bench.losesNetwork("POST", then: "twice")
            bench.network.write(.satisfied)
            let operation = bench.operation("POST", body: .data(Data("x".utf8)))
            if hasKey { operation.idempotencyKey = .random() }
            operation.start()
            if hasKey {
                await bench.waits(operation)
                bench.comeBack()
                #expect(try await operation.value == "twice")
            } else {
                #expect(await failure(of: operation)?.code == .connectionLost)
            }
        }
    }

    @Test func `an empty idempotency key counts as none`() throws {
        let url = try #require(URL(string: "http://example.com/"))
        for (key, waits) in [("", false), ("a", true)] {
            let request = try NetworkRequest("POST", url: url, headers: ["Idempotency-Key": key])
            let error = NetworkError(code: .connectionLost, phase: .awaitingResponse, message: "")
            #expect((OfflinePolicy().rule(for: error, of: request) != nil) == waits)
        }
    }

    @Test func `a rule can match a status, and can apply only to requests with an idempotency key`() throws {
        let url = try #require(URL(string: "http://example.com/"))
        var policy = OfflinePolicy()
        policy.rules = [.status(511, because: "The network requires authentication.").onlyWithKey()]
        for (status, key, waits) in [(511, "a", true), (511, "", false), (503, "a", false)] {
            let request = try NetworkRequest("POST", url: url, headers: ["Idempotency-Key": key])
            var error = NetworkError(code: .unacceptableStatus, phase: .awaitingResponse, message: "")
            error.status = status
            #expect((policy.rule(for: error, of: request) != nil) == waits)
        }
    }

    @Test func `after a one-shot body was sent, the operation does not wait, and the error says why`() async throws {
        bench.losesNetwork("PUT")
        bench.network.write(.satisfied)
        let body = RequestBody.stream(length: 4, canBeSentAgain: false) { PieceProducer(Array("once".utf8), size: 4) }
        let error = await failure(of: bench.operation("PUT", body: body))
        #expect(error?.code == .bodyNotRepeatable && (error?.cause as? NetworkError)?.code == .connectionLost)
    }

    @Test func `a failure that is unrelated to the network does not make the operation wait`() async throws {
        bench.bench.server.route("GET", "/") { _ in .status(500) }
        #expect(await failure(of: bench.operation { $0.beforeSending = .send })?.status == 500)
        bench.network.write(.satisfied)
        await bench.bench.server.stopped()
        #expect(await failure(of: bench.operation())?.code == .cannotConnect, "the network is there")
        #expect(bench.offlineWaiting.waitingCount == 0)
    }

    @Test func `requests to this machine do not wait for the network by default`() async throws {
        let operation = bench.operation { $0.concerns = OfflinePolicy().concerns }
        #expect(try await operation.run() == "Hello 0")
        for (text, stays) in [
            ("http://localhost:1/", true), ("http://a.localhost/", true), ("http://127.1.2.3/", true),
            ("http://2130706433/", true), ("http://[0:0::1]/", true), ("http://[::1%25lo]/", true),
            ("http://[::1]/", true), ("http://localhost.example.com/", false), ("http://127.example.com/", false),
            ("http://192.0.2.1/", false),
        ] {
            let request = try NetworkRequest(url: try #require(URL(string: text)))
            #expect(OfflinePolicy.staysHere(request) == stays, "\(text)")
        }
    }

    // Queues.

    @Test func `waiting operations free their slots, and explain names the reason`() async throws {
        let queue = QueueManager("api", width: 1)
        let operations = (0..<3).map { _ in bench.operation() }
        for operation in operations { try queue.add(operation) }
        await bench.waits(3)
        let other = ClosureOperation { 42 }
        try queue.add(other)
        #expect(try await other.value == 42)
        #expect(queue.snapshot.resting.count == 3)
        #expect(queue.explain(operations[0]).hasSuffix("runs in queue api: waiting for the network."))
        bench.network.write(.satisfied)
        bench.clock.advance(by: .seconds(10))
        for operation in operations { _ = try await operation.value }
        await queue.drained()
        #expect(bench.bench.server.counts.heads == 3)
    }

    @Test func `operations resume in the order in which they began to wait`() async throws {
        let bench = try OfflineBench(perSecond: 1), order = [3, 0, 4, 1, 2]
        bench.bench.server.route("/*") { .text($0.path) }
        var operations: [NetworkUploadOperation<String>] = []
        for (count, number) in order.enumerated() {
            let operation = bench.operation(at: bench.bench.server.url("/\(number)"))
            operations.append(operation)
            operation.start()
            await bench.waits(count + 1)
        }
        bench.comeBack()
        for operation in operations {
            _ = try await operation.value
            bench.clock.advance(by: .seconds(1))
        }
        #expect(bench.bench.server.requests.map(\.path) == order.map { "/\($0)" })
    }

    @Test func `67: a network that comes and goes a thousand times loses no operation`() async throws {
        let bench = try OfflineBench(perSecond: 1_000), network = bench.network
        // Each request is cut off first, when the network goes, and gets a response when the network returns.
        for number in 0..<20 {
            let wasCut = Locked(false)
            bench.bench.server.route("GET", "/\(number)") { _ in
                if wasCut.withLock({ exchange(&$0, with: true) }) { return .text("Hello \(number)") }
                network.write(.unsatisfied)
                return .reset
            }
        }
        var operations: [NetworkUploadOperation<String>] = []
        func flap(_ milliseconds: Int) async {
            network.write(.satisfied)
            bench.clock.advance(by: .milliseconds(milliseconds))
            network.write(.unsatisfied)
            bench.clock.advance(by: .milliseconds(20))
            // Resumed operations finish, or wait again.
            while bench.offlineWaiting.waitingCount + operations.filter({ $0.outcome != nil }).count < operations.count
            {
                await Task.yield()
            }
        }
        for round in 0..<1_000 {
            if round % 45 == 0, operations.count < 20 {
                let url = bench.bench.server.url("/\(operations.count)")
                let operation = bench.operation(at: url) { $0.mostWaits = 1_000_000 }
                operations.append(operation)
                operation.start()
            }
            // This time is usually too short for an operation to resume.
            await flap(round % 50 == 49 ? 2_000 : 900)
        }
        while operations.contains(where: { $0.outcome == nil }) { await flap(2_000) }
        for (number, operation) in operations.enumerated() {
            #expect(try await operation.value == "Hello \(number)")
        }
        #expect(operations.count == 20 && bench.bench.server.counts.heads == 40)
        #expect(bench.offlineWaiting.waitingCount == 0 && bench.clock.pendingCount == 0)
    }
}

/// Counts how often its request was prepared.
private final class Stamped: NetworkDataOperation<Data>, @unchecked Sendable {
    private let number = Locked(0)

    init(_ bench: OfflineBench) {
        super.init(url: bench.bench.server.url("/"), urlSession: bench.bench.session) { data, _ in data }
        clock = bench.clock
    }

    override func prepareRequest(_ request: URLRequest) throws -> URLRequest {
        with(request) { $0.setValue("\(number.next())", forHTTPHeaderField: "X-Number") }
    }
}
