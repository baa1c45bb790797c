// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Operations while the network is gone, against a real server.
@Suite(.timeLimit(.minutes(1)))
struct OfflineTests {
    @Test func `66: offline at the start, it waits, and is sent once when the network is there`() async throws {
        let bench = try OfflineBench()
        do {
            let operation = bench.operation()
            operation.start()
            #expect(operation.waitReason?.kind == .network)
            #expect(operation.state == .executing && bench.lot.parkedCount == 1)
            bench.clock.advance(by: .seconds(100))
            #expect(bench.bench.server.counts.heads == 0)
            bench.network.write(.satisfied)
            #expect(bench.bench.server.counts.heads == 0, "not before it has been back for a while")
            bench.clock.advance(by: .milliseconds(1_500))
            #expect(try await operation.value == "Hello 0")
            #expect(operation.waitReason == nil && operation.attemptCount == 1)
            #expect(bench.bench.server.counts.heads == 1)
        }
        try await bench.checkNothingIsLeft()
    }

    @Test func `the hooks see the request anew when the network is back`() async throws {
        let bench = try OfflineBench()
        let operation = Stamped(bench)
        operation.offline = bench.policy()
        operation.start()
        await bench.parked(1)
        bench.comeBack()
        _ = try await operation.value
        #expect(bench.bench.server.requests.map { $0["X-Number"] } == ["2"])
    }

    @Test func `cut off while nobody listens, it goes on when the server is back`() async throws {
        let bench = try OfflineBench()
        let port = bench.bench.server.port, url = bench.bench.server.url("/")
        bench.network.write(.satisfied)
        let operation = bench.operation("POST", body: .data(Data("x".utf8)), at: url) { $0.beforeSending = .send }
        bench.network.write(.unsatisfied)
        await bench.bench.server.stopped()
        operation.start()
        await bench.parked(1)
        while operation.waitReason?.kind != .network { await Task.yield() }
        var options = LoopbackServer.Options()
        options.addresses = [.ipv4(port: port)]
        let server = try LoopbackServer(options)
        server.route("POST", "/") { _ in .text("here again") }
        bench.comeBack()
        #expect(try await operation.value == "here again")
        #expect(operation.attemptCount == 2)
    }

    @Test func `cut off in the middle of a body, it is no attempt that retry counts`() async throws {
        let bench = try OfflineBench()
        bench.bench.server.route("GET", "/") { request in
            guard request.number == 0 else { return .text("whole") }
            return LoopbackAnswer(.head(200, ["Content-Length": "10"]), .send("Hello"), .stallForever)
        }
        bench.network.write(.satisfied)
        let operation = bench.operation()
        var retry = Retry(budget: RetryBudget(clock: bench.clock))
        retry.policy.maximumAttempts = 1
        operation.retry = retry
        operation.start()
        while operation.downloadProgress.completedBytes == 0 { await Task.yield() }
        bench.network.write(.unsatisfied)
        bench.bench.server.endConnections(by: .reset)
        await bench.parked(1)
        bench.comeBack()
        #expect(try await operation.value == "whole")
        #expect(operation.attemptCount == 2)
    }

    @Test func `what may have been carried out is not sent again, unless it has a key`() async throws {
        for hasKey in [false, true] {
            let bench = try OfflineBench()
            let network = bench.network
            bench.bench.server.route("POST", "/") { request in
                if request.number > 0 { return .text("twice") }
                network.write(.unsatisfied)
                return .reset
            }
            network.write(.satisfied)
            let operation = bench.operation("POST", body: .data(Data("x".utf8)))
            if hasKey { operation.idempotencyKey = .random() }
            operation.start()
            if hasKey {
                await bench.parked(1)
                bench.comeBack()
                #expect(try await operation.value == "twice")
            } else {
                #expect(await failure(of: operation)?.code == .connectionLost)
            }
        }
    }

    @Test func `a failure that has nothing to do with the network is none while it is gone, either`() async throws {
        let bench = try OfflineBench()
        bench.bench.server.route("GET", "/") { _ in .status(500) }
        #expect(await failure(of: bench.operation { $0.beforeSending = .send })?.status == 500)
        bench.network.write(.satisfied)
        await bench.bench.server.stopped()
        #expect(await failure(of: bench.operation())?.code == .cannotConnect, "the network is there")
        #expect(bench.lot.parkedCount == 0)
    }

