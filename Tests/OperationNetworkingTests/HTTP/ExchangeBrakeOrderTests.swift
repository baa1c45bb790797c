// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Tests a suspension that overtakes the thread that starts the request.
    @Suite(.timeLimit(.minutes(3)))
    struct ExchangeBrakeOrderTests {
        private let server: LoopbackServer
        private let gate = Gate()
        private let transport = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
            server.route("/a") { [gate] _ in .text("a").after(gate) }
            server.route("/other") { _ in .text("other") }
        }

        /// Starts an exchange and suspends it after it decided to start its request, but before it calls the session.
        private func startOvertaken(takesOrders: Bool, _ probe: RecordingReceiver) async throws -> any NetworkTask {
            let started = Locked<(any NetworkTask)?>(nil)
            let moment = LateSession.Moment(
                before: {
                    let task = started.withLock { $0 }
                    task?.suspend()
                },
                // The session gets enough turns to send a request that is not suspended.
                after: { [self] in for _ in 0..<3 { waitForAnother() } })
            let late = LateSession(over: transport, takesOrders: takesOrders, moment)
            let task = ExchangeSession(over: late)
                .makeTask(with: try NetworkRequest(url: server.url("/a")), receiver: probe)
            started.withLock { $0 = task }
            try await TestThread.run { task.resume() }
            return task
        }

        private func waitForAnother() { transport.waitForAnswer(from: server.url("/other")) }

        private var paths: Set<String> { Set(server.requests.map(\.path)) }

        @Test func `a request that is suspended before its start takes effect is not sent`() async throws {
            let probe = RecordingReceiver()
            let task = try await startOvertaken(takesOrders: true, probe)
            #expect(paths == ["/other"])
            gate.open()
            task.resume()
            let seen = await probe.end()
            #expect(seen.text == "a" && seen.isOrderly)
            #expect(server.requests.filter { $0.path == "/a" }.count == 1)
        }

        @Test func `a suspension also takes effect in a session without ordered tasks`() async throws {
            let probe = RecordingReceiver()
            let task = try await startOvertaken(takesOrders: false, probe)
            gate.open()
            await server.counts { $0.answers >= 4 }
            try await TestThread.run { [self] in waitForAnother() }
            #expect(probe.record.heads.isEmpty && probe.record.ends == 0)
            task.resume()
            let seen = await probe.end()
            #expect(seen.text == "a" && seen.isOrderly)
        }
    }
#endif
