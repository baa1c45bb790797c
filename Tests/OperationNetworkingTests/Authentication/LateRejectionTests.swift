// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@testable import OperationNetworking

@Suite("Late rejections and repeated checks", .timeLimit(.minutes(1)))
struct LateRejectionTests {
    @Test func `a late rejection of a timed-out attempt does not reject the token of the next attempt`() async throws {
        let bench = try TokenBench(), slow = SlowReader(), server = ModelServer()
        let authenticator = bench.authenticator()
        let operation = NetworkDataOperation(url: bench.server.url("/"), urlSession: server) { data, _ in data.count }
        operation.clock = bench.clock
        operation.authenticate(by: authenticator)
        var retry = Retry(budget: nil)
        retry.attemptTimeout = .seconds(5)
        retry.throttledBackoff = .constant(.seconds(1), jitter: .none)
        operation.retry = retry
        operation.networkAttempts.changePolicies { $0[.manual] = slow }
        operation.start()
        await until { server.answerable == [1] }
        // The headers of the first attempt are being processed when the attempt times out and the next ones begin.
        Thread.detachNewThread {
            server.answer(1, .status(401))
            slow.left.open()
        }
        await slow.entered.passage()
        bench.clock.advance(by: .seconds(5))
        await until { server.answerable == [2] }
        #expect(server.token(of: 2) == "Bearer new" && authenticator.credential == "new")
        // A response that says nothing about the token makes the operation forget the earlier rejection.
        server.answer(2, .status(503))
        await until { operation.networkAttempts.isWaitingForTime }
        bench.clock.advance(by: .seconds(1))
        await until { server.answerable == [3] }
        slow.leave.open()
        await slow.left.passage()
        #expect(authenticator.credential == "new", "the token was not rejected")
        server.answer(3, .status(200))
        #expect(try await operation.value == 2)
    }

    @Test(arguments: [401, 200])
    func `the rejection rule is evaluated once per response, also for a download`(status: Int) async throws {
        let bench = try TokenBench(), folder = try TemporaryFolder(), count = Shared(0)
        bench.server.route("GET", "/file") { request in
            request["Authorization"] == "Bearer new" ? .text("Hello") : .status(status).with("X-Key", "expired")
        }
        let authenticator = bench.authenticator(change: { options in
            options.isRejected = { head in
                count.value += 1
                return head.headers["X-Key"] == "expired"
            }
        })
        let download = NetworkDownloadOperation<String>(
            url: bench.server.url("/file"), urlSession: bench.bench.session
        ) { file, _ in
            try String(contentsOf: file, encoding: .utf8)
        }
        download.clock = bench.clock
        download.destination = .file(folder.url.appendingPathComponent("file"))
        download.authenticate(by: authenticator)
        #expect(try await download.run() == "Hello")
        #expect(count.value == 2, "one rejection, and one success")
        let plain = bench.operation(authenticator, "/file")
        #expect(try await plain.run() == "Hello")
        #expect(count.value == 3)
    }

    @Test func `the error of a failed refresh is released while no lock is held`() async throws {
        let bench = try TokenBench(), gone = Gate()
        let itself = Shared<Authenticator<String>?>(nil)
        let results = EventRecorder<Int>()
        let authenticator = bench.authenticator(
            change: { $0.eventHandler = nil },
            refresh: {
                guard results.count == 0 else { return bench.good.value }
                // The error calls the realm when it is released.
                throw LastWord {
                    results.record(itself.value?.postponedCount ?? -1)
                    gone.open()
                }
            })
        itself.value = authenticator
        // The operation, whose error has the refresh error as its cause, is released first.
        do { #expect(await failure(of: bench.operation(authenticator))?.code == .refreshFailed) }
        try await bench.bench.checkNothingIsLeft()
        #expect(results.count == 0, "the realm still holds the error")
        authenticator.set("new")
        await gone.passage()
        #expect(results.events == [0])
        itself.value = nil
    }
}

/// Stands between the session and the realm, and delays the headers of the first response.
private final class SlowReader: AttemptPolicy, @unchecked Sendable {
    // Sendable: all mutable state is behind a lock.

    let entered = Gate(), leave = Gate(), left = Gate()

    override func refuses(_ head: ResponseHead, of request: NetworkRequest, _ number: Int) -> Bool {
        guard number == 1 else { return false }
        entered.open()
        leave.wait()
        return false
    }
}
