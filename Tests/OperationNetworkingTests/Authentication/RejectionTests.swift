// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests how a server can reject a credential, and when the rejection takes effect.
@Suite("Rejected credentials", .timeLimit(.minutes(1)))
struct RejectionTests {
    private let bench: TokenBench

    init() throws {
        bench = try TokenBench()
    }

    @Test("The isRejected rule applies to accepted statuses too, and a rejected body is never the result")
    func acceptedStatus() async throws {
        bench.server.route("GET", "/") { request in
            request["Authorization"] == "Bearer new" ? .text("Hello") : .text("out of date").with("X-Key", "expired")
        }
        let rule: (inout AuthenticationOptions) -> Void = { options in
            options.isRejected = { $0.headers["X-Key"] == "expired" }
        }
        let operation = bench.operation(bench.authenticator(change: rule))
        #expect(try await operation.run() == "Hello")
        #expect(operation.attemptCount == 2)
        let error = await failure(of: bench.operation(bench.authenticator(change: rule, refresh: { "wrong" })))
        #expect(error?.code == .credentialRejected && error?.status == 200)
        #expect((error?.cause as? NetworkError)?.code == .responseRefused)
        #expect(error?.bodyPrefix == Data("out of date".utf8))
    }

    @Test func `a rejected file is not moved to the destination`() async throws {
        let bench = try TokenBench(), folder = try TemporaryFolder()
        bench.server.route("GET", "/file") { request in
            request["Authorization"] == "Bearer new" ? .text("Hello") : .text("out of date").with("X-Key", "expired")
        }
        func download(_ refresh: @escaping @Sendable () async throws -> String) -> NetworkDownloadOperation<String> {
            let operation = NetworkDownloadOperation<String>(
                url: bench.server.url("/file"), urlSession: bench.bench.session
            ) { file, _ in
                try String(contentsOf: file, encoding: .utf8)
            }
            operation.clock = bench.clock
            operation.destination = .file(folder.url.appendingPathComponent("file"))
            let authenticator = bench.authenticator(
                change: { $0.isRejected = { $0.headers["X-Key"] == "expired" } }, refresh: refresh)
            operation.authenticate(by: authenticator)
            return operation
        }
        #expect(await failure(of: download { "wrong" })?.code == .credentialRejected)
        #expect(try await folder.contentAtRest() == [])
        #expect(try await download { "new" }.run() == "Hello")
        #expect(folder.content == ["file"])
    }

    @Test func `a rejection is detected from the headers, for a download and for an endless response`() async throws {
        bench.serve("/file") { _ in
            LoopbackAnswer(.head(401, ["Content-Length": "10"]), .send("Hello"), .stallForever)
        }
        bench.serve("/stream") { _ in LoopbackAnswer(.head(200, ["X-Key": "expired"]), .send("Hello"), .stallForever) }
        let rule: (inout AuthenticationOptions) -> Void = { options in
            options.isRejected = { $0.status == 401 || $0.headers["X-Key"] == "expired" }
        }
        #expect(try await bench.operation(bench.authenticator(change: rule), "/stream").run() == "Hello")
        let download = NetworkDownloadOperation<Int>(
            url: bench.server.url("/file"), urlSession: bench.bench.session
        ) { _, _ in 1 }
        download.clock = bench.clock
        download.authenticate(by: bench.authenticator(change: rule))
        download.start()
        _ = await bench.asked.events(atLeast: 2)
        download.cancel()
        await download.ended()
    }

    @Test func `a rejection takes effect with its headers, before its body is complete`() async throws {
        bench.serve { _ in LoopbackAnswer(.head(401, ["Content-Length": "10"]), .send("Hello"), .stallForever) }
        let authenticator = bench.authenticator()
        do {
            let first = bench.operation(authenticator)
            first.start()
            _ = await bench.asked.events(atLeast: 1)
            #expect(try await bench.operation(authenticator).run() == "Hello")
            #expect(first.outcome == nil)
            first.cancel()
            await first.ended()
        }
        #expect(bench.server.requests.map { $0["Authorization"] } == ["Bearer old", "Bearer new"])
        try await bench.bench.checkNothingIsLeft()
    }

    @Test func `if a replay used a token that was not fresh, its rejection causes a refresh`() async throws {
        let bench = try TokenBench(), lateAnswer = Gate()
        bench.serve("/late") { request in
            request["Authorization"] == "Bearer old" ? .status(401).after(lateAnswer) : .status(401)
        }
        let authenticator = bench.authenticator()
        let late = bench.operation(authenticator, "/late")
        await bench.server.isReached(by: late)
        authenticator.set("dead")
        lateAnswer.open()
        #expect(try await late.value == "Hello")
        #expect(bench.asked.events == ["dead"])
        #expect(bench.server.requests.map { $0["Authorization"] } == ["Bearer old", "Bearer dead", "Bearer new"])
    }