    @Test func `requests to this machine need no network unless one says so`() async throws {
        let bench = try OfflineBench()
        let operation = bench.operation { $0.concerns = OfflinePolicy().concerns }
        #expect(try await operation.run() == "Hello 0")
        for (text, stays) in [
            ("http://localhost:1/", true), ("http://a.localhost/", true), ("http://127.1.2.3/", true),
            ("http://[::1]/", true), ("http://localhost.example.com/", false), ("http://127.example.com/", false),
            ("http://192.0.2.1/", false),
        ] {
            let request = try NetworkRequest(url: try #require(URL(string: text)))
            #expect(OfflinePolicy.staysHere(request) == stays, "\(text)")
        }
    }

    // Limits.

    @Test func `it waits so long in all and no longer`() async throws {
        let bench = try OfflineBench()
        let network = bench.network
        bench.bench.server.route("GET", "/") { _ in
            network.write(.unsatisfied)
            return .reset
        }
        let operation = bench.operation { $0.longestWait = .seconds(60) }
        operation.start()
        bench.clock.advance(by: .seconds(40))
        bench.comeBack()
        // It was sent, and cut off again.
        await bench.parked(1)
        bench.clock.advance(by: .milliseconds(19_900))
        #expect(operation.outcome == nil)
        bench.clock.advance(by: .milliseconds(100))
        let error = await failure(of: operation)
        #expect(error?.code == .offlineTooLong)
        #expect((error?.cause as? NetworkError)?.code == .connectionLost)
        #expect(error?.attempts.count == 1)
        #expect(bench.clock.pendingCount == 0)
    }

    @Test func `before it was ever sent, the error says so`() async throws {
        let bench = try OfflineBench()
        let operation = bench.operation { $0.longestWait = .seconds(60) }
        operation.retry = Retry(budget: RetryBudget(clock: bench.clock))
        operation.start()
        bench.clock.advance(by: .seconds(60))
        let error = await failure(of: operation)
        #expect(error?.code == .offlineTooLong && error?.isUnsent == true && error?.cause == nil)
        #expect(error?.message.contains("longestWait") == true)
        #expect(bench.bench.server.counts.heads == 0)
    }

    @Test func `it waits so often and no more`() async throws {
        let bench = try OfflineBench()
        let network = bench.network
        bench.bench.server.route("GET", "/") { _ in
            network.write(.unsatisfied)
            return .reset
        }
        let operation = bench.operation { $0.mostWaits = 3 }
        operation.start()
        for _ in 0..<3 {
            await bench.parked(1)
            bench.comeBack()
        }
        let error = await failure(of: operation)
        #expect(error?.code == .offlineTooOften)
        #expect((error?.cause as? NetworkError)?.code == .connectionLost)
        #expect(bench.bench.server.counts.heads == 3)
    }

    @Test func `only so many wait at once`() async throws {
        let bench = try OfflineBench(capacity: 2)
        let operations = (0..<3).map { _ in bench.operation() }
        for operation in operations { operation.start() }
        let error = await failure(of: operations[2])
        #expect(error?.code == .tooManyOffline)
        for operation in operations { operation.cancel() }
        #expect(bench.lot.parkedCount == 0)
    }

    @Test func `told to fail at once, it does, and nothing is sent or repeated`() async throws {
        let bench = try OfflineBench()
        let operation = bench.operation { policy in
            policy = OfflinePolicy.failFast
            policy.lot = bench.lot
            policy.concerns = { _ in true }
        }
        operation.retry = .standard
        let error = await failure(of: operation)
        #expect(error?.code == .offline && error?.isUnsent == true)
        #expect(bench.bench.server.counts.heads == 0 && bench.clock.pendingCount == 0)
        #expect(error.map { ($0 as NSError).code } ?? 0 > 0)
    }

    // Steering.

    @Test(arguments: [false, true])
    func `47: cancelled while it waits for the network, it ends at once and leaves nobody behind`(
        afterFailure: Bool
    ) async throws {
        let bench = try OfflineBench()
        let log = HandlerLog()
        do {
            let operation = bench.operation { if afterFailure { $0.beforeSending = .send } }
            log.watch(operation)
            operation.delegate = log
            if afterFailure { await bench.bench.server.stopped() }
            operation.start()
            await bench.parked(1)
            // It is counted before its ticket and its timer are known.
            while operation.waitReason?.kind != .network { await Task.yield() }
            operation.cancel()
            #expect(operation.outcome?.cancellationCause == .requested)
            #expect(bench.lot.parkedCount == 0 && bench.clock.pendingCount == 0)
        }
        await log.ended.passage()
        await bench.bench.settled()
        #expect(log.lines.events == ["cancelled requested", "delegate cancelled"])
        bench.comeBack()
        try await bench.checkNothingIsLeft()
        #expect(bench.bench.server.counts.heads == 0)
    }

    @Test func `suspended while it waits, it goes on when it is resumed and not before`() async throws {
        let bench = try OfflineBench()
        let operation = bench.operation()
        operation.start()
        #expect(operation.suspend())
        bench.comeBack()
        #expect(bench.lot.parkedCount == 0 && bench.bench.server.counts.heads == 0)
        #expect(operation.resume())
        #expect(try await operation.value == "Hello 0")
    }

    @Test func `a deadline ends the wait`() async throws {
        let bench = try OfflineBench()
        let operation = bench.operation()
        operation.timeout = .seconds(5)
        operation.start()
        bench.clock.advance(by: .seconds(5))
        #expect(operation.outcome?.cancellationCause?.code == .timedOut)
        #expect(bench.lot.parkedCount == 0 && bench.clock.pendingCount == 0)
    }

    // Queues.

    @Test func `those that wait take no place of their queue, which says what they wait for`() async throws {
        let bench = try OfflineBench()
        let queue = QueueManager("api", width: 1)
        let operations = (0..<3).map { _ in bench.operation() }
        for operation in operations { try queue.add(operation) }
        await bench.parked(3)
        let other = ClosureOperation { 42 }
        try queue.add(other)
        #expect(try await other.value == 42)
        #expect(queue.snapshot.resting.count == 3)
        #expect(queue.explain(operations[0]).description.hasSuffix("runs in queue api: waiting for the network."))
        bench.network.write(.satisfied)
        bench.clock.advance(by: .seconds(10))
        for operation in operations { _ = try await operation.value }
        await queue.drained()
        #expect(bench.bench.server.counts.heads == 3)
    }

    @Test func `67: a network that comes and goes a thousand times loses nothing and sends nothing twice`() async throws
    {
        let bench = try OfflineBench(perSecond: 1_000)
        let operations = (0..<20).map { _ in bench.operation { $0.mostWaits = 1_000_000 } }
        for operation in operations { operation.start() }
        for round in 0..<1_000 {
            bench.network.write(.satisfied)
            // Mostly not long enough for one to go on.
            bench.clock.advance(by: .milliseconds(round % 100 == 99 ? 1_500 : 900))
            // Those that go on look at the network once more, on another thread.
            while bench.lot.parkedCount + operations.count(where: { $0.networkTask != nil }) < 20 { await Task.yield() }
            bench.network.write(.unsatisfied)
            bench.clock.advance(by: .milliseconds(20))
        }
        bench.network.write(.satisfied)
        bench.clock.advance(by: .seconds(10))
        var answers: Set<String> = []
        for operation in operations { answers.insert(try await operation.value) }
        #expect(answers.count == 20)
        #expect(bench.bench.server.counts.heads == 20)
        #expect(bench.lot.parkedCount == 0 && bench.clock.pendingCount == 0)
    }

    @Test func `a base gives its policy to all its operations`() async throws {
        let bench = try OfflineBench()
        var base = NetworkBase(bench.bench.server.url("/"))
        base.session = bench.bench.session
        base.offline = bench.policy { $0.mostWaits = 7 }
        let operation: EndpointOperation<NoContent> = base.get("")
        #expect(operation.offline?.mostWaits == 7)
        operation.start()
        await bench.parked(1)
        operation.cancel()
    }
}

/// Counts how often its request was made.
private final class Stamped: NetworkDataOperation<Data>, @unchecked Sendable {
    private let number = Locked(0)

    init(_ bench: OfflineBench) {
        super.init(url: bench.bench.server.url("/"), urlSession: bench.bench.session) { data, _ in data }
        clock = bench.clock
    }

    override func prepareRequest(_ request: URLRequest) throws -> URLRequest {
        var request = request
        let present = number.withLock { number in
            number += 1
            return number
        }
        request.setValue("\(present)", forHTTPHeaderField: "X-Number")
        return request
    }
}
