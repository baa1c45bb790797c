// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Tests the time limits of held and suspended tasks with a clock that only the tests advance.
    @Suite(.timeLimit(.minutes(3)))
    struct SessionPauseLimitTests {
        private let clock = SessionClock(stands: true)
        private let session: CurlSession

        init() {
            session = CurlSession.direct(by: clock) { $0.maximumConnectionsPerHost = 20 }
        }

        /// Creates a server that accepts no connections.
        ///
        /// The system accepts the first ones, which receive no response.
        private func makeDeafServer(backlog: Int = 10) throws -> LoopbackServer {
            var options = LoopbackServer.Options()
            options.accepts = false
            options.backlog = backlog
            return try LoopbackServer(options)
        }

        private func makeTask(
            _ url: URL, _ timeouts: TransferTimeouts, _ recorder: RecordingReceiver
        ) throws -> any NetworkTask {
            let request = try NetworkRequest(url: url, options: TransferOptions(timeouts: timeouts))
            return session.makeTask(with: request, receiver: recorder)
        }

        private func pass(_ duration: Duration = .zero) async throws {
            try await clock.leap(duration, noticedBy: session)
        }

        private func expectConnectTimeout(_ record: RecordingReceiver.Record) {
            #expect(record.code == .timedOut && record.error?.phase == .connecting && record.ends == 1)
            #expect(record.error?.isUnsent == true, "\(String(describing: record.error))")
        }

        @Test(arguments: [false, true])
        func `no limit counts down while a held task connects`(isHeldBefore: Bool) async throws {
            // The server does not respond, so the TLS handshake never completes.
            let deaf = try makeDeafServer()
            let url = try #require(URL(string: "https://127.0.0.1:\(deaf.port)/"))
            let recorder = RecordingReceiver()
            let limit = Duration.seconds(20)
            let task = try makeTask(url, TransferTimeouts(connect: limit, total: limit), recorder)
            if isHeldBefore { task.hold() }
            task.resume()
            try await pass()
            task.hold()
            try await pass(limit * 2)
            #expect(recorder.record.ends == 0)
            task.proceed()
            try await pass(limit - .seconds(1))
            #expect(recorder.record.ends == 0)
            try await pass(.seconds(2))
            expectConnectTimeout(await recorder.end())
            await deaf.stopped()
        }

        @Test func `a new connection starts if libcurl gives up before the connect limit`() async throws {
            let deaf = try makeDeafServer(backlog: 0)
            // These requests fill the backlog, so later connections receive no reply at all.
            let first = try (0..<8).map { _ in try makeTask(deaf.url(), .none, RecordingReceiver()) }
            for task in first { task.resume() }
            try await pass()
            let recorder = RecordingReceiver()
            let limit = Duration.milliseconds(200)
            let task = try makeTask(deaf.url(), TransferTimeouts(connect: limit), recorder)
            task.resume()
            // The test clock does not advance, but libcurl's clock does. Each request checks it.
            let start = ContinuousClock.now
            while start.duration(to: .now) < limit * 4 { try await pass() }
            #expect(recorder.record.ends == 0, "\(recorder.record)")
            try await pass(limit * 2)
            expectConnectTimeout(await recorder.end())
            await deaf.stopped()
        }

        /// A task that has received a part of its body, while a receiver of another task blocks the session's thread.
        private struct Kept {
            let task: any NetworkTask
            let recorder: RecordingReceiver
            let lastPart: Gate
            let letGo: Gate
        }

        private func makeKept(_ server: LoopbackServer, _ limit: Duration) async throws -> Kept {
            let (lastPart, hasBegun, isKept, letGo) = (Gate(), Gate(), Gate(), Gate())
            server.route("/two") { _ in
                LoopbackAnswer(.head(200, ["Content-Length": "2"]), .send("a"), .stall(until: lastPart), .send("b"))
            }
            server.route("/keep") { _ in .text("keep") }
            let recorder = RecordingReceiver { event, _ in if case .bytes = event { hasBegun.open() } }
            let task = try makeTask(server.url("/two"), TransferTimeouts(idle: limit, total: limit), recorder)
            task.resume()
            await hasBegun.passage()
            let keeper = RecordingReceiver { event, _ in
                guard case .head = event else { return }
                isKept.open()
                letGo.wait()
            }
            try makeTask(server.url("/keep"), .none, keeper).resume()
            await isKept.passage()
            return Kept(task: task, recorder: recorder, lastPart: lastPart, letGo: letGo)
        }

        @Test(arguments: [false, true])
        func `holding or suspending a task stops its limits immediately, even if the session is busy`(
            isHeld: Bool
        ) async throws {
            let server = try LoopbackServer()
            let limit = Duration.seconds(20)
            let kept = try await makeKept(server, limit)
            if isHeld { kept.task.hold() } else { kept.task.suspend() }
            clock.leap(limit * 2)
            kept.letGo.open()
            try await pass()
            #expect(kept.recorder.record.ends == 0)
            if isHeld { kept.task.proceed() } else { kept.task.resume() }
            try await pass(limit / 2)
            kept.lastPart.open()
            let record = await kept.recorder.end()
            #expect(record.text == "ab" && record.error == nil)
            #expect(try #require(record.metrics?.paused) >= limit)
            await server.stopped()
        }

        @Test func `a pause that the session did not notice does not count, and the limit applies afterward`()
            async throws
        {
            let server = try LoopbackServer()
            let limit = Duration.seconds(20)
            let kept = try await makeKept(server, limit)
            kept.task.suspend()
            clock.leap(limit * 2)
            kept.task.resume()
            kept.letGo.open()
            try await pass(limit / 2)
            #expect(kept.recorder.record.ends == 0)
            try await pass(limit)
            let record = await kept.recorder.end()
            #expect(record.code == .timedOut && record.error?.phase == .receiving && record.text == "a")
            #expect(try #require(record.metrics?.paused) >= limit)
            await server.stopped()
        }
    }
#endif