    @Test func `repeated refreshes whose tokens are rejected fail with tooManyRefreshes`() async throws {
        bench.good.value = "none"
        let authenticator = bench.authenticator(
            change: { $0.maximumRefreshes = 2 }, refresh: { "\(bench.asked.count)" })
        var codes: [NetworkError.Code?] = []
        for _ in 0..<3 { codes.append(await failure(of: bench.operation(authenticator))?.code) }
        #expect(codes == [.credentialRejected, .credentialRejected, .tooManyRefreshes])
        #expect(bench.asked.count == 2)
        bench.clock.advance(by: .seconds(30))
        #expect(await failure(of: bench.operation(authenticator))?.code == .credentialRejected)
        #expect(bench.asked.count == 3)
    }

    @Test func `if a refresh fails, the error says whether the request had been sent`() async throws {
        let authenticator = bench.authenticator(refresh: { throw Refusal() })
        let error = await failure(of: bench.operation(authenticator))
        #expect(error?.code == .refreshFailed && error?.status == 401 && error?.isUnsent == false)
        // This request was never sent.
        let later = await failure(of: bench.operation(authenticator))
        #expect(later?.code == .refreshFailed && later?.isUnsent == true)
    }

    @Test func `after a failed early refresh, the old token is used until it expires`() async throws {
        let bench = try TokenBench(), refreshes = Gate()
        bench.good.value = "old"
        let authenticator = bench.authenticator(
            lifetime: { _ in .seconds(3600) },
            refresh: {
                await refreshes.passage()
                throw CancellationError()
            })
        bench.clock.advance(by: .seconds(3550))
        refreshes.open()
        #expect(try await bench.operation(authenticator).run() == "Hello")
        #expect(bench.asked.count == 1)
        bench.clock.advance(by: .seconds(50))
        #expect(await failure(of: bench.operation(authenticator))?.code == .refreshFailed)
        #expect(bench.server.counts.heads == 1)
    }

    @Test func `a refresh waits as long as the Retry-After header of the token server requests`() async throws {
        bench.server.route("GET", "/token") { _ in .status(429, ["Retry-After": "60"]) }
        let authenticator = bench.authenticator(refresh: { try await bench.bench.text("/token").run() })
        #expect(await failure(of: bench.operation(authenticator))?.code == .refreshFailed)
        bench.clock.advance(by: .seconds(59))
        #expect(await failure(of: bench.operation(authenticator))?.code == .refreshFailed)
        #expect(bench.asked.count == 1)
        bench.server.route("GET", "/token") { _ in .text("new") }
        bench.clock.advance(by: .seconds(1))
        #expect(try await bench.operation(authenticator).run() == "Hello")
    }

    @Test func `an invalid origin of a realm fails the request instead of sending it without a token`() async throws {
        let bench = try TokenBench(), url = try #require(URL(string: "api.example.com"))
        let authenticator = bench.authenticator(change: { $0.origins = [bench.server.url("/"), url] })
        let error = await failure(of: bench.operation(authenticator))
        #expect(error?.code == .invalidURL && error?.message.contains("api.example.com") == true)
        #expect(bench.server.counts.heads == 0)
    }

    @Test func `waiting operations are released at the configured pace`() async throws {
        let bench = try TokenBench(), refreshes = Gate()
        let authenticator = bench.authenticator(
            nil, change: { $0.pace = PostponementPace(2, every: .seconds(1)) },
            refresh: refreshes.opening("new"))
        let operations = bench.operations(5, authenticator)
        for (index, operation) in operations.enumerated() {
            operation.start()
            await until { authenticator.postponedCount == index + 1 }
        }
        refreshes.open()
        for released in [2, 4, 5] {
            let next = bench.clock.now.advanced(by: .seconds(1))
            for operation in operations.prefix(released) { await operation.ended() }
            #expect(authenticator.postponedCount == 5 - released)
            #expect(operations.dropFirst(released).allSatisfy { $0.outcome == nil })
            // The queue that released these operations sets the timer.
            if released < 5 { await until { bench.clock.nextDue == next } }
            bench.clock.advance(by: .seconds(1))
        }
        #expect(operations.allSatisfy { $0.outcome == .success("Hello") })
    }

    @Test func `forty requests during a refresh of 300 ms cause at most 46 requests to the server`() async throws {
        #if TSAN || ASAN
            // The sanitizers are too slow for this pace.
            _ = try await hitsOfForty()
        #else
            var hits: [Int] = []
            // On a busy machine, more requests are sent before the first response.
            while hits.count < 20, hits.allSatisfy({ $0 > 46 }) { hits.append(try await hitsOfForty()) }
            #expect(hits.contains { $0 <= 46 }, "\(hits)")
        #endif
    }

    private func hitsOfForty() async throws -> Int {
        let bench = try TokenBench(), clock = SystemClock.shared
        let authenticator = bench.authenticator(
            change: { $0.clock = clock },
            refresh: {
                let isOver = Gate()
                _ = clock.schedule(after: .milliseconds(300)) { isOver.open() }
                await isOver.passage()
                return "new"
            })
        let operations = (0..<40).map { _ in
            let operation = bench.bench.text()
            operation.authenticate(by: authenticator)
            return operation
        }
        for (index, operation) in operations.enumerated() {
            _ = clock.schedule(after: .milliseconds(10) * index) { operation.start() }
        }
        for operation in operations { await operation.ended() }
        #expect(operations.allSatisfy { $0.outcome == .success("Hello") })
        #expect(bench.asked.events == ["old"])
        return bench.server.counts.heads
    }
}
