// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Requests that wait for a connection while their token is rejected, or while their server asks for a pause.
    @Suite("Requests that wait in their session", .timeLimit(.minutes(1)))
    struct WaitingLineTests {
        private let bench: TokenBench
        /// Allows one connection, so that all other requests wait.
        private let session = CurlSession.direct { $0.maximumConnectionsPerHost = 1 }

        init() throws { bench = try TokenBench() }

        private func operation(_ authenticator: Authenticator<String>?) -> NetworkDataOperation<String> {
            let operation = bench.bench.watched(
                NetworkDataOperation<String>(url: bench.server.url("/"), urlSession: session))
            operation.clock = bench.clock
            if let authenticator { operation.authenticate(by: authenticator) }
            return operation
        }

        /// Returns an authenticator whose refresh sends a request to the same server over the same session.
        private func authenticatorOverSession() -> Authenticator<String> {
            let (url, session, clock) = (bench.server.url("/token"), session, bench.clock)
            return bench.authenticator(refresh: {
                let operation = NetworkDataOperation<String>(url: url, urlSession: session)
                operation.clock = clock
                return try await operation.run()
            })
        }

        @Test func `after a rejection, requests that wait for a connection are sent with the new token`() async throws {
            let answered = Gate()
            bench.serve { _ in .status(401).after(answered) }
            bench.server.route("GET", "/token") { _ in .text("new") }
            do {
                let authenticator = authenticatorOverSession(), log = EventRecorder<String>()
                let operations = (0..<40).map { _ in operation(authenticator) }
                for operation in operations {
                    operation.addNetworkObserver(NetworkLog { log.record($0) })
                    operation.start()
                }
                // All tasks exist before the first response arrives.
                await until { operations.allSatisfy { $0.networkAttempts.task != nil } }
                _ = await bench.server.heads(atLeast: 1)
                answered.open()
                for operation in operations { #expect(try await operation.value == "Hello") }
                let sent = bench.server.requests.map { $0["Authorization"] ?? $0.path }
                #expect(sent.prefix(2) == ["Bearer old", "/token"])
                #expect(sent.dropFirst(2).allSatisfy { $0 == "Bearer new" } && sent.count == 42)
                #expect(bench.asked.events == ["old"])
                #expect(log.events.count { $0.hasPrefix("↩") } == 39)
                #expect(operations.allSatisfy { $0.failedAttempts.count <= 1 })
            }
            try await bench.bench.checkNothingIsLeft()
        }

        @Test func `a refresh does not wait for other requests, even if all connections are in use`() async throws {
            // The body of the rejection never ends, and keeps the only connection busy.
            bench.serve { _ in LoopbackAnswer(.head(401, ["Content-Length": "10"]), .send("Hello"), .stallForever) }
            bench.server.route("GET", "/token") { _ in .text("new") }
            let operation = operation(authenticatorOverSession()), other = self.operation(nil)
            await bench.server.isReached(by: operation)
            other.start()
            await until { bench.server.requests.contains { $0.path == "/token" } }
            #expect(bench.server.requests.map(\.path) == ["/", "/token"])
            operation.cancel()
            other.cancel()
            await operation.ended()
            await other.ended()
        }

        @Test func `if a server asks for a pause, requests that wait for a connection pause too`() async throws {
            let answered = Gate()
            bench.server.route("GET", "/") { request in
                request.number == 0 ? .status(429, ["Retry-After": "10"]).after(answered) : .text("Hello")
            }
            let pauses = OriginPauses(pace: .atOnce, clock: bench.clock)
            let operations = (0..<5).map { _ in operation(nil) }
            for operation in operations {
                var retry = Retry(budget: nil)
                retry.originPauses = pauses
                retry.policy.maximumAttempts = 1
                operation.retry = retry
                operation.start()
            }
            await until { operations.allSatisfy { $0.networkAttempts.task != nil } }
            _ = await bench.server.heads(atLeast: 1)
            answered.open()
            // The timer may be set by another operation than the last waiting one.
            await until { pauses.waitingCount == 4 && bench.clock.pendingCount > 0 }
            #expect(bench.server.requests.count == 1)
            bench.clock.advance(by: .seconds(10))
            var results: [String?] = []
            for operation in operations { results.append(await operation.finalOutcome.result) }
            #expect(results.count { $0 == "Hello" } == 4 && bench.server.requests.count == 5)
        }

        @Test func `a custom receiver may withdraw its request before it is sent`() async throws {
            let (held, open) = (operation(nil), Gate())
            bench.server.route("GET", "/") { _ in .text("Hello").after(open) }
            await bench.server.isReached(by: held)
            let receiver = RefusingReceiver()
            try session.begin(bench.server.url("/never"), receiver)
            open.open()
            #expect(await receiver.ends.events(atLeast: 1) == [.cancelled])
            #expect(try await held.value == "Hello")
            #expect(bench.server.requests.map(\.path) == ["/"])
        }
    }

    /// Withdraws its request.
    final class RefusingReceiver: NetworkReceiver {
        let ends = EventRecorder<NetworkError.Code?>()

        func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}
        func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}
        func task(_ task: any NetworkTask, didEndWith error: NetworkError?) { ends.record(error?.code) }
        func taskMaySend(_ task: any NetworkTask) -> Bool { false }
    }
#endif
