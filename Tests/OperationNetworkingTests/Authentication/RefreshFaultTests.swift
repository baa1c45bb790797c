// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests failures of a refresh that is itself a request.
@Suite("Failures of a refresh", .timeLimit(.minutes(1)))
struct RefreshFaultTests {
    private let bench: TokenBench

    init() throws {
        bench = try TokenBench()
    }

    /// Returns an authenticator that fetches its tokens from the server.
    private func authenticator(
        _ bench: TokenBench, on queue: QueueManager? = nil
    ) -> Authenticator<String> {
        let (server, session) = (bench.server, bench.bench.session)
        return bench.authenticator(refresh: {
            let operation = NetworkDataOperation<String>(url: server.url("/token"), urlSession: session)
            guard let queue else { return try await operation.run() }
            try queue.add(operation)
            return try await operation.value
        })
    }

    private func codes(_ operations: [NetworkDataOperation<String>]) async -> Set<NetworkError.Code?> {
        for operation in operations { await operation.ended() }
        return Set(operations.map { $0.outcome?.error?.code })
    }

    @Test func `a failed refresh fails all waiting operations, and another one may begin after a pause`() async throws {
        for answer in [LoopbackAnswer.status(500), .reset] {
            let bench = try TokenBench()
            bench.server.route("GET", "/token") { _ in answer }
            let authenticator = authenticator(bench)
            let operations = bench.operations(5, authenticator)
            for operation in operations { operation.start() }
            #expect(await codes(operations) == [.refreshFailed])
            #expect(await failure(of: bench.operation(authenticator))?.code == .refreshFailed)
            #expect(bench.asked.events.count == 1)
            bench.server.route("GET", "/token") { _ in .text("new") }
            bench.clock.advance(by: .seconds(10))
            #expect(try await bench.operation(authenticator).run() == "Hello")
            #expect(bench.asked.events.count == 2)
        }
    }

    @Test("A refresh whose server is silent is stopped after its timeout, and all waiting operations fail")
    func silent() async throws {
        bench.server.route("GET", "/token") { _ in .silence }
        let authenticator = authenticator(bench)
        let operations = bench.operations(5, authenticator)
        for operation in operations { operation.start() }
        await until { authenticator.postponedCount == 5 && bench.clock.nextDue != nil }
        _ = await bench.server.requests(atLeast: bench.server.counts.heads)
        await until { bench.server.requests.contains { $0.path == "/token" } }
        bench.clock.advance(by: .seconds(30))
        #expect(await codes(operations) == [.refreshTimedOut])
        // The request of the refresh has ended as well.
        await bench.server.counts { $0.idleConnections == $0.openConnections }
    }

    @Test
    func `after a rejected refresh, later requests fail without being sent and without another refresh`() async throws {
        bench.server.route("GET", "/token") { _ in .status(400) }
        let authenticator = authenticator(bench)
        #expect(await failure(of: bench.operation(authenticator))?.code == .refreshFailed)
        let heads = bench.server.counts.heads
        bench.clock.advance(by: .seconds(100_000))
        for _ in 0..<5 { #expect(await failure(of: bench.operation(authenticator))?.code == .refreshFailed) }
        #expect(bench.server.counts.heads == heads)
    }

    @Test func `in a full queue with a single slot, the refresh can run in the same queue`() async throws {
        bench.server.route("GET", "/token") { _ in .text("new") }
        let queue = QueueManager("only", width: 1)
        let authenticator = authenticator(bench, on: queue)
        let operations = bench.operations(20, authenticator)
        try queue.add(operations)
        #expect(await codes(operations) == [nil])
        #expect(bench.asked.events.count == 1)
        await queue.drained()
    }

    @Test func `a refresh over a session without redirects does not send its secret to another server`() async throws {
        let bench = try TokenBench(), stranger = try TokenBench()
        let target = stranger.server.url("/").absoluteString
        bench.server.route("POST", "/token") { _ in .redirect(to: target, status: 307) }
        let (transport, close) = SessionKind.allCases[0].makeSession()
        defer { close() }
        let session = ExchangeSession.over(transport) { $0.redirects = .stop }
        let url = bench.server.url("/token")
        let authenticator = bench.authenticator(refresh: {
            let operation = NetworkUploadOperation(
                url: url, body: .data(Data("secret".utf8)), urlSession: session
            ) { data, _ in String(decoding: data, as: UTF8.self) }
            return try await operation.run()
        })
        #expect(await failure(of: bench.operation(authenticator))?.code == .refreshFailed)
        #expect(bench.server.requests.last?.text == "secret")
        #expect(stranger.server.counts.heads == 0)
    }
}
